"""Migrations in SQL that every database understands, as files here; what only one of them does is beside its backend.

Their numbers run through all of these folders, so that each database has its migrations in one order.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

_MOST_NAMED: Final = 3


def named(migrations: Sequence[str]) -> str:
    """Return migrations for people: their names, or of many how many, and the first and the last."""
    if len(migrations) <= _MOST_NAMED:
        return ", ".join(migrations)
    return f"{migrations[0]} to {migrations[-1]} ({len(migrations)})"


def migration_files(package: str) -> Sequence[Traversable]:
    """Return the migrations in a backend's package and those that all backends share, by their names."""
    # A package without a file of data has no directory in the executable (docs/binary.md).
    folders = [folder for name in (__name__, package) if (folder := resources.files(name)).is_dir()]
    files = [file for folder in folders for file in folder.iterdir()]
    return sorted((file for file in files if file.name.endswith(".sql")), key=lambda file: file.name)
