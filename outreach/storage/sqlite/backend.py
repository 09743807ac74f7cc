"""The SQLite backend of a unit of work, its SQL, and the writer of a file.

The writer runs groups of operations, each one function in the connection's thread. So no cancelled caller or busy event
loop can leave a transaction open. With a thousand active campaigns three operations hold the writer for long: taking
over (0.1 s; 0.6 s after a move), a change of the workspace (0.13 s), a stop of everything (0.35 s).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache
from operator import itemgetter
from typing import Any, Final, TypeVar

import aiosqlite

from outreach.core.clock import Clock, SystemClock
from outreach.errors import DatabaseLogDeleted, StorageError
from outreach.protocols.instrumentation import Instrumentation
from outreach.protocols.storage import Operation
from outreach.serialization.documents import Value, json_text
from outreach.storage.base.writer import GroupWriter, Job
from outreach.storage.sqlite.errors import as_caller_error, is_busy, name_of, translate
from outreach.storage.sqlite.lock import PositionFile
from outreach.storage.sqlite.sql import statement
from outreach.storage.sqlite.thread import LockWait, close, post
from outreach.storage.sqlite.watch import FileWatch
from outreach.storage.unit_of_work import Transaction
from outreach.storage.unit_of_work.kinds import (
    Change,
    Kind,
    Row,
    Write,
    and_visible,
    everything_changed,
    write_one_by_one,
)
from outreach.storage.unit_of_work.unit_of_work import UnitOfWork

__all__ = [
    "load_many",
    "load_one",
    "statement",
    "write",
]


Arrange = Callable[[Sequence[Value]], Sequence[Value]]
"""Returns a row's values in the order of a statement's placeholders."""

# Only names of the package's own tables and columns are interpolated; values are bound.


@cache
def load_one(kind: Kind[Any]) -> str:
    """Return the query of one row; its values are those of the key."""
    where = " AND ".join(f"{name} = ?" for name in kind.key)
    return f"SELECT {', '.join(kind.columns)} FROM {kind.table} WHERE {where}{and_visible(kind)}"  # noqa: S608


@cache
def load_many(kind: Kind[Any]) -> str:
    """Return the query of the rows with many keys; its one value is a JSON array of keys, each an array."""
    # CROSS JOIN keeps SQLite from scanning the whole table instead of looking each key up.
    columns = ", ".join(f"{kind.table}.{name}" for name in kind.columns)
    on = " AND ".join(
        f"{kind.table}.{name} = json_extract(wanted.value, '$[{index}]')" for index, name in enumerate(kind.key)
    )
    return f"SELECT {columns} FROM json_each(?) AS wanted CROSS JOIN {kind.table} ON {on}{and_visible(kind)}"  # noqa: S608


@cache
def write(kind: Kind[Any], change: Change) -> tuple[str, Arrange]:
    """Return the statement that writes one row (for `delete`: one key), and what puts the row's values in its order."""
    match change:
        case "insert":
            return f"{_insert_into(kind)} ON CONFLICT DO NOTHING", _as_it_is
        case "put":
            changes = ", ".join(f"{name} = excluded.{name}" for name in kind.updatable)
            return f"{_insert_into(kind)} ON CONFLICT ({', '.join(kind.key)}) DO UPDATE SET {changes}", _as_it_is
        case "update":
            return _update(kind)
        case "delete":
            where = " AND ".join(f"{name} = ?" for name in kind.key)
            return f"DELETE FROM {kind.table} WHERE {where}", _as_it_is  # noqa: S608


def _as_it_is(row: Sequence[Value]) -> Sequence[Value]:
    return row


def _insert_into(kind: Kind[Any]) -> str:
    places = ", ".join("?" * len(kind.columns))
    return f"INSERT INTO {kind.table} ({', '.join(kind.columns)}) VALUES ({places})"  # noqa: S608


def _update(kind: Kind[Any]) -> tuple[str, Arrange]:
    changes = ", ".join(f"{name} = ?" for name in kind.updatable)
    where = " AND ".join(f"{name} = ?" for name in kind.key)
    arrange: Arrange = itemgetter(*(kind.columns.index(name) for name in (*kind.updatable, *kind.key)))
    return f"UPDATE {kind.table} SET {changes} WHERE {where}{and_visible(kind)}", arrange  # noqa: S608


T = TypeVar("T")

_SYSTEM: Final = SystemClock()

_ROW_ERRORS: Final = (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.InterfaceError, sqlite3.DataError)
"""The driver's errors about a row."""


class SqliteBackend:
    """One connection to a SQLite database; see `unit_of_work.kinds.Backend`.

    Its owner opens it with `isolation_level=None`, and begins and ends its transactions. `clock` is the machine's.
    """

    own_clock = False

    def __init__(self, connection: sqlite3.Connection, clock: Clock = _SYSTEM) -> None:
        self.connection = connection
        self._clock = clock
        self._version: int | None = None

    def now(self) -> datetime:
        """Return the time by the clock of this machine, on which all processes of the file run."""
        return self._clock.now()

    def changes(self) -> Callable[[str], bool] | None:
        """Return whether another connection has committed since the last call."""
        before, self._version = self._version, int(self.connection.execute("PRAGMA data_version").fetchone()[0])
        return None if self._version == before else everything_changed

    def load(self, kind: Kind[Any], keys: Collection[Sequence[Value]]) -> Iterable[Row]:
        """Return the rows of a kind that have these keys."""
        if len(keys) == 1:
            [key] = keys
            return self.connection.execute(load_one(kind), tuple(key)).fetchall()
        return self.connection.execute(load_many(kind), (json_text([list(key) for key in keys]),)).fetchall()

    def query(self, name: str, values: Mapping[str, Value]) -> Sequence[Row]:
        """Run a named query."""
        return self.connection.execute(statement(name), values).fetchall()

    def execute(self, name: str, values: Mapping[str, Value]) -> int:
        """Run a named statement that writes; return how many rows it wrote."""
        return self.connection.execute(statement(name), values).rowcount

    def write(self, kind: Kind[Any], change: Change, rows: Sequence[Sequence[Value]]) -> int:
        """Write rows of a kind; return how many were written."""
        if not rows:
            return 0
        text, arrange = write(kind, change)
        return self.connection.executemany(text, map(arrange, rows)).rowcount

    def is_row_error(self, error: Exception) -> bool:
        """Return whether an error is about a refused or unstorable row."""
        return isinstance(error, _ROW_ERRORS) or not isinstance(error, sqlite3.Error)

    def run_many(self, name: str, rows: Iterable[Sequence[Value]]) -> int:
        """Run a named statement for each of many rows of values; return how many rows it wrote."""
        return self.connection.executemany(statement(name), rows).rowcount

    def write_all(self, writes: Sequence[Write]) -> Sequence[int]:
        """Make writes in this order; return how many rows each wrote."""
        return write_one_by_one(self, writes)

    def write_numbered(self, writes: Sequence[Write], *, at_commit: bool) -> None:
        """Make writes that draw numbers."""
        write_one_by_one(self, writes)


class Session:
    """A connection with its unit of work and tables.

    The connection is opened with `isolation_level=None`; with `read_only` operations may only read.
    """

    def __init__(self, connection: sqlite3.Connection, *, read_only: bool = False, clock: Clock = _SYSTEM) -> None:
        self.connection = connection
        self.rows = UnitOfWork(SqliteBackend(connection, clock), read_only=read_only)
        self.transaction = Transaction(self.rows)


def read_now(session: Session, operation: Operation[T]) -> T:
    """Run a reading operation without rows cached before, which may have changed."""
    session.rows.forget()
    return operation(session.transaction)


class Transactions:
    """The transactions of a database that no other process can write or replace."""

    def __init__(self, raw: sqlite3.Connection) -> None:
        self._raw = raw

    def begin(self, workspace_ids: frozenset[str] | None = None) -> None:
        """Begin a transaction, which has the whole database."""
        self._raw.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Commit it."""
        self._raw.execute("COMMIT")

    def roll_back(self) -> None:
        """Undo it, if SQLite has not done so."""
        with suppress(sqlite3.Error):
            self._raw.execute("ROLLBACK")

    def cover(self, workspace_ids: frozenset[str] | None) -> bool:
        """Return True: a transaction has the whole database."""
        return True

    def check_open(self, error: BaseException) -> None:
        """Raise if SQLite has undone the whole transaction, as on a full disk."""
        if not self._raw.in_transaction:
            raise error if isinstance(error, sqlite3.Error) else sqlite3.OperationalError(str(error)) from error

    def fails_too(self, error: BaseException, first: Job, other: Job) -> bool:
        """Return True: all wait for the same lock."""
        return True

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

    def begin(self, workspace_ids: frozenset[str] | None = None) -> None:
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
