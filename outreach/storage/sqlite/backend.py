"""The SQLite backend of a unit of work."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar

from outreach.core.clock import Clock, SystemClock
from outreach.protocols.storage import Operation
from outreach.serialization.columns import Value, json_text
from outreach.storage.sqlite import statements
from outreach.storage.unit_of_work import Transaction
from outreach.storage.unit_of_work.backend import Change, Row, Write, write_one_by_one
from outreach.storage.unit_of_work.kinds import Kind
from outreach.storage.unit_of_work.unit_of_work import UnitOfWork

T = TypeVar("T")

_SYSTEM: Final = SystemClock()

_ROW_ERRORS: Final = (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.InterfaceError, sqlite3.DataError)
"""The driver's errors about a row."""


class SqliteBackend:
    """One connection to a SQLite database; see `unit_of_work.backend.Backend`.

    Its owner opens it with `isolation_level=None`, and begins and ends its transactions. `clock` is the machine's.
    """

    own_clock = False

    def __init__(self, connection: sqlite3.Connection, clock: Clock = _SYSTEM) -> None:
        self.connection = connection
        self._clock = clock

    def now(self) -> datetime:
        """Return the time by the clock of this machine, on which all processes of the file run."""
        return self._clock.now()

    def version(self) -> int:
        """Return a number that changes when another connection has committed."""
        return int(self.connection.execute("PRAGMA data_version").fetchone()[0])

    def load(self, kind: Kind[Any], keys: Collection[Sequence[Value]]) -> Iterable[Row]:
        """Return the rows of a kind that have these keys."""
        if len(keys) == 1:
            [key] = keys
            return self.connection.execute(statements.load_one(kind), tuple(key)).fetchall()
        return self.connection.execute(statements.load_many(kind), (json_text([list(key) for key in keys]),)).fetchall()

    def query(self, name: str, values: Mapping[str, Value]) -> Sequence[Row]:
        """Run a named query."""
        return self.connection.execute(statements.statement(name), values).fetchall()

    def execute(self, name: str, values: Mapping[str, Value]) -> int:
        """Run a named statement that writes; return how many rows it wrote."""
        return self.connection.execute(statements.statement(name), values).rowcount

    def write(self, kind: Kind[Any], change: Change, rows: Sequence[Sequence[Value]]) -> int:
        """Write rows of a kind; return how many were written."""
        if not rows:
            return 0
        text, arrange = statements.write(kind, change)
        return self.connection.executemany(text, map(arrange, rows)).rowcount

    def is_row_error(self, error: Exception) -> bool:
        """Return whether an error is about a refused or unstorable row."""
        return isinstance(error, _ROW_ERRORS) or not isinstance(error, sqlite3.Error)

    def run_many(self, name: str, rows: Iterable[Sequence[Value]]) -> int:
        """Run a named statement for each of many rows of values; return how many rows it wrote."""
        return self.connection.executemany(statements.statement(name), rows).rowcount

    def write_all(self, writes: Sequence[Write]) -> Sequence[int]:
        """Make writes in this order; return how many rows each wrote."""
        return write_one_by_one(self, writes)


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
