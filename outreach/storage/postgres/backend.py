"""The PostgreSQL backend of a unit of work: each call is one statement, whatever the number of rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, cast

from psycopg import Cursor

from outreach.serialization.documents import Value
from outreach.storage.postgres.connect import NUMBERS_KEY, PostgresConnection
from outreach.storage.postgres.errors import is_row_error
from outreach.storage.postgres.sql import Queries, Types, arrays, for_driver
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

TAKE_NUMBERS: Final = f"SELECT pg_advisory_xact_lock({NUMBERS_KEY})"
"""Has a transaction wait for the others that have drawn numbers; its own are then in the order of the commits."""

_COPY: Final = re.compile(r"^COPY ", re.MULTILINE)


class PostgresBackend:
    """The connection of the present transaction; see `unit_of_work.kinds.Backend`.

    Args:
        types: The type of each column.

    Attributes:
        connection: Its owner sets it at the beginning of each transaction.
        changed: What `changes` returns; its owner sets it at the beginning of each transaction.
    """

    own_clock = True

    connection: PostgresConnection

    def __init__(self, types: Types) -> None:
        self.changed: Callable[[str], bool] | None = everything_changed
        self._at_commit: Sequence[Write] = ()
        self._types = types
        self._queries = Queries(types)
        self._generated: dict[tuple[Any, ...], str] = {}

    def now(self) -> datetime:
        """Return the time by the clock of the server."""
        [(now,)] = self.connection.execute("SELECT clock_timestamp()").fetchall()
        return cast("datetime", now).astimezone(UTC)

    def changes(self) -> Callable[[str], bool] | None:
        """Return what other processes may have committed."""
        return self.changed

    def load(self, kind: Kind[Any], keys: Collection[Sequence[Value]]) -> Iterable[Row]:
        """Return the rows of a kind that have these keys."""
        return self.connection.execute(self._statement("load", kind), _by_column(keys)).fetchall()

    def query(self, name: str, values: Mapping[str, Value]) -> Sequence[Row]:
        """Run a named query."""
        return self.connection.execute(self._queries[name], values).fetchall()

    def execute(self, name: str, values: Mapping[str, Value]) -> int:
        """Run a named statement that writes; return how many rows it wrote."""
        return self.connection.execute(self._queries[name], values).rowcount

    def write(self, kind: Kind[Any], change: Change, rows: Sequence[Sequence[Value]]) -> int:
        """Write rows of a kind; return how many were written."""
        if not rows:
            return 0
        return self.connection.execute(self._statement(change, kind), _by_column(rows)).rowcount

    def is_row_error(self, error: Exception) -> bool:
        """Return whether an error is about a refused or unstorable row."""
        return is_row_error(error)

    def run_many(self, name: str, rows: Iterable[Sequence[Value]]) -> int:
        """Run a named statement over many rows of values; return how many rows it wrote."""
        statement, rows = self._queries[name], list(rows)
        if not rows:
            return 0
        if not _COPY.search(statement):
            return self.connection.execute(statement, _by_column(rows)).rowcount
        with self.connection.cursor() as cursor:
            with cursor.copy(statement) as copy:
                for row in rows:
                    copy.write_row(row)
            return cursor.rowcount

    def write_all(self, writes: Sequence[Write]) -> Sequence[int]:
        """Make writes in this order in one round trip; return how many rows each wrote."""
        if len(writes) < 2:
            return write_one_by_one(self, writes)
        with self.connection.pipeline():
            cursors = self._send(writes)
        return [cursor.rowcount for cursor in cursors]

    def write_numbered(self, writes: Sequence[Write], *, at_commit: bool) -> None:
        """Make writes that draw numbers, or keep them for the commit: until that, all others that draw wait."""
        self._at_commit = writes
        if not at_commit:
            with self.connection.pipeline():
                self.send_numbered()

    @property
    def is_keeping(self) -> bool:
        """Whether writes are kept for the commit."""
        return bool(self._at_commit)

    def send_numbered(self) -> None:
        """Send the writes that were kept for the commit, in the pipeline of the caller."""
        writes, self._at_commit = self._at_commit, ()
        if writes:
            # Always before both numbers, so that no two transactions wait for each other.
            self.connection.execute(TAKE_NUMBERS)
            self._send(writes)

    def _send(self, writes: Sequence[Write]) -> Sequence[Cursor[Any]]:
        return [
            self.connection.execute(
                self._queries[statement] if kind is None else self._statement(statement, kind), _by_column(rows)
            )
            for kind, statement, rows in writes
        ]

    def _statement(self, what: Change | str, kind: Kind[Any]) -> str:
        # Not the kind itself, which has no hash: two kinds of a table differ in their columns.
        known = (what, kind.table, kind.columns)
        if known not in self._generated:
            self._generated[known] = for_driver(_STATEMENTS[what](kind, self._types))
        return self._generated[known]


def _by_column(rows: Collection[Sequence[Value]]) -> list[list[Value]]:
    return [list(column) for column in zip(*rows, strict=True)]


# Only names of the package's own tables and columns are interpolated; values are bound.


def _load(kind: Kind[Any], types: Types) -> str:
    columns = ", ".join(f"{kind.table}.{name}" for name in kind.columns)
    wanted = f"{arrays(types, kind.table, kind.key)} AS wanted ({', '.join(kind.key)})"
    return f"SELECT {columns} FROM {wanted} JOIN {kind.table} ON {_same_key(kind, 'wanted')}{and_visible(kind)}"  # noqa: S608


def _insert(kind: Kind[Any], types: Types) -> str:
    return f"{_insert_into(kind, types)} ON CONFLICT DO NOTHING"


def _put(kind: Kind[Any], types: Types) -> str:
    changes = ", ".join(f"{name} = excluded.{name}" for name in kind.updatable)
    return f"{_insert_into(kind, types)} ON CONFLICT ({', '.join(kind.key)}) DO UPDATE SET {changes}"


def _insert_into(kind: Kind[Any], types: Types) -> str:
    rows = arrays(types, kind.table, kind.columns)
    return f"INSERT INTO {kind.table} ({', '.join(kind.columns)}) SELECT * FROM {rows}"  # noqa: S608


def _update(kind: Kind[Any], types: Types) -> str:
    changes = ", ".join(f"{name} = given.{name}" for name in kind.updatable)
    given = f"{arrays(types, kind.table, kind.columns)} AS given ({', '.join(kind.columns)})"
    return f"UPDATE {kind.table} SET {changes} FROM {given} WHERE {_same_key(kind, 'given')}{and_visible(kind)}"  # noqa: S608


def _delete(kind: Kind[Any], types: Types) -> str:
    gone = f"{arrays(types, kind.table, kind.key)} AS gone ({', '.join(kind.key)})"
    return f"DELETE FROM {kind.table} USING {gone} WHERE {_same_key(kind, 'gone')}"  # noqa: S608


def _same_key(kind: Kind[Any], other: str) -> str:
    return " AND ".join(f"{kind.table}.{name} = {other}.{name}" for name in kind.key)


_STATEMENTS: Final = {"load": _load, "insert": _insert, "put": _put, "update": _update, "delete": _delete}


class Session:
    """A unit of work with its tables; transactions give it a connection."""

    def __init__(self, types: Types, *, read_only: bool = False) -> None:
        self.backend = PostgresBackend(types)
        self.rows = UnitOfWork(self.backend, read_only=read_only)
        self.transaction = Transaction(self.rows)
