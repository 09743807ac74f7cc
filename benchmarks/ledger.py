"""What a run of the engine has changed in its file, read from the file itself, and the same changes made again.

No table and no column is named here: whatever the schema becomes, the same rows are compared.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs

T = TypeVar("T")

_AS_THE_ENGINE: Final = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -16384",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
)


@attrs.frozen(kw_only=True)
class Table:
    """A table as its file describes it.

    Attributes:
        name: Its name.
        columns: Its columns, but for those that are computed.
        key: The columns that tell rows apart.
        parents: The tables that it refers to.
    """

    name: str
    columns: Sequence[str]
    key: Sequence[str]
    parents: Sequence[str]

    @property
    def stored(self) -> Sequence[str]:
        """All columns, with what tells rows apart where that is none of them."""
        return [*(column for column in self.key if column not in self.columns), *self.columns]


@attrs.frozen(kw_only=True)
class Changes:
    """How the rows of one table differ between two files.

    Attributes:
        inserted: Statement for a new row, and the rows.
        updated: Statement for a changed row, and for each the changed columns, then the key.
        deleted: Statement for a row that is gone, and the keys.
    """

    table: str
    inserted: tuple[str, Sequence[tuple[Any, ...]]]
    updated: tuple[str, Sequence[tuple[Any, ...]]]
    deleted: tuple[str, Sequence[tuple[Any, ...]]]

    @property
    def rows(self) -> int:
        """How many rows differ."""
        return sum(len(rows) for _, rows in (self.inserted, self.updated, self.deleted))


@contextmanager
def opened(path: Path, *, any_thread: bool = False) -> Iterator[sqlite3.Connection]:
    """Open a file as the engine does, durable commits included, with transactions that are begun by hand."""
    with closing(
        sqlite3.connect(path, isolation_level=None, timeout=60, cached_statements=256, check_same_thread=not any_thread)
    ) as connection:
        for pragma in _AS_THE_ENGINE:
            connection.execute(pragma)
        yield connection


def copy(source: Path, target: Path) -> Path:
    """Copy a database that may be open; return the copy."""
    target.unlink(missing_ok=True)
    with closing(sqlite3.connect(source)) as reading, closing(sqlite3.connect(target)) as writing:
        reading.backup(writing)
    return target


def changes(before: Path, after: Path) -> list[Changes]:
    """Return what differs between two states of one file, parents first."""
    with closing(sqlite3.connect(after)) as connection:
        connection.execute("ATTACH ? AS before", (f"{before}",))
        found = [_changes_of(connection, table) for table in tables(connection)]
    return [one for one in found if one.rows]


def apply(connection: sqlite3.Connection, todo: Sequence[Changes], part: int, parts: int) -> None:
    """Make one of so many equal parts of the changes in one transaction; the first takes all that is deleted."""
    connection.execute("BEGIN IMMEDIATE")
    # Parts are cut table by table: what a row refers to may come a little later in the same transaction.
    connection.execute("PRAGMA defer_foreign_keys = ON")
    for change in todo if part == 0 else ():
        connection.executemany(*change.deleted)
    for change in todo:
        for statement, rows in (change.inserted, change.updated):
            if some := slice_of(rows, part, parts):
                connection.executemany(statement, some)
    connection.execute("COMMIT")


def slice_of(rows: Sequence[T], part: int, parts: int) -> Sequence[T]:
    """Return one of so many equal parts, the rest spread evenly."""
    return rows[len(rows) * part // parts : len(rows) * (part + 1) // parts]


def drop_triggers(path: Path) -> None:
    """Drop triggers: the rows that they write are among those that are compared."""
    with opened(path) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f'DROP TRIGGER "{name}"')


def drop_indexes(path: Path, names: Sequence[str]) -> None:
    """Drop indexes, and give back what they took."""
    with opened(path) as connection:
        for name in names:
            connection.execute(f'DROP INDEX "{name}"')
        connection.execute("VACUUM")


def size_of(path: Path) -> int:
    """Return the bytes that a file's rows and indexes take."""
    with opened(path) as connection:
        pages, unused, size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - unused) * size)


def assert_same(one: Path, other: Path) -> None:
    """Check that two files hold the same rows.

    Raises:
        RuntimeError: They do not; the message names the tables.
    """
    if different := changes(one, other):
        raise RuntimeError(f"Not the same rows: { {change.table: change.rows for change in different} }")


def most_grown(before: Path, after: Path) -> str:
    """Return the table that got the most new rows."""
    return max(changes(before, after), key=lambda change: len(change.inserted[1])).table


def tables(connection: sqlite3.Connection) -> list[Table]:
    """Return the tables of a file, each after those that it refers to."""
    names = [
        name
        for (name,) in connection.execute(
            "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' "
            "AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name"
        )
    ]
    return parents_first([_table(connection, name) for name in names])


def parents_first(found: Sequence[Table]) -> list[Table]:
    """Return the tables, each after those that it refers to."""
    left, ordered = list(found), []
    while left:
        waiting = {table.name for table in left}
        ready = [table for table in left if not waiting & set(table.parents) - {table.name}] or left
        ordered += ready
        left = [table for table in left if table not in ready]
    return ordered


def _table(connection: sqlite3.Connection, name: str) -> Table:
    # The last column of table_xinfo tells those that are computed from others.
    columns = [row for row in connection.execute(f'PRAGMA table_xinfo("{name}")') if row[6] == 0]
    key = [column for _, column in sorted((row[5], row[1]) for row in columns if row[5])]
    parents = [row[2] for row in connection.execute(f'PRAGMA foreign_key_list("{name}")')]
    return Table(name=name, columns=[row[1] for row in columns], key=key or ["rowid"], parents=parents)


def _changes_of(connection: sqlite3.Connection, table: Table) -> Changes:
    name, key = f'"{table.name}"', [f'"{column}"' for column in table.key]
    columns = [f'"{column}"' for column in table.columns]
    same = " AND ".join(f"a.{column} IS b.{column}" for column in key)
    others = [column for column in columns if column not in key]
    # Names of tables and columns are the file's own, and quoted.
    inserted = connection.execute(
        f"SELECT {', '.join(f'a.{column}' for column in columns)} FROM main.{name} AS a "  # noqa: S608
        f"WHERE NOT EXISTS (SELECT 1 FROM before.{name} AS b WHERE {same}) ORDER BY {', '.join(key)}"
    ).fetchall()
    deleted = connection.execute(
        f"SELECT {', '.join(f'b.{column}' for column in key)} FROM before.{name} AS b "  # noqa: S608
        f"WHERE NOT EXISTS (SELECT 1 FROM main.{name} AS a WHERE {same})"
    ).fetchall()
    differing = _differing_columns(connection, name, same, others)
    wheres = " AND ".join(f"{column} IS ?" for column in key)
    updated: list[tuple[Any, ...]] = []
    if differing:
        differs = " OR ".join(f"a.{column} IS NOT b.{column}" for column in differing)
        updated = connection.execute(
            f"SELECT {', '.join(f'a.{column}' for column in (*differing, *key))} FROM main.{name} AS a "  # noqa: S608
            f"JOIN before.{name} AS b ON {same} WHERE {differs} "
            # As they were sent: one of each campaign, then the next of each.
            f"ORDER BY {', '.join(f'a.{column}' for column in reversed(key))}"
        ).fetchall()
    marks = ", ".join("?" * len(columns))
    return Changes(
        table=table.name,
        inserted=(f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({marks})", inserted),  # noqa: S608
        updated=(
            f"UPDATE {name} SET {', '.join(f'{column} = ?' for column in differing or key)} WHERE {wheres}",  # noqa: S608
            updated,
        ),
        deleted=(f"DELETE FROM {name} WHERE {wheres}", deleted),  # noqa: S608
    )


def _differing_columns(connection: sqlite3.Connection, name: str, same: str, others: Sequence[str]) -> list[str]:
    if not others:
        return []
    counts = connection.execute(
        f"SELECT {', '.join(f'SUM(a.{column} IS NOT b.{column})' for column in others)} "  # noqa: S608
        f"FROM main.{name} AS a JOIN before.{name} AS b ON {same}"
    ).fetchone()
    return [column for column, count in zip(others, counts, strict=True) if count]
