"""The writer: operations queue up and are committed in groups.

A commit waits for the disk, and a disk does as much for fifty operations as for one. So the operations that
have queued up while the last group was committed make the next: one `BEGIN IMMEDIATE`, one working set for all of
them, one `COMMIT`, and only then the answers. All of it is one function that runs in the
connection's thread: a caller that goes away, or an event loop that is busy, cannot leave a transaction open.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from typing import Any, Final

import aiosqlite

from outreach.clock import Clock
from outreach.protocols.storage import Operation
from outreach.storage.sqlite.backend import Session
from outreach.storage.sqlite.group_commit import commit_group, fail_jobs
from outreach.storage.sqlite.jobs import Job, Queue, deliver
from outreach.storage.sqlite.thread import BULK_SECONDS, LockWait, close, is_busy, post
from outreach.storage.sqlite.watch import FileWatch

GROUP_SECONDS: Final = 0.025
"""A group that has lasted this long takes no further operation."""

BULK_AFTER_GROUPS: Final = 8
"""Large work that has waited for so many groups goes first: others delay it and never stop it."""

PAUSE_FRACTION: Final = 1 / 8
"""Between groups that follow at once, as a part of the first one's length: another process that waits to write
looks now and then whether it may, and has to find a gap."""


class Writer:
    """Commits operations in groups over one connection, which it owns.

    Args:
        connection: Opened with `isolation_level=None`.
        session: The working set and the tables of that connection.
        clock: Where the length of a group is measured.
        watch: LogThrottle that it is not the database's file any more.
    """

    def __init__(self, connection: aiosqlite.Connection, session: Session, *, clock: Clock, watch: FileWatch) -> None:
        self._connection = connection
        self._session = session
        self._clock = clock
        self._watch = watch
        self._queue = Queue()
        self._queue.add(self._wake)
        self._groups_since_bulk = 0
        self._lock_wait = LockWait()

    async def run(self, operation: Operation[Any], *, bulk: bool) -> Any:
        """Queue an operation; return its result, or raise its error, after the commit."""
        return await self._queue.submit(operation, bulk=bulk).outcome()

    async def close(self) -> None:
        """Do what is queued, unless another process keeps the lock; then close the connection."""
        self._lock_wait.end()
        await close(self._connection)

    def _wake(self) -> None:
        post(self._connection, self._work)

    def _work(self, raw: sqlite3.Connection) -> None:
        """Commit group after group until nothing is queued; runs in the connection's thread."""
        while True:
            begun = self._clock.monotonic()
            deliver(self._commit_group(raw))
            if self._queue.sleep(self._wake):
                return
            # Bounded: a clock that jumps (a machine that slept, a test that moves it) must not stop the writing.
            time.sleep(min(self._clock.monotonic() - begun, 10 * GROUP_SECONDS) * PAUSE_FRACTION)

    def _commit_group(self, raw: sqlite3.Connection) -> Sequence[Job]:
        """Run and commit one group; return its jobs, each with its outcome."""
        group: list[Job] = []
        until = self._clock.monotonic() + GROUP_SECONDS

        def take() -> Job | None:
            if not group:
                return self._queue.take(bulk_first=self._groups_since_bulk >= BULK_AFTER_GROUPS)
            full = group[-1].bulk or self._clock.monotonic() >= until
            return None if full else self._queue.take()

        try:
            commit_group(self._session, take, group, control=self)
        except Exception as error:
            # Where it did not even begin, everybody else would wait as long and in vain: all are told.
            told = group or self._queue.take_all(bulk_since=self._bulk_since(error))
            fail_jobs(told, error)
            return told
        had_bulk = bool(group) and group[-1].bulk
        self._groups_since_bulk = 0 if had_bulk or not self._queue.bulk_waits else self._groups_since_bulk + 1
        return group

    def _bulk_since(self, error: Exception) -> float:
        """Return since when large work has to have waited to be told of an error: only a lock is waited for longer."""
        if self._lock_wait.is_over or not is_busy(error):
            return float("inf")
        return time.monotonic() - BULK_SECONDS

    def begin(self, raw: sqlite3.Connection) -> None:
        """Begin a transaction on the database's own file; wait for another process that writes.

        Raises:
            DatabaseReplaced: It is another file by now.
            sqlite3.Error: The file is locked for too long, or cannot be written.
        """
        self._watch.check()
        self._lock_wait.retry_while_busy(lambda: raw.execute("BEGIN IMMEDIATE"))

    def commit(self, raw: sqlite3.Connection) -> None:
        """Commit, and note that what the file is now is its own."""
        self._watch.stamp(raw)
        raw.execute("COMMIT")
        self._watch.committed()
