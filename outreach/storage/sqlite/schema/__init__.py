"""The schema and its migrations: SQL files by name, each in one transaction with its record, forward only.

sqlite-utils applies them and writes the records, which are in `_sqlite_migrations`; it is imported for that alone.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from types import MappingProxyType
from typing import Final, Literal

from outreach.errors import DatabaseInUse, DatabaseOlder, StorageError
from outreach.storage.base.progress import Progress, ProgressCallback
from outreach.storage.base.schema import FIRST, Version, pending, read_migrations, require_usable, version_by
from outreach.storage.sqlite.copying import integrity_problems, is_archive, needs_migration, require_no_archive
from outreach.storage.sqlite.errors import is_busy
from outreach.storage.sqlite.migration_backup import backup_during_migration, remove_migration_backup

MIGRATION_SET: Final = "outreach"
"""The name of these migrations in the records."""

_RECORDED: Final = "SELECT name FROM _sqlite_migrations WHERE migration_set = ? ORDER BY rowid"
_TABLES: Final = "SELECT name FROM sqlite_schema WHERE type = 'table'"

LAST_REPLACED: Final = "0052_lists_by_metadata"
"""A file that has this migration has the schema that `FIRST` makes."""

_RECORD_FIRST: Final = """
    INSERT OR IGNORE INTO _sqlite_migrations (migration_set, name, applied_at) VALUES (?, ?, datetime('now'))
"""
"""Only for a database that has the migrations which `FIRST` replaces: sqlite-utils would apply those in it too."""

_FOREIGN: Final = (
    "This SQLite file holds the tables of something else. Nothing was changed. Name another file; "
    "a missing one is created."
)

_LOG_SECONDS: Final = 5
_LOG_PAUSE_SECONDS: Final = 0.02


def statements(text: str) -> Iterator[str]:
    """Yield the statements of a script."""
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


@cache
def scripts() -> Mapping[str, str]:
    """Return the script of each migration by its name, oldest first."""
    words = {
        "text": "TEXT",
        "integer": "INTEGER",
        "bytes": "BLOB",
        "strict": "STRICT",
        "strict_by_key": "STRICT, WITHOUT ROWID",
    }
    return MappingProxyType(read_migrations(__name__, words))


def migrations() -> Mapping[str, Sequence[str]]:
    """Return the statements of each migration by its name, oldest first."""
    return {name: tuple(statements(script)) for name, script in scripts().items()}


def pending_migrations(recorded: Collection[str]) -> Mapping[str, Sequence[str]]:
    """Return the statements of each pending migration by its name, oldest first, for a storage with records of its own.

    Args:
        recorded: The names of the migrations that it has applied.

    Raises:
        DatabaseNewer: It has migrations that this version does not know.
        DatabaseOlder: It is too old for this version.
    """
    known = migrations()
    version = version_by(sorted(recorded), tuple(known), last_replaced=LAST_REPLACED, has_tables=False)
    require_usable(version, foreign=_FOREIGN)
    return {name: known[name] for name in version.pending_migrations}


def run_migrations(raw: sqlite3.Connection, *, stop_before: Collection[str] = ()) -> None:
    """Apply the pending migrations, each with its record.

    Args:
        raw: A connection; its open transaction stays open.
        stop_before: Nothing is applied from the first one of these on.
    """
    from sqlite_utils import Database, Migrations

    known = Migrations(MIGRATION_SET)

    def register(name: str, steps: Sequence[str]) -> None:
        @known(name=name)
        def run(_: Database) -> None:
            # Statement by statement, because `executescript` would commit the transaction.
            for statement in steps:
                raw.execute(statement)

    for name, steps in migrations().items():
        register(name, steps)
    known.apply(Database(raw, execute_plugins=False), stop_before=stop_before)


def apply_migrations(
    raw: sqlite3.Connection,
    *,
    migrate: bool = True,
    archives: bool = False,
    on_progress: ProgressCallback | None = None,
) -> Sequence[str]:
    """Apply the pending migrations, all or none; return their names.

    Two processes may open a new file at once: the second finds the work done. A database with content is migrated only
    while no other process has it open, under a backup, and its integrity is checked before the commit.

    Args:
        raw: The only connection of this process, outside a transaction.
        migrate: Whether a database with content may be changed.
        archives: Whether it may be an archive.
        on_progress: Receives the progress of a long migration; None logs it.

    Raises:
        DatabaseOlder: Migrations are pending and `migrate` is false, or it is too old for this version; nothing was
            changed.
        DatabaseInUse: Migrations are pending and another process has the database open; nothing was changed.
        DatabaseNewer: It has migrations that this version does not know; nothing was changed.
        StorageError: It is a foreign or damaged database or an archive, there is no room for the backup, or a step
            failed; nothing was changed.
        sqlite3.Error: It is not a database, or cannot be written.
    """
    # In a transaction, to see all or nothing of another process's migration.
    with transaction(raw, "BEGIN"):
        if not archives:
            require_no_archive(raw)
        version = _checked(raw)
    pending_migrations = version.pending_migrations
    if pending_migrations and version.applied:
        if not migrate:
            raise DatabaseOlder(needs_migration(raw)) if is_archive(raw) else pending(version)
        _migrate(raw, Progress("Bringing the database up to date", on_progress))
        return pending_migrations
    # SQLite changes the journal mode only outside a transaction.
    if pending_migrations or raw.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        # A copy made by another tool may have another mode.
        _set_journal(raw, "WAL")
    if pending_migrations:
        with transaction(raw):
            pending_migrations = _checked(raw).pending_migrations
            if pending_migrations:
                run_migrations(raw)
    elif migrate:
        remove_migration_backup(raw)
    return pending_migrations


def _migrate(raw: sqlite3.Connection, progress: Progress) -> None:
    """Apply the pending migrations of a database with content, as its only user."""
    _require_only_user(raw)
    with _locked(raw), backup_during_migration(raw, progress), transaction(raw, "BEGIN EXCLUSIVE"):
        pending_migrations = _checked(raw).pending_migrations
        raw.executemany(_RECORD_FIRST, [(MIGRATION_SET, name) for name in FIRST])
        for number, name in enumerate(pending_migrations, start=1):
            with progress.watching(raw, f"step {number} of {len(pending_migrations)}, {name}"):
                run_migrations(raw, stop_before=pending_migrations[number:])
        with progress.watching(raw, "checking its integrity"):
            problems = integrity_problems(raw, quick=False)
        if problems:
            raise StorageError(
                f"The migrated database is damaged: {problems[0]}. Nothing was changed. Restore a backup."
            )
    _set_journal(raw, "WAL")
    progress.done("The database is up to date")


@contextmanager
def only_user(raw: sqlite3.Connection) -> Iterator[None]:
    """Keep every other process from the database within the block, or raise `DatabaseInUse` if one has it open."""
    _require_only_user(raw)
    try:
        with _locked(raw):
            yield
    finally:
        _set_journal(raw, "WAL")


@contextmanager
def locked_without_log(raw: sqlite3.Connection) -> Iterator[None]:
    """Like `only_user`, for a block that puts another file in the database's place: the log stays off.

    A log of the old file would lie beside the new one. The next opening turns it on.
    """
    _require_only_user(raw)
    with _locked(raw):
        yield


@contextmanager
def _locked(raw: sqlite3.Connection) -> Iterator[None]:
    """Keep every other process from the database within the block, also between transactions."""
    raw.execute("PRAGMA locking_mode = EXCLUSIVE")
    try:
        # A transaction takes the lock, which this mode then keeps.
        with transaction(raw, "BEGIN EXCLUSIVE"):
            pass
        yield
    finally:
        with suppress(sqlite3.Error):
            raw.execute("PRAGMA locking_mode = NORMAL")
            # The next access releases it.
            raw.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()


def _require_only_user(raw: sqlite3.Connection) -> None:
    """Merge the log into the file and turn it off, or raise `DatabaseInUse` if there are other connections."""
    try:
        _set_journal(raw, "DELETE")
    except sqlite3.OperationalError as error:
        if not is_busy(error):
            raise
        raise DatabaseInUse(
            "This database must not be open elsewhere, but another process has it open. "
            "Nothing was changed. Stop the other process first."
        ) from error


def _set_journal(raw: sqlite3.Connection, kind: Literal["WAL", "DELETE"]) -> None:
    """Set the journal mode, retrying because SQLite fails at once if two processes do this."""
    # Real seconds: this waits for another process.
    until = time.monotonic() + _LOG_SECONDS
    while True:
        try:
            raw.execute(f"PRAGMA journal_mode = {kind}")
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > until:
                raise
        time.sleep(_LOG_PAUSE_SECONDS)


@contextmanager
def transaction(
    raw: sqlite3.Connection, begin: Literal["BEGIN", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"] = "BEGIN IMMEDIATE"
) -> Iterator[None]:
    """Run the block in a transaction."""
    raw.execute(begin)
    try:
        yield
        raw.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            raw.execute("ROLLBACK")
        raise


def version_of(raw: sqlite3.Connection) -> Version:
    """Return a database's version without changing it; see `version_by` for the error."""
    tables = {name for (name,) in raw.execute(_TABLES)}
    rows = raw.execute(_RECORDED, (MIGRATION_SET,)) if "_sqlite_migrations" in tables else ()
    recorded = [name for (name,) in rows]
    return version_by(recorded, tuple(scripts()), last_replaced=LAST_REPLACED, has_tables=bool(tables))


def _checked(raw: sqlite3.Connection) -> Version:
    """Return a database's version; raise if this package cannot use it."""
    version = version_of(raw)
    require_usable(version, foreign=_FOREIGN)
    return version
