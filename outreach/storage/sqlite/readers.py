"""The readers: operations on snapshots, beside the writer and beside each other.

Each connection has its thread; all work off one queue, so whoever has waited longest is next, and one long
read leaves the other connection to the rest.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from typing import Any, Final

import aiosqlite

from outreach.protocols.storage import Operation
from outreach.storage.sqlite.backend import Session
from outreach.storage.sqlite.jobs import Job, Queue, deliver
from outreach.storage.sqlite.thread import LockWait, close, post
from outreach.storage.sqlite.watch import FileWatch

_CLOSE_SECONDS: Final = 0.5
"""Nothing is lost with a read that is interrupted."""


class Readers:
    """Runs operations over connections that only read, which it owns.

    Args:
        watch: LogThrottle that it is not the database's file any more.
    """

    def __init__(self, watch: FileWatch) -> None:
        self._watch = watch
        self._readers: list[_Reader] = []
        self._queue = Queue()
        self._lock_wait = LockWait()

    def add(self, connection: aiosqlite.Connection, session: Session) -> None:
        """Take a connection on."""
        reader = _Reader(self._queue, connection, session, self._lock_wait, self._watch)
        self._readers.append(reader)
        self._queue.add(reader.wake)

    async def run(self, operation: Operation[Any]) -> Any:
        """Queue an operation; return its result, or raise its error."""
        return await self._queue.submit(operation).outcome()

    async def close(self) -> None:
        """Do what is queued, as far as that takes no more than a moment, then close the connections."""
        self._lock_wait.end()
        for reader in self._readers:
            await close(reader.connection, timeout_seconds=_CLOSE_SECONDS)


class _Reader:
    """One connection and its thread."""

    def __init__(
        self, queue: Queue, connection: aiosqlite.Connection, session: Session, lock_wait: LockWait, watch: FileWatch
    ) -> None:
        self.connection = connection
        self._watch = watch
        self._lock_wait = lock_wait
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
            self._watch.check()
            self._lock_wait.retry_while_busy(lambda: _begin(raw))
            # What was read before may be out of date, and is the reader's own by now.
            self._session.rows.forget()
            job.run(self._session.transaction)
        except BaseException as error:  # whatever it is, it is the caller's
            job.fail(error)
        finally:
            # SQLite may have ended the transaction by itself, after an error of the disk.
            with suppress(sqlite3.Error):
                raw.execute("ROLLBACK")


def _begin(raw: sqlite3.Connection) -> None:
    """Begin to read: the first look at the file takes the snapshot, and is what another process's lock keeps waiting.

    Who recovers the log after a crash, or closes the file as the last one, holds such a lock for a moment.
    """
    try:
        raw.execute("BEGIN")
        raw.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
    except sqlite3.Error:
        if raw.in_transaction:
            raw.execute("ROLLBACK")
        raise
