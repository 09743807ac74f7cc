"""A PostgreSQL server for the benchmark, whose commits are durable, and what a run has changed in a database of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

import psutil
import psycopg
from psycopg.sql import SQL, Identifier

from benchmarks.ledger import Changes, Table, parents_first
from tests.postgres import Server

_DURABLE: Final = {"max_connections": "100", "max_wal_size": "4GB", "shared_buffers": "256MB"}
"""As it comes, but for checkpoints, which would meet one side and not the other, and what a small server has."""

Rows = Mapping[tuple[Any, ...], tuple[Any, ...]]


@contextmanager
def serving() -> Iterator[Server]:
    """Start a server with data of its own; it is removed at the end."""
    server = Server(_DURABLE)
    try:
        yield server
    finally:
        server.remove()


def computing(server: Server) -> float:
    """Return the seconds of computing of the server's processes that run now."""
    first = psutil.Process(server.process_id)
    total = 0.0
    for process in (first, *first.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def changes(before: str, after: str) -> list[Changes]:
    """Return what differs between two databases, given by their URLs, parents first; keys are compared as they are."""
    with psycopg.connect(before) as one, psycopg.connect(after) as other:
        found = [_changes_of(table, _rows(one, table), _rows(other, table)) for table in tables(other)]
    return [one for one in found if one.rows]


def tables(connection: psycopg.Connection[Any]) -> list[Table]:
    """Return the engine's tables that have a key, each after those that it refers to."""
    found = connection.execute(
        """
        SELECT
            tables.relname::text,
            array_agg(columns.attname::text ORDER BY columns.attnum),
            array_agg(columns.attname::text ORDER BY array_position(keys.indkey::int2[], columns.attnum))
                FILTER (WHERE columns.attnum = ANY (keys.indkey::int2[])),
            ARRAY(SELECT confrelid::regclass::text FROM pg_constraint WHERE contype = 'f' AND conrelid = tables.oid)
        FROM pg_class AS tables
        JOIN pg_index AS keys ON keys.indrelid = tables.oid AND keys.indisprimary
        JOIN pg_attribute AS columns
            ON columns.attrelid = tables.oid AND columns.attnum > 0 AND NOT columns.attisdropped
        WHERE tables.relnamespace = 'outreach'::regnamespace AND tables.relkind = 'r'
        GROUP BY tables.oid
        ORDER BY tables.relname
        """
    ).fetchall()
    return parents_first(
        [
            Table(name=name, columns=columns, key=key, parents=[parent.rpartition(".")[2] for parent in parents])
            for name, columns, key, parents in found
        ]
    )


def _rows(connection: psycopg.Connection[Any], table: Table) -> Rows:
    query = SQL("SELECT {} FROM outreach.{}").format(
        SQL(", ").join(map(Identifier, table.columns)), Identifier(table.name)
    )
    places = [table.columns.index(column) for column in table.key]
    return {tuple(row[place] for place in places): row for row in connection.execute(query)}


def _changes_of(table: Table, before: Rows, after: Rows) -> Changes:
    name, wheres = f'outreach."{table.name}"', " AND ".join(f'"{column}" = %s' for column in table.key)
    new = [row for key, row in sorted(after.items()) if key not in before]
    changed = {key: (before[key], row) for key, row in after.items() if key in before and before[key] != row}
    differing = [
        place for place in range(len(table.columns)) if any(old[place] != row[place] for old, row in changed.values())
    ]
    settings = ", ".join(f'"{table.columns[place]}" = %s' for place in differing)
    # As they were sent: one of each campaign, then the next of each.
    updated = [
        (*(changed[key][1][place] for place in differing), *key) for key in sorted(changed, key=lambda key: key[::-1])
    ]
    columns, marks = ", ".join(f'"{column}"' for column in table.columns), ", ".join(["%s"] * len(table.columns))
    # Names of tables and columns are the database's own, and quoted.
    return Changes(
        table=table.name,
        inserted=(f"INSERT INTO {name} ({columns}) VALUES ({marks})", new),  # noqa: S608
        updated=(f"UPDATE {name} SET {settings} WHERE {wheres}", updated),  # noqa: S608
        deleted=(f"DELETE FROM {name} WHERE {wheres}", [key for key in before if key not in after]),  # noqa: S608
    )


def without_triggers(connection: psycopg.Connection[Any]) -> None:
    """Switch triggers off: the rows that they write are among those that are compared."""
    for table in tables(connection):
        connection.execute(SQL("ALTER TABLE outreach.{} DISABLE TRIGGER USER").format(Identifier(table.name)))


def wait_for(connection: psycopg.Connection[Any], gate: int) -> None:
    """Wait until nobody holds a gate shut.

    Not in one statement: it would keep its snapshot, and the server every version of a row since then.
    """
    connection.execute("SET lock_timeout = '100ms'")
    while True:
        with suppress(psycopg.errors.LockNotAvailable):
            connection.execute("SELECT pg_advisory_lock_shared(%s), pg_advisory_unlock_shared(%s)", (gate, gate))
            return


def waiting_at(connection: psycopg.Connection[Any], gate: int) -> int:
    """Return how many wait at a gate that this connection holds shut."""
    [(count,)] = connection.execute(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND NOT granted "
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        (gate,),
    ).fetchall()
    return int(count)
