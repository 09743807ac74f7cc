"""Every write to a file, in its order, noted by triggers, and the same writes made again.

Where `ledger` compares two states, this has what lay between them: an intent that was written before its outcome.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import attrs

from benchmarks.ledger import Table, slice_of, tables

_PREFIX: Final = "bench_writes_of_"
_COUNTER: Final = f"{_PREFIX}all"


@attrs.frozen
class Write:
    """One write.

    Attributes:
        number: Its place among all.
        level: The place of its table: those that it refers to have lower ones.
        statement: What was written.
        values: Its values.
    """

    number: int
    level: int
    statement: str
    values: tuple[Any, ...]


def record(database: Path) -> None:
    """Have every write to a file noted in it from now on."""
    with closing(sqlite3.connect(database)) as connection:
        noted = tables(connection)
        connection.execute(f'CREATE TABLE "{_COUNTER}" AS SELECT 0 AS number')
        for table in noted:
            count = len(table.stored)
            old, new = ([f"{which}{number}" for number in range(count)] for which in ("old", "new"))
            connection.execute(f'CREATE TABLE "{_PREFIX}{table.name}" (number, {", ".join((*old, *new))})')
            for event, columns in (("INSERT", new), ("UPDATE", (*old, *new)), ("DELETE", old)):
                values = [f'{column[:3].upper()}."{table.stored[int(column[3:])]}"' for column in columns]
                # Names of tables and columns are the file's own, and quoted.
                connection.execute(
                    f'CREATE TRIGGER "{_PREFIX}{table.name}_{event}" AFTER {event} ON "{table.name}" BEGIN '  # noqa: S608
                    f'UPDATE "{_COUNTER}" SET number = number + 1; '
                    f'INSERT INTO "{_PREFIX}{table.name}" (number, {", ".join(columns)}) '
                    f'SELECT number, {", ".join(values)} FROM "{_COUNTER}"; END'
                )
        connection.commit()


def forget(database: Path) -> None:
    """Take what `record` has put into a file out of it."""
    with closing(sqlite3.connect(database)) as connection:
        for kind in ("TRIGGER", "TABLE"):
            named = "SELECT name FROM sqlite_master WHERE type = ? AND name GLOB ?"
            for (name,) in connection.execute(named, (kind.lower(), f"{_PREFIX}*")).fetchall():
                connection.execute(f'DROP {kind} "{name}"')
        connection.commit()


def recorded(database: Path) -> list[Write]:
    """Return all writes that were noted, in their order."""
    with closing(sqlite3.connect(database)) as connection:
        noted = [table for table in tables(connection) if not table.name.startswith(_PREFIX)]
        writes = [
            _write(level, table, row)
            for level, table in enumerate(noted)
            for row in connection.execute(f'SELECT * FROM "{_PREFIX}{table.name}"')  # noqa: S608
        ]
    return sorted(writes, key=attrgetter("number"))


def replay(connection: sqlite3.Connection, writes: Sequence[Write], part: int, parts: int) -> None:
    """Make one of so many equal parts of the writes in one transaction, by `executemany` where they are alike."""
    connection.execute("BEGIN IMMEDIATE")
    # Table by table, so that they are alike; what a row refers to may come a little later.
    connection.execute("PRAGMA defer_foreign_keys = ON")
    some = sorted(slice_of(writes, part, parts), key=attrgetter("level"))
    for statement, alike in groupby(some, key=attrgetter("statement")):
        connection.executemany(statement, [write.values for write in alike])
    connection.execute("COMMIT")


def _write(level: int, table: Table, row: Sequence[Any]) -> Write:
    """Return the write that a note tells of: without an old key it was an insertion, without a new one a deletion."""
    count = len(table.stored)
    old, new = row[1 : count + 1], row[count + 1 :]
    columns = [f'"{column}"' for column in table.stored]
    keys = [table.stored.index(column) for column in table.key]
    where = " AND ".join(f"{columns[key]} IS ?" for key in keys)
    key_values = [old[key] for key in keys]
    values: Sequence[Any]
    # Names of tables and columns are the file's own, and quoted.
    if all(value is None for value in key_values):
        marks, values = ", ".join("?" * count), new
        statement = f'INSERT OR REPLACE INTO "{table.name}" ({", ".join(columns)}) VALUES ({marks})'  # noqa: S608
    elif all(new[key] is None for key in keys):
        statement, values = f'DELETE FROM "{table.name}" WHERE {where}', key_values  # noqa: S608
    else:
        # Only what differs: an index on a column that is set is written anew even where the value is the same.
        changed = [number for number in range(count) if old[number] != new[number]] or keys[:1]
        settings = ", ".join(f"{columns[number]} = ?" for number in changed)
        values = (*(new[number] for number in changed), *key_values)
        statement = f'UPDATE "{table.name}" SET {settings} WHERE {where}'  # noqa: S608
    return Write(row[0], level, statement, tuple(values))
