"""The names of failed transactions: a bounded set, known from the beginning."""

from __future__ import annotations

from typing import Final

from outreach.integrations.prometheus.tallies import OTHER

SQLITE_ERRORS: Final = (
    "SQLITE_ABORT",
    "SQLITE_BUSY",
    "SQLITE_CANTOPEN",
    "SQLITE_CONSTRAINT",
    "SQLITE_CORRUPT",
    "SQLITE_ERROR",
    "SQLITE_FULL",
    "SQLITE_INTERRUPT",
    "SQLITE_IOERR",
    "SQLITE_LOCKED",
    "SQLITE_NOMEM",
    "SQLITE_NOTADB",
    "SQLITE_PERM",
    "SQLITE_PROTOCOL",
    "SQLITE_READONLY",
    "SQLITE_SCHEMA",
    "SQLITE_TOOBIG",
)
"""SQLite's result codes; an extended one, such as `SQLITE_IOERR_WRITE`, counts as the code that it extends."""

POSTGRES_ERRORS: Final = (
    "AdminShutdown",
    "CannotConnectNow",
    "ConnectionFailure",
    "CrashShutdown",
    "DataCorrupted",
    "DeadlockDetected",
    "DiskFull",
    "IdleInTransactionSessionTimeout",
    "IndexCorrupted",
    "InsufficientPrivilege",
    "InterfaceError",
    "InternalError_",
    "IoError",
    "LockNotAvailable",
    "OperationalError",
    "OutOfMemory",
    "QueryCanceled",
    "ReadOnlySqlTransaction",
    "SerializationFailure",
    "TooManyConnections",
    "UndefinedColumn",
    "UndefinedTable",
)
"""psycopg's names of PostgreSQL's errors; a connection lost without a server error is an `OperationalError`."""

WRITE_ERRORS: Final = (*SQLITE_ERRORS, *POSTGRES_ERRORS, OTHER)

_KNOWN: Final = frozenset(WRITE_ERRORS)


def write_error(name: str) -> str:
    """Return the value of the label for the name of an error."""
    if name.startswith("SQLITE_"):
        name = "_".join(name.split("_")[:2])
    return name if name in _KNOWN else OTHER
