"""New SQLite databases for tests: made as the migrations leave them, in a tenth of the time that those take.

Each process runs the migrations once. A database that has tables already is migrated, as ever.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import cache

import pytest
from sqlite_utils import Database, Migrations

from outreach.storage.sqlite.schema import MIGRATIONS

_apply = Migrations.apply


@pytest.fixture(autouse=True, scope="session")
def new_databases() -> Iterator[None]:
    """Let all new databases of this process be made so."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Migrations, "apply", make_or_migrate)
        yield


def migrate(database: Database) -> None:
    """Migrate a database as the package does."""
    _apply(MIGRATIONS, database)


def make_or_migrate(
    migrations: Migrations, database: Database, *, stop_before: str | Iterable[str] | None = None
) -> None:
    """Fill an empty database, or migrate another one; in the caller's transaction, if there is one."""
    if migrations is not MIGRATIONS or stop_before is not None or database.table_names():
        _apply(migrations, database, stop_before=stop_before)
        return
    with database.atomic():
        for statement in _statements():
            database.conn.execute(statement)
        database.conn.execute("UPDATE database_identity SET id = lower(hex(randomblob(16)))")


@cache
def _statements() -> Sequence[str]:
    """Return what makes the tables and rows of a migrated database.

    `iterdump` is no help: what it writes of a virtual table takes effect when the file is opened again.
    """
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as raw:
        migrate(Database(raw, execute_plugins=False))
        made_by_another = {row[1] for row in raw.execute("PRAGMA table_list") if row[2] == "shadow"}
        found: list[str] = []
        for kind, name, sql in raw.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY rowid").fetchall():
            if sql is None or name in made_by_another or name.startswith("sqlite_"):
                continue
            found.append(sql)
            if kind == "table":
                # Before there are triggers on it.
                found += _insertions(raw, name)
        return found


def _insertions(raw: sqlite3.Connection, table: str) -> Sequence[str]:
    """Return the statements that write a table's rows."""
    columns = [row[1] for row in raw.execute(f'PRAGMA table_info("{table}")')]
    values = " || ', ' || ".join(f'quote("{column}")' for column in columns)
    listed = raw.execute(f'SELECT {values} FROM "{table}"').fetchall()  # noqa: S608 - names of our own schema
    return [f'INSERT INTO "{table}" VALUES ({row})' for (row,) in listed]  # noqa: S608
