"""How transactions of a SQLite connection begin and end."""

from __future__ import annotations

import sqlite3
from contextlib import suppress

from outreach.errors import StorageError
from outreach.storage.sqlite.errors import as_caller_error, name_of, translate


class Transactions:
    """The transactions of a database that no other process can write or replace."""

    def __init__(self, raw: sqlite3.Connection) -> None:
        self._raw = raw

    def begin(self) -> None:
        """Begin a transaction."""
        self._raw.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Commit it."""
        self._raw.execute("COMMIT")

    def roll_back(self) -> None:
        """Undo it, if SQLite has not done so."""
        with suppress(sqlite3.Error):
            self._raw.execute("ROLLBACK")

    def check_open(self, error: BaseException) -> None:
        """Raise if SQLite has undone the whole transaction, as on a full disk."""
        if not self._raw.in_transaction:
            raise error if isinstance(error, sqlite3.Error) else sqlite3.OperationalError(str(error)) from error

    def may_run_again(self, error: BaseException) -> bool:
        """Return False: a file does not go away and come back."""
        return False

    def as_caller_error(self, error: BaseException) -> BaseException:
        """Return the error for the caller."""
        return as_caller_error(error)

    def as_storage_error(self, error: BaseException) -> StorageError | None:
        """Return SQLite's error translated."""
        return translate(error) if isinstance(error, sqlite3.Error) else None

    def name_of(self, error: BaseException) -> str:
        """Return an error's short name."""
        return name_of(error)
