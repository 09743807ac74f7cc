"""The schema and its history: each step with its record in one transaction, and forward only.

The records are in `_sqlite_migrations`, which sqlite-utils knows how to show.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import resources
from typing import Final, Literal

import attrs
from sqlite_utils import Database, Migrations

from outreach.errors import DatabaseInUse, DatabaseNewer, DatabaseOlder, StorageError
from outreach.storage.sqlite.copying import integrity_problems
from outreach.storage.sqlite.migration_backup import backup_during_migration, remove_migration_backup
from outreach.storage.sqlite.progress import Progress, ProgressCallback

MIGRATIONS: Final = Migrations("outreach")
"""Every step that this version of the package knows, in order."""


_LOG_SECONDS: Final = 5
_LOG_PAUSE_SECONDS: Final = 0.02


@MIGRATIONS(name="0001_first")
def _first(database: Database) -> None:
    """Create everything."""
    _run_script(database, "0001_first.sql")


@MIGRATIONS(name="0002_early_events")
def _early_events(database: Database) -> None:
    """Keep what an event tells that belongs to no dispatch yet."""
    _run_script(database, "0002_early_events.sql")


@MIGRATIONS(name="0003_account_holds")
def _account_holds(database: Database) -> None:
    """Remember how long providers want to be left alone."""
    _run_script(database, "0003_account_holds.sql")


@MIGRATIONS(name="0004_held_epoch")
def _held_epoch(database: Database) -> None:
    """Remember when a moved or restored database was kept from sending."""
    _run_script(database, "0004_held_epoch.sql")


@MIGRATIONS(name="0005_unclear_messages")
def _unclear_messages(database: Database) -> None:
    """Mark the messages that a person has to read."""
    _run_script(database, "0005_unclear_messages.sql")


@MIGRATIONS(name="0006_trail_of_number")
def _trail_of_number(database: Database) -> None:
    """Find what the trail tells of a number."""
    _run_script(database, "0006_trail_of_number.sql")


@MIGRATIONS(name="0007_telephony_names")
def _telephony_names(database: Database) -> None:
    """Find the events that wait for the telephony's identifier."""
    _run_script(database, "0007_telephony_names.sql")


@MIGRATIONS(name="0008_variable_names")
def _variable_names(database: Database) -> None:
    """Keep what may fill the placeholders of a campaign."""
    _run_script(database, "0008_variable_names.sql")


@MIGRATIONS(name="0009_removed")
def _removed(database: Database) -> None:
    """Let trunks and flows be removed."""
    _run_script(database, "0009_removed.sql")


@MIGRATIONS(name="0010_stops")
def _stops(database: Database) -> None:
    """Count the stops, so that one comparison tells whether there has been another."""
    _run_script(database, "0010_stops.sql")


@MIGRATIONS(name="0011_held_numbers")
def _held_numbers(database: Database) -> None:
    """Find who is held back without going through the register."""
    _run_script(database, "0011_held_numbers.sql")


@MIGRATIONS(name="0012_campaign_lists")
def _campaign_lists(database: Database) -> None:
    """List campaigns without looking at all of them."""
    _run_script(database, "0012_campaign_lists.sql")


@MIGRATIONS(name="0013_narrow_indexes")
def _narrow_indexes(database: Database) -> None:
    """Make writing cheaper: fewer indexes, and narrower ones."""
    _run_script(database, "0013_narrow_indexes.sql")


@MIGRATIONS(name="0014_steady_clock")
def _steady_clock(database: Database) -> None:
    """Know since when the clock has not been set."""
    _run_script(database, "0014_steady_clock.sql")


@MIGRATIONS(name="0015_campaign_columns")
def _campaign_columns(database: Database) -> None:
    """Call the columns of campaigns as the fields are called."""
    _run_script(database, "0015_campaign_columns.sql")


def apply_migrations(
    raw: sqlite3.Connection, *, migrate: bool = True, on_progress: ProgressCallback | None = None
) -> Sequence[str]:
    """Apply what a database lacks, all of it or nothing; return the names of the steps.

    Two processes may open a new file at the same time: the second finds the work done. One that has content is changed
    while nobody else has it open: a process of an older version would go on with tables that are not there any more.
    It is looked through before the commit, and until then a copy of what it was lies beside it.

    Args:
        raw: The only connection to it in this process, outside of a transaction.
        migrate: Whether a database that has content may be changed.
        on_progress: Is told how far that is, where it takes long; None for the log.

    Raises:
        DatabaseOlder: It lacks steps, and was not to be changed.
        DatabaseInUse: It lacks steps, and somebody else has it open; nothing was changed.
        DatabaseNewer: It has steps that this version does not know; nothing was changed.
        StorageError: It is somebody else's database, or is damaged, or there is no room for a copy, or a step has
            failed; nothing was changed.
        sqlite3.Error: It is no database, or cannot be written.
    """
    database = Database(raw, execute_plugins=False)
    # In a transaction, so that what another process applies meanwhile is seen wholly or not at all.
    with _transaction(raw, "BEGIN"):
        is_new, pending_migrations = _lacking(database)
    if pending_migrations and not is_new:
        if not migrate:
            raise DatabaseOlder(
                "This database was written by an older version of this package: it lacks "
                f"{', '.join(pending_migrations)}. "
                "Nothing was changed. It is brought up to date when the process that dispatches from it opens it."
            )
        _bring_forward(raw, database, Progress("Bringing the database up to date", on_progress))
        return pending_migrations
    # Not within a transaction: SQLite changes the journal's kind outside of one only.
    if pending_migrations or raw.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        # A copy that another tool has made need not keep one.
        _set_journal(raw, "WAL")
    if pending_migrations:
        with _transaction(raw, "BEGIN IMMEDIATE"):
            _, pending_migrations = _lacking(database)
            if pending_migrations:
                MIGRATIONS.apply(database)
    elif migrate:
        remove_migration_backup(raw)
    return pending_migrations


def _bring_forward(raw: sqlite3.Connection, database: Database, progress: Progress) -> None:
    """Apply what a database with content lacks; alone with it from before the copy until after the commit."""
    _be_alone(raw)
    with _locked(raw), backup_during_migration(raw, progress), _transaction(raw, "BEGIN EXCLUSIVE"):
        _, pending_migrations = _lacking(database)
        for number, name in enumerate(pending_migrations, start=1):
            with progress.watching(raw, f"step {number} of {len(pending_migrations)}, {name}"):
                MIGRATIONS.apply(database, stop_before=pending_migrations[number:])
        with progress.watching(raw, "looking it through"):
            problems = integrity_problems(raw, quick=False)
        if problems:
            raise StorageError(
                f"The database was looked through after its steps and is damaged: {problems[0]}. Nothing was changed. "
                "Restore a backup."
            )
    _set_journal(raw, "WAL")
    progress.done("The database is up to date")


@contextmanager
def _locked(raw: sqlite3.Connection) -> Iterator[None]:
    """Let no other process read or write the database within the block, between transactions neither."""
    raw.execute("PRAGMA locking_mode = EXCLUSIVE")
    try:
        # The lock is taken by a transaction, and in this mode it is not given back.
        with _transaction(raw, "BEGIN EXCLUSIVE"):
            pass
        yield
    finally:
        with suppress(sqlite3.Error):
            raw.execute("PRAGMA locking_mode = NORMAL")
            # It is given back by whoever uses the database next.
            raw.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()


def _be_alone(raw: sqlite3.Connection) -> None:
    """Take the log into the file and leave it off, which SQLite does for the only connection alone.

    Raises:
        DatabaseInUse: It is not the only one.
    """
    try:
        _set_journal(raw, "DELETE")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
            raise
        raise DatabaseInUse(
            "This database has to be brought up to date, and another process has it open, which would go on with "
            "tables that are not there any more. Nothing was changed. Stop the other process first."
        ) from error


def _set_journal(raw: sqlite3.Connection, kind: Literal["WAL", "DELETE"]) -> None:
    """Turn the write-ahead log on or off.

    When two processes make this change at once, SQLite gives one of them up without waiting: it tries again.
    """
    # Real seconds, whatever the engine's clock says: it is another process that we wait for.
    until = time.monotonic() + _LOG_SECONDS
    while True:
        try:
            raw.execute(f"PRAGMA journal_mode = {kind}")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
        time.sleep(_LOG_PAUSE_SECONDS)


@contextmanager
def _transaction(
    raw: sqlite3.Connection, begin: Literal["BEGIN", "BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"]
) -> Iterator[None]:
    raw.execute(begin)
    try:
        yield
        raw.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            raw.execute("ROLLBACK")
        raise


@attrs.frozen(kw_only=True)
class Version:
    """Which version of this package a database is of.

    Attributes:
        applied: The steps that were applied to it.
        pending_migrations: The steps that this version knows and it lacks.
        newer: The steps that it has and this version does not know.
        is_foreign: Whether it has tables, and none of ours.
    """

    applied: Sequence[str]
    pending_migrations: Sequence[str]
    newer: Sequence[str]
    is_foreign: bool


def version_of(raw: sqlite3.Connection) -> Version:
    """Return which version a database is of, after a look that changes nothing."""
    database = Database(raw, execute_plugins=False)
    applied = [migration.name for migration in MIGRATIONS.applied(database)]
    known = _known_names()
    return Version(
        applied=applied,
        pending_migrations=[migration.name for migration in MIGRATIONS.pending(database)],
        newer=sorted(set(applied) - known),
        is_foreign=not applied and bool(database.table_names()),
    )


def _lacking(database: Database) -> tuple[bool, Sequence[str]]:
    """Return whether a database is new, and the steps that are to be applied, after a look that changes nothing.

    Raises:
        DatabaseNewer: It has steps that this version does not know.
        StorageError: It is somebody else's database.
    """
    version = version_of(database.conn)
    if version.newer:
        raise DatabaseNewer(
            f"This database was written by a newer version of this package: it has {', '.join(version.newer)}. "
            "Nothing was changed. Install that version."
        )
    if version.is_foreign:
        raise StorageError(
            "This SQLite file holds the tables of something else. Nothing was changed. Name a file of its own; one "
            "that does not exist is created."
        )
    return not version.applied, version.pending_migrations


def _known_names() -> frozenset[str]:
    # An empty database lacks every step: the one way in which sqlite-utils tells them all.
    with_nothing = Database(memory=True, execute_plugins=False)
    try:
        return frozenset(migration.name for migration in MIGRATIONS.pending(with_nothing))
    finally:
        with_nothing.close()


def _run_script(database: Database, name: str) -> None:
    """Run a file of statements within the present transaction, which `executescript` would commit."""
    text = resources.files(__name__).joinpath(name).read_text(encoding="utf-8")
    for statement in statements(text):
        database.conn.execute(statement)


def statements(text: str) -> Iterator[str]:
    """Yield the statements of a script, one at a time."""
    statement = ""
    for line in text.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
