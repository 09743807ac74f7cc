"""The writer: operations queue up and are committed in groups.

A disk syncs fifty operations as fast as one, so that the operations that queue up during a commit form the next group:
one `BEGIN IMMEDIATE`, one working set, one `COMMIT`, then the answers. A group is one function in the connection's
thread, so that no cancelled caller or busy event loop can leave a transaction open.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from typing import Any, Final

import aiosqlite

from outreach.clock import Clock
from outreach.protocols.instrumentation import Instrumentation
from outreach.protocols.storage import Operation
from outreach.storage.sqlite.backend import Session
from outreach.storage.sqlite.errors import name_of
from outreach.storage.sqlite.group_commit import commit_group, fail_jobs
from outreach.storage.sqlite.jobs import Job, Queue, deliver
from outreach.storage.sqlite.thread import BULK_SECONDS, LockWait, close, is_busy, post
from outreach.storage.sqlite.watch import FileWatch

GROUP_SECONDS: Final = 0.025
"""After this long a group takes no further operation."""

BULK_AFTER_GROUPS: Final = 8
"""Bulk work goes first after waiting for so many groups."""

PAUSE_FRACTION: Final = 1 / 8
"""The pause between groups, as a fraction of the last one, in which another process can take the lock."""


class Writer:
    """Commits operations in groups over one connection, which it owns.

    Args:
        connection: Opened with `isolation_level=None`.
        session: The connection's working set and tables.
        clock: Measures the length of groups.
        watch: Detects that the file was replaced.
        instrumentation: Is told of each group.
    """

    def __init__(
        self,
        connection: aiosqlite.Connection,
        session: Session,
        *,
        clock: Clock,
        watch: FileWatch,
        instrumentation: Instrumentation | None = None,
    ) -> None:
        self._instrumentation = instrumentation or Instrumentation()
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
        """Finish queued operations, unless another process holds the lock, and close the connection."""
        self._lock_wait.end()
        await close(self._connection)

    def _wake(self) -> None:
        post(self._connection, self._work)

    def _work(self, raw: sqlite3.Connection) -> None:
        """Commit groups until nothing is queued; runs in the connection's thread."""
        while True:
            begun = self._clock.monotonic()
            deliver(self._commit_group(raw))
            if self._queue.sleep(self._wake):
                return
            # Bounded, so that a jumping clock (sleep, tests) does not stop writing.
            time.sleep(min(self._clock.monotonic() - begun, 10 * GROUP_SECONDS) * PAUSE_FRACTION)

    def _commit_group(self, raw: sqlite3.Connection) -> Sequence[Job]:
        """Run and commit one group; return its jobs."""
        group: list[Job] = []
        begun = self._clock.monotonic()
        until = begun + GROUP_SECONDS

        def take() -> Job | None:
            if not group:
                return self._queue.take(bulk_first=self._groups_since_bulk >= BULK_AFTER_GROUPS)
            full = group[-1].bulk or self._clock.monotonic() >= until
            return None if full else self._queue.take()

        try:
            commit_group(self._session, take, group, control=self)
        except Exception as error:
            # If no transaction began, everybody else would wait as long in vain.
            failed = group or self._queue.take_all(bulk_since=self._bulk_since(error))
            fail_jobs(failed, error)
            self._instrumentation.transaction_failed(operations=len(failed), error=name_of(error))
            return failed
        self._instrumentation.transaction_committed(
            operations=len(group), seconds=self._clock.monotonic() - begun, queued=self._queue.waiting
        )
        had_bulk = bool(group) and group[-1].bulk
        self._groups_since_bulk = 0 if had_bulk or not self._queue.bulk_waits else self._groups_since_bulk + 1
        return group

    def _bulk_since(self, error: Exception) -> float:
        """Return how old bulk work must be to fail by an error: it waits longer for a lock."""
        if self._lock_wait.is_over or not is_busy(error):
            return float("inf")
        return time.monotonic() - BULK_SECONDS

    def begin(self, raw: sqlite3.Connection) -> None:
        """Begin a transaction, after waiting for another process's write.

        Raises:
            DatabaseReplaced: The file was replaced.
            sqlite3.Error: The file is locked for too long, or cannot be written.
        """
        self._watch.check()
        self._lock_wait.retry_while_busy(lambda: raw.execute("BEGIN IMMEDIATE"))

    def commit(self, raw: sqlite3.Connection) -> None:
        """Commit, and record the file's stamp."""
        self._watch.stamp(raw)
        raw.execute("COMMIT")
        self._watch.committed()
