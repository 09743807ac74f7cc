"""The readers: operations on snapshots, beside the writer and beside each other.

Each connection has its thread; all work off one queue, so whoever has waited longest is next, and one long
read leaves the other connection to the rest.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from typing import Any

import aiosqlite

from outreach.protocols.storage import Operation
from outreach.storage.sqlite.jobs import Job, Queue, deliver
from outreach.storage.sqlite.session import Session
from outreach.storage.sqlite.thread import close, post


class Readers:
    """Runs operations over connections that only read, which it owns."""

    def __init__(self) -> None:
        self._readers: list[_Reader] = []
        self._queue = Queue()

    def add(self, connection: aiosqlite.Connection, session: Session) -> None:
        """Take a connection on."""
        reader = _Reader(self._queue, connection, session)
        self._readers.append(reader)
        self._queue.add(reader.wake)

    async def run(self, operation: Operation[Any]) -> Any:
        """Queue an operation; return its result, or raise its error."""
        return await self._queue.submit(operation).outcome()

    async def close(self) -> None:
        """Do what is queued, then close the connections."""
        for reader in self._readers:
            await close(reader.connection)


class _Reader:
    """One connection and its thread."""

    def __init__(self, queue: Queue, connection: aiosqlite.Connection, session: Session) -> None:
        self.connection = connection
        self._queue = queue
        self._session = session

    def wake(self) -> None:
        """Begin to work in the connection's thread."""
        post(self.connection, self._work)

    def _work(self, raw: sqlite3.Connection) -> None:
        while (job := self._queue.take_or_sleep(self.wake)) is not None:
            self._run(raw, job)
            deliver([job])

    def _run(self, raw: sqlite3.Connection, job: Job) -> None:
        """Run one operation on the snapshot that its first query takes."""
        try:
            raw.execute("BEGIN")
            # What was read before may be out of date, and is the reader's own by now.
            self._session.rows.forget()
            job.run(self._session.transaction)
        except BaseException as error:  # whatever it is, it is the caller's
            job.fail(error)
        finally:
            # SQLite may have ended the transaction by itself, after an error of the disk.
            with suppress(sqlite3.Error):
                raw.execute("ROLLBACK")
