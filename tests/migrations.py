"""Versions of the schema for tests of migrations."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest
from sqlite_utils import Database, Migrations

from outreach.storage.sqlite import schema

LATER: Final = "9001_later"

SINCE_FIRST: Final = tuple(schema.migrations())[1:]
"""The SQLite migrations of the package after the first one."""

_CHANGES: Final[Mapping[str, str]] = MappingProxyType({LATER: "ALTER TABLE audit ADD COLUMN later TEXT"})


def with_later_migrations(changes: Mapping[str, str] = _CHANGES) -> Migrations:
    """Return the SQLite migrations of the package, and a statement for each later one by its name."""
    later = Migrations("outreach")
    for migration in schema.MIGRATIONS.pending(Database(memory=True)):
        later(name=migration.name)(migration.fn)
    for name, statement in changes.items():
        later(name=name)(_running(statement))
    return later


@contextmanager
def later_version(changes: Mapping[str, str] = _CHANGES) -> Iterator[None]:
    """Let the package know later migrations within the block: a database that was made before it is older."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(schema, "MIGRATIONS", with_later_migrations(changes))
        yield


def record_migrations(file: Path, *names: str) -> None:
    """Let a SQLite database name these migrations as applied, and no others."""
    with closing(sqlite3.connect(file)) as raw, raw:
        raw.execute("DELETE FROM _sqlite_migrations WHERE migration_set = 'outreach'")
        raw.executemany(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('outreach', ?, 'x')",
            [(name,) for name in names],
        )


def _running(statement: str) -> Callable[[Database], None]:
    def run(database: Database) -> None:
        database.conn.execute(statement)

    return run
