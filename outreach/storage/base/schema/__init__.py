"""Migrations: SQL files by name. Those that every database understands are here, others beside their backend.

The migrations in `FIRST` make the whole schema. Numbers run through all of these folders, so that each database has its
migrations in one order. Those of `FIRST` follow the numbers that they replace: to an earlier version of this package
they are newer ones. A word in braces stands for what each database has in its own way:

| word | meaning | SQLite | PostgreSQL |
|---|---|---|---|
| `{text}` | a text that sorts by its code points; also a time or JSON | `TEXT` | `TEXT COLLATE "C"` |
| `{integer}` | an integer of 64 bits | `INTEGER` | `BIGINT` |
| `{bytes}` | bytes | `BLOB` | `BYTEA` |
| `{strict}` | at the end of a table: values have the types of their columns | `STRICT` | |
| `{strict_by_key}` | `{strict}`, and rows are stored in the order of the key | `STRICT, WITHOUT ROWID` | |
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from importlib import resources
from typing import Final

import attrs

from outreach.errors import DatabaseNewer, DatabaseOlder, StorageError
from outreach.storage.base.transfer import UNFINISHED, UNFINISHED_MESSAGE

FIRST: Final = ("0055_shared_tables", "0056_own_tables", "0057_dependent_tables")
"""The migrations that make the schema of a new database; they replace all earlier ones."""

_MOST_NAMED: Final = 3

_WORD: Final = re.compile(r"\{(\w+)\}")


@attrs.frozen(kw_only=True)
class Version:
    """The version of a database.

    Attributes:
        applied: Its applied migrations; those that `FIRST` replaces count as the ones in it.
        pending_migrations: Migrations of this package that it lacks.
        newer: Its migrations that this package does not know.
        is_foreign: Whether it has tables, but none of this package.
    """

    applied: Sequence[str]
    pending_migrations: Sequence[str]
    newer: Sequence[str]
    is_foreign: bool


def version_by(recorded: Sequence[str], known: Collection[str], *, last_replaced: str, has_tables: bool) -> Version:
    """Return the version of a database.

    Args:
        recorded: The migrations that it names.
        known: The migrations of this package, in order.
        last_replaced: The last of the migrations that `FIRST` replaces.
        has_tables: Whether it has any table.

    Raises:
        DatabaseOlder: It lacks some of the migrations that `FIRST` replaces.
    """
    applied = _with_first(recorded, last_replaced)
    return Version(
        applied=applied,
        pending_migrations=[name for name in known if name not in applied],
        newer=sorted(set(applied).difference(known)),
        is_foreign=not applied and has_tables,
    )


def require_usable(version: Version, *, foreign: str) -> None:
    """Raise if a database is newer or foreign, or holds half a copy; `foreign` is the message for a foreign one."""
    if UNFINISHED in version.newer:
        raise StorageError(UNFINISHED_MESSAGE)
    if version.newer:
        raise DatabaseNewer(f"{written_by_newer('This database', version)} Nothing was changed. Install that version.")
    if version.is_foreign:
        raise StorageError(foreign)


def pending(version: Version) -> DatabaseOlder:
    """Return the error of a database whose migrations must not be applied here."""
    return DatabaseOlder(
        f"{written_by_older('This database', version)} Nothing was changed. "
        "The process that dispatches from it applies them when it opens it."
    )


def written_by_newer(database: str, version: Version) -> str:
    """Return the sentence that a newer version of this package wrote a database; `database` is its subject."""
    return f"{database} was written by a newer version of this package: it has {', '.join(version.newer)}."


def written_by_older(database: str, version: Version) -> str:
    """Return the sentence that an older version of this package wrote a database; `database` is its subject."""
    return (
        f"{database} was written by an older version of this package: its migrations "
        f"{named(version.pending_migrations)} are pending."
    )


def named(migrations: Sequence[str]) -> str:
    """Return migrations for people: their names, or of many how many, and the first and the last."""
    if len(migrations) <= _MOST_NAMED:
        return ", ".join(migrations)
    return f"{migrations[0]} to {migrations[-1]} ({len(migrations)})"


def read_migrations(package: str, words: Mapping[str, str]) -> Mapping[str, str]:
    """Return the scripts in a backend's package and those that all backends share, by their names, oldest first.

    Args:
        package: The package.
        words: The text of each word in braces.
    """
    # A package without a file of data has no directory in the executable (docs/binary.md).
    folders = [folder for name in (__name__, package) if (folder := resources.files(name)).is_dir()]
    files = [file for folder in folders for file in folder.iterdir()]
    scripts = {file.name.removesuffix(".sql"): file.read_text("utf-8") for file in files if file.name.endswith(".sql")}
    return {name: _WORD.sub(lambda found: words[found[1]], scripts[name]) for name in sorted(scripts)}


def _with_first(recorded: Sequence[str], last_replaced: str) -> Sequence[str]:
    """Return the recorded migrations with `FIRST` in the place of those that it replaces."""
    replaced = [name for name in recorded if name <= last_replaced]
    if not replaced:
        return recorded
    if last_replaced not in replaced:
        raise DatabaseOlder(
            f"This database is too old for this version of the package: its last migration is {max(replaced)}, and "
            f"{last_replaced} is needed. Nothing was changed. Migrate it with the last version that has the migration "
            f"{last_replaced} (outreach-server db migrate), then use this version."
        )
    return [*FIRST, *(name for name in recorded if name not in replaced and name not in FIRST)]
