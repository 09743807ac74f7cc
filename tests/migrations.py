"""Versions of the schema for tests of migrations."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest

from outreach.storage.sqlite import schema

LATER: Final = "9001_later"

_CHANGES: Final[Mapping[str, str]] = MappingProxyType({LATER: "ALTER TABLE audit ADD COLUMN later TEXT"})


def with_later_migrations(changes: Mapping[str, str] = _CHANGES) -> Mapping[str, str]:
    """Return the scripts of the package's SQLite migrations by their names, and later ones."""
    return {**schema.scripts(), **{name: f"{statement};" for name, statement in changes.items()}}


@contextmanager
def later_version(changes: Mapping[str, str] = _CHANGES) -> Iterator[None]:
    """Let the package know later migrations within the block: a database that was made before it is older."""
    with pytest.MonkeyPatch.context() as patched:
        later = with_later_migrations(changes)
        patched.setattr(schema, "scripts", lambda: later)
        yield


def record_migrations(file: Path, *names: str) -> None:
    """Let a SQLite database name these migrations as applied, and no others."""
    with closing(sqlite3.connect(file)) as raw, raw:
        raw.execute("DELETE FROM _sqlite_migrations WHERE migration_set = 'outreach'")
        raw.executemany(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('outreach', ?, 'x')",
            [(name,) for name in names],
        )
