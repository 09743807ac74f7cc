"""The writer of a SQLite file: groups of operations, each one function in the connection's thread.

So no cancelled caller or busy event loop can leave a transaction open. With a thousand active campaigns three
operations hold the writer for long: taking over (0.1 s; 0.6 s after a move), a change of the workspace (0.13 s), a stop
of everything (0.35 s).
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from typing import Any

import aiosqlite

from outreach.core.clock import Clock
from outreach.errors import DatabaseLogDeleted, StorageError
from outreach.protocols.instrumentation import Instrumentation
from outreach.protocols.storage import Operation
from outreach.storage.base.writer import GroupWriter
from outreach.storage.sqlite.backend import Session
from outreach.storage.sqlite.errors import as_caller_error, name_of, translate
from outreach.storage.sqlite.position import PositionFile
from outreach.storage.sqlite.thread import LockWait, close, is_busy, post
from outreach.storage.sqlite.watch import FileWatch


class Transactions:
    """The transactions of a database that no other process can write or replace."""

    def __init__(self, raw: sqlite3.Connection) -> None:
        self._raw = raw

    def begin(self) -> None:
        """Begin a transaction."""
        self._raw.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Commit it."""
        self._raw.execute("COMMIT")

    def roll_back(self) -> None:
        """Undo it, if SQLite has not done so."""
        with suppress(sqlite3.Error):
            self._raw.execute("ROLLBACK")

    def check_open(self, error: BaseException) -> None:
        """Raise if SQLite has undone the whole transaction, as on a full disk."""
        if not self._raw.in_transaction:
            raise error if isinstance(error, sqlite3.Error) else sqlite3.OperationalError(str(error)) from error

    def may_run_again(self, error: BaseException) -> bool:
        """Return False: a file is not down for a while."""
        return False

    def as_caller_error(self, error: BaseException) -> BaseException:
        """Return the error for the caller."""
        return as_caller_error(error)

    def as_storage_error(self, error: BaseException) -> StorageError | None:
        """Return SQLite's error translated."""
        return translate(error) if isinstance(error, sqlite3.Error) else None

    def name_of(self, error: BaseException) -> str:
        """Return an error's short name."""
        return name_of(error)


class Writer:
    """Commits operations in groups over one connection, which it owns.

    Args:
        connection: Opened with `isolation_level=None`.
        session: The connection's unit of work and tables.
        clock: Measures the length of groups.
        watch: Detects that the file was replaced.
        positions: Records outside the file how far each commit has brought the ledger.
        instrumentation: Observes each group.
    """

    def __init__(
        self,
        connection: aiosqlite.Connection,
        session: Session,
        *,
        clock: Clock,
        watch: FileWatch,
        positions: PositionFile,
        instrumentation: Instrumentation | None = None,
    ) -> None:
        self._connection = connection
        self._lock_wait = LockWait()
        self._groups = GroupWriter(
            session,
            control=_WatchedTransactions(
                session.connection, lock_wait=self._lock_wait, watch=watch, positions=positions
            ),
            wake=self._wake,
            clock=clock,
            bulk_waits_for=lambda error: is_busy(error) and not self._lock_wait.is_over,
            instrumentation=instrumentation,
        )

    async def run(self, operation: Operation[Any], *, bulk: bool) -> Any:
        """Queue an operation; return its result, or raise its error, after the commit."""
        return await self._groups.run(operation, bulk=bulk)

    async def close(self) -> None:
        """Finish queued operations, unless another process holds the lock, and close the connection."""
        self._lock_wait.end()
        await close(self._connection)

    def _wake(self) -> None:
        post(self._connection, lambda _: self._groups.work())


class _WatchedTransactions(Transactions):
    """Transactions on a file that other processes write and that may be replaced."""

    def __init__(
        self, raw: sqlite3.Connection, *, lock_wait: LockWait, watch: FileWatch, positions: PositionFile
    ) -> None:
        super().__init__(raw)
        self._lock_wait = lock_wait
        self._watch = watch
        self._positions = positions
        self._saved_log = False

    def begin(self) -> None:
        """Begin a transaction, after waiting for another process's write.

        Raises:
            DatabaseReplaced: The file was replaced.
            sqlite3.Error: The file is locked for too long, or cannot be written.
        """
        try:
            self._watch.check()
        except DatabaseLogDeleted:
            self._save_log()
            raise
        self._lock_wait.retry_while_busy(super().begin)

    def _save_log(self) -> None:
        """Add a log that was deleted to the file while SQLite still has it, so that a kill loses nothing."""
        if not self._saved_log and self._watch.may_save_log():
            with suppress(sqlite3.Error):
                self._raw.execute("PRAGMA wal_checkpoint(FULL)")
        self._saved_log = True

    def commit(self) -> None:
        """Commit, and record the file's stamp and how far the ledger has come."""
        self._watch.stamp(self._raw)
        position = self._positions.before_commit(self._raw)
        super().commit()
        self._watch.committed()
        # Before the commit is reported, and so before a request that it allows.
        self._positions.record(position)
