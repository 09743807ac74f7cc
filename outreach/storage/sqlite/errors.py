"""Translating SQLite's errors."""

from __future__ import annotations

import sqlite3
from typing import Final

from outreach.errors import StorageBusy, StorageError, StorageFull
from outreach.storage.unit_of_work import AlreadyExists

_DUPLICATE: Final = frozenset(
    {sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID}
)

_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})

_MESSAGES: Final = {
    sqlite3.SQLITE_BUSY: "The database is locked by another process that has been writing for long. Try again.",
    sqlite3.SQLITE_LOCKED: "The database is locked by another process that has been writing for long. Try again.",
    sqlite3.SQLITE_FULL: "The disk that the database is on is full. Make room; nothing that was committed is lost.",
    sqlite3.SQLITE_IOERR_SHMSIZE: "The disk that the database is on is probably full. Make room; nothing that was "
    "committed is lost.",
    sqlite3.SQLITE_READONLY: "The database cannot be written: the file, its directory or the disk is read-only, "
    "or an operation that only reads tried to write.",
    sqlite3.SQLITE_CORRUPT: "The database is damaged. Restore it from a backup.",
    sqlite3.SQLITE_NOTADB: "The file is no SQLite database.",
    sqlite3.SQLITE_CANTOPEN: "The database file cannot be opened: its directory must be there, and both must be "
    "readable and writable for this user.",
    sqlite3.SQLITE_IOERR: "The disk that the database is on reports an error while reading or writing.",
    sqlite3.SQLITE_PERM: "This user may not use the database file.",
    sqlite3.SQLITE_TOOBIG: "A text is longer than the database can hold.",
}


def primary_code(error: BaseException) -> int:
    """Return SQLite's primary result code of an error; 0 if SQLite did not raise it, but Python's module or others."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def is_busy(error: BaseException) -> bool:
    """Return whether an error is another process's lock."""
    return primary_code(error) == sqlite3.SQLITE_BUSY


def as_caller_error(error: BaseException) -> BaseException:
    """Return the error for the caller: SQLite's translated, any other as it is."""
    if isinstance(error, sqlite3.IntegrityError):
        return refused_row(error)
    return translate(error) if isinstance(error, sqlite3.Error) else error


def translate(error: sqlite3.Error) -> StorageError:
    """Return the storage error for a driver's error, which is its cause."""
    code = primary_code(error)
    extended = getattr(error, "sqlite_errorcode", 0)
    message = _MESSAGES.get(extended) or _MESSAGES.get(code, "The database cannot be used.")
    translated = _kind(code)(f"{message} ({name_of(error)}: {error})")
    translated.__cause__ = error
    return translated


def _kind(code: int) -> type[StorageError]:
    if code in _BUSY:
        return StorageBusy
    return StorageFull if code == sqlite3.SQLITE_FULL else StorageError


def name_of(error: BaseException) -> str:
    """Return an error's short name: SQLite's own, such as `SQLITE_FULL`, or that of its class."""
    return str(getattr(error, "sqlite_errorname", type(error).__name__))


def is_damage(error: BaseException) -> bool:
    """Return whether an error says that the file is damaged, or is no database."""
    return primary_code(error) in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def refused_row(error: sqlite3.IntegrityError) -> Exception:
    """Return the error for a refused row; the driver's error is its cause."""
    refused: Exception
    code = getattr(error, "sqlite_errorcode", 0)
    if code in _DUPLICATE:
        refused = AlreadyExists(f"There is such a row already. ({error})")
    elif code == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
        refused = LookupError("A row refers to something that is not there, or is referred to.")
    else:
        return translate(error)
    refused.__cause__ = error
    return refused
