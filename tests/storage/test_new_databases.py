"""The databases that tests make are those that the migrations make."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

from sqlite_utils import Database

from outreach.storage.sqlite.schema import MIGRATIONS
from tests.new_databases import migrate


def content(make: Callable[[Database], None]) -> dict[str, Any]:
    """Make a database, and return its schema and its rows, but for what differs each time."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as raw:
        make(Database(raw, execute_plugins=False))
        schema = raw.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name").fetchall()
        tables = [name for kind, name, *_ in schema if kind == "table"]
        made = {name: raw.execute(f'SELECT * FROM "{name}"').fetchall() for name in tables}  # noqa: S608 - our own names
        pragmas = [raw.execute(f"PRAGMA {name}").fetchone() for name in ("user_version", "application_id", "encoding")]
    made["_sqlite_migrations"] = [row[:3] for row in made["_sqlite_migrations"]]
    [[identity]] = made.pop("database_identity")
    assert len(identity) == 32
    return {"schema": schema, "rows": made, "pragmas": pragmas}


def test_a_new_database_of_a_test_is_as_the_migrations_make_it() -> None:
    """Its tables, indexes, triggers, rows and records of migrations; its identity is its own."""
    migrated = content(migrate)
    assert len(migrated["schema"]) > 50
    assert content(MIGRATIONS.apply) == migrated


def test_a_database_with_tables_is_migrated_as_ever() -> None:
    """A new one that is to stop at some migration, too."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as raw:
        database = Database(raw, execute_plugins=False)
        MIGRATIONS.apply(database, stop_before="0002_early_events")
        assert raw.execute("SELECT name FROM _sqlite_migrations").fetchall() == [("0001_first",)]
        MIGRATIONS.apply(database)
        assert raw.execute("SELECT count(*) FROM _sqlite_migrations").fetchone()[0] > 20
