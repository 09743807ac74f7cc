"""The readers: operations on snapshots, in parallel with the writer and each other.

Each connection has its thread. All take jobs from one queue, so that one long read leaves the others available.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from typing import Any, Final

import aiosqlite

from outreach.protocols.storage import Operation
from outreach.storage.base.jobs import Job, Queue, deliver
from outreach.storage.sqlite.backend import Session
from outreach.storage.sqlite.errors import as_caller_error
from outreach.storage.sqlite.thread import LockWait, close, post
from outreach.storage.sqlite.watch import FileWatch

_CLOSE_SECONDS: Final = 0.5
"""Interrupting a read loses nothing."""


class Readers:
    """Runs operations over reading connections, which it owns; `watch` detects that the file was replaced."""

    def __init__(self, watch: FileWatch) -> None:
        self._watch = watch
        self._readers: list[_Reader] = []
        self._queue = Queue()
        self._lock_wait = LockWait()

    def add(self, connection: aiosqlite.Connection, session: Session) -> None:
        """Add a connection."""
        reader = _Reader(self._queue, connection, session, self._lock_wait, self._watch)
        self._readers.append(reader)
        self._queue.add(reader.wake)

    async def run(self, operation: Operation[Any]) -> Any:
        """Queue an operation; return its result, or raise its error."""
        return await self._queue.submit(operation).outcome()

    async def close(self) -> None:
        """Finish queued operations for a moment, then close the connections."""
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
            # Rows cached before may be outdated, and belong to their callers.
            self._session.rows.forget()
            job.run(self._session.transaction)
        except BaseException as error:  # whatever it is, it is the caller's
            job.fail(as_caller_error(error))
        finally:
            # SQLite may have ended the transaction after a disk error.
            with suppress(sqlite3.Error):
                raw.execute("ROLLBACK")


def _begin(raw: sqlite3.Connection) -> None:
    """Begin a read; its first query takes the snapshot and waits for locks of other processes.

    Recovering the log and closing the last connection hold such a lock for a moment.
    """
    try:
        raw.execute("BEGIN")
        raw.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
    except sqlite3.Error:
        if raw.in_transaction:
            raw.execute("ROLLBACK")
        raise
