"""The SQL text that a SQLite database is read and written with, without a driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from operator import itemgetter
from typing import Any

from outreach.serialization.columns import Value
from outreach.storage.sqlite.sql import statement
from outreach.storage.unit_of_work.backend import Change
from outreach.storage.unit_of_work.kinds import Kind

__all__ = ["load_many", "load_one", "statement", "write"]

Arrange = Callable[[Sequence[Value]], Sequence[Value]]
"""Returns a row's values in the order of a statement's placeholders."""

# Only names of the package's own tables and columns are interpolated; values are bound.


@cache
def load_one(kind: Kind[Any]) -> str:
    """Return the query of one row; its values are those of the key."""
    where = " AND ".join(f"{name} = ?" for name in kind.key)
    return f"SELECT {', '.join(kind.columns)} FROM {kind.table} WHERE {where}{_visible(kind)}"  # noqa: S608


@cache
def load_many(kind: Kind[Any]) -> str:
    """Return the query of the rows with many keys; its one value is a JSON array of keys, each an array."""
    # CROSS JOIN keeps SQLite from scanning the whole table instead of looking each key up.
    columns = ", ".join(f"{kind.table}.{name}" for name in kind.columns)
    on = " AND ".join(
        f"{kind.table}.{name} = json_extract(wanted.value, '$[{index}]')" for index, name in enumerate(kind.key)
    )
    return f"SELECT {columns} FROM json_each(?) AS wanted CROSS JOIN {kind.table} ON {on}{_visible(kind)}"  # noqa: S608


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
    return f"UPDATE {kind.table} SET {changes} WHERE {where}{_visible(kind)}", arrange  # noqa: S608


def _visible(kind: Kind[Any]) -> str:
    return f" AND {kind.table}.{kind.hidden_by} IS NULL" if kind.hidden_by else ""
