"""The schema and its history: each step with its record in one transaction, and forward only.

The records are in `_sqlite_migrations`, which sqlite-utils knows how to show.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import resources
from typing import Final, Literal

from sqlite_utils import Database, Migrations

from outreach.errors import DatabaseNewer, StorageError

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


def bring_up_to_date(raw: sqlite3.Connection) -> None:
    """Apply what a database lacks; all of it or nothing.

    Two processes may open a new file at the same time: the second finds the work done.

    Raises:
        DatabaseNewer: It has steps that this version does not know; nothing was changed.
        StorageError: It is somebody else's database; nothing was changed.
        sqlite3.Error: It is no database, or cannot be written.
    """
    database = Database(raw, execute_plugins=False)
    # In a transaction, so that what another process applies meanwhile is seen wholly or not at all.
    with _transaction(raw, "BEGIN"):
        current = _is_current(database)
    if current:
        return
    # Not within a transaction: SQLite changes the journal's kind outside of one only.
    _keep_a_log(raw)
    with _transaction(raw, "BEGIN IMMEDIATE"):
        if not _is_current(database):
            MIGRATIONS.apply(database)


def _keep_a_log(raw: sqlite3.Connection) -> None:
    """Turn the write-ahead log on.

    When two processes make this change at once, SQLite gives one of them up without waiting: it tries again.
    """
    # Real seconds, whatever the engine's clock says: it is another process that we wait for.
    until = time.monotonic() + _LOG_SECONDS
    while True:
        try:
            raw.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
        time.sleep(_LOG_PAUSE_SECONDS)


@contextmanager
def _transaction(raw: sqlite3.Connection, begin: Literal["BEGIN", "BEGIN IMMEDIATE"]) -> Iterator[None]:
    raw.execute(begin)
    try:
        yield
        raw.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            raw.execute("ROLLBACK")
        raise


def _is_current(database: Database) -> bool:
    """Return whether nothing is to be applied, after a look that changes nothing.

    Raises:
        DatabaseNewer: It has steps that this version does not know.
        StorageError: It is somebody else's database.
    """
    applied = {migration.name for migration in MIGRATIONS.applied(database)}
    pending = {migration.name for migration in MIGRATIONS.pending(database)}
    newer = applied - _known_names()
    if newer:
        raise DatabaseNewer(
            f"This database was written by a newer version of this package: it has {', '.join(sorted(newer))}. "
            "Nothing was changed. Install that version."
        )
    if not applied and database.table_names():
        raise StorageError(
            "This SQLite file holds the tables of something else. Nothing was changed. Name a file of its own; one "
            "that does not exist is created."
        )
    return not pending


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
