"""The writer: operations queue up and are committed in groups.

A commit waits for the disk, and a disk does as much for fifty operations as for one. So the operations that
have queued up while the last group was committed make the next: one `BEGIN IMMEDIATE`, each operation in a
savepoint of its own, one `COMMIT`, and only then the answers. All of it is one function that runs in the
connection's thread: a caller that goes away, or an event loop that is busy, cannot leave a transaction open.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import aiosqlite

from outreach.clock import Clock
from outreach.errors import StorageError
from outreach.protocols.storage import Operation
from outreach.storage.sqlite.errors import translate
from outreach.storage.sqlite.jobs import Job, Queue, deliver
from outreach.storage.sqlite.savepoint import savepoint
from outreach.storage.sqlite.thread import close, post
from outreach.storage.sqlite.transaction import SqliteTransaction

GROUP_SECONDS: Final = 0.025
"""A group that has lasted this long takes no further operation."""

BULK_TURN: Final = 8
"""Large work that has waited for so many groups goes first: others delay it and never stop it."""

BREATH: Final = 1 / 8
"""Between groups that follow at once, as a part of the first one's length: another process that waits to write
looks now and then whether it may, and has to find a gap."""


class Writer:
    """Commits operations in groups over one connection, which it owns.

    Args:
        connection: Opened with `isolation_level=None`.
        transaction: The tables of that connection.
        clock: Where the length of a group is measured.
    """

    def __init__(self, connection: aiosqlite.Connection, transaction: SqliteTransaction, *, clock: Clock) -> None:
        self._connection = connection
        self._transaction = transaction
        self._clock = clock
        self._queue = Queue()
        self._queue.add(self._wake)
        self._groups_since_bulk = 0

    async def run(self, operation: Operation[Any], *, bulk: bool) -> Any:
        """Queue an operation; return its result, or raise its error, after the commit."""
        return await self._queue.submit(operation, bulk=bulk).outcome()

    async def close(self) -> None:
        """Do what is queued, then close the connection."""
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
            time.sleep(min(self._clock.monotonic() - begun, 10 * GROUP_SECONDS) * BREATH)

    def _commit_group(self, raw: sqlite3.Connection) -> Sequence[Job]:
        """Run and commit one group; return its jobs, each with its outcome."""
        group: list[Job] = []
        try:
            raw.execute("BEGIN IMMEDIATE")
            self._run_group(raw, group)
            raw.execute("COMMIT")
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                raw.execute("ROLLBACK")
            # Where it did not even begin, everybody else would wait as long and in vain: all are told.
            lost = group or self._queue.take_all()
            for job in lost:
                if job.error is None:
                    job.fail(_lost(error))
            return lost
        return group

    def _run_group(self, raw: sqlite3.Connection, group: list[Job]) -> None:
        """Run jobs until the group has lasted long enough, or has had its one piece of large work.

        Raises:
            sqlite3.Error: SQLite has undone the whole group by itself: the disk is full, or worse.
        """
        until = self._clock.monotonic() + GROUP_SECONDS
        job = self._queue.take(bulk_first=self._groups_since_bulk >= BULK_TURN)
        while job is not None:
            group.append(job)
            try:
                with savepoint(raw):
                    job.run(self._transaction)
            except BaseException as error:  # whatever it is, it is the caller's
                job.fail(error)
                if not raw.in_transaction:
                    raise error if isinstance(error, sqlite3.Error) else sqlite3.OperationalError(str(error)) from error
            if job.bulk or self._clock.monotonic() >= until:
                break
            job = self._queue.take()
        had_bulk = bool(group) and group[-1].bulk
        self._groups_since_bulk = 0 if had_bulk or not self._queue.bulk_waits else self._groups_since_bulk + 1


def _lost(error: sqlite3.Error) -> StorageError:
    translated = translate(error)
    lost = type(translated)(f"Nothing was written. {translated.message}")
    lost.__cause__ = error
    return lost
