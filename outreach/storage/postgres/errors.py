"""PostgreSQL's errors: which are about a row, which are temporary, and what callers get."""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg import errors
from psycopg.conninfo import make_conninfo
from psycopg.pq import PGconn, Ping

from outreach.errors import StorageBusy, StorageError, StorageFull, StorageUnreachable
from outreach.storage.unit_of_work import AlreadyExists

_ROW_CLASSES: Final = frozenset({"21", "22", "23", "42", "54"})
"""Classes of SQLSTATE: cardinality, data, integrity, names and types, limits of a row or an index."""

_PASSING: Final = frozenset(
    {
        "25006",  # read-only: a standby, or a server that is being demoted
        "25P03",  # idle in a transaction for too long
        "25P04",  # a transaction took too long
        "40001",  # serialization failure
        "40P01",  # deadlock
        "57P01",  # admin shutdown
        "57P02",  # crash shutdown
        "57P03",  # cannot connect now
        "57P05",  # idle for too long
    }
)

_MESSAGES: Final = {
    "25006": (
        "The database takes no writes: its server is a standby or hands over to one, or "
        "default_transaction_read_only is on."
    ),
    "53100": "The disk of the database server is full. Make room; nothing that was committed is lost.",
    "55P03": "The database is locked by another process that has been writing for long. Try again.",
    "42501": (
        "This user may not do that in the database: it must own the schema `outreach` and its tables. Name their owner "
        "in the database's URL."
    ),
}

_REFUSED: Final = (
    "If it does not exist, create it (createdb). If no connection is left, raise the server's max_connections, or "
    "run fewer processes."
)


def is_row_error(error: Exception) -> bool:
    """Return whether an error is about a row rather than the database."""
    if not isinstance(error, psycopg.Error):
        return True
    if error.sqlstate is not None:
        return error.sqlstate[:2] in _ROW_CLASSES
    # Found by the driver itself, before anything was sent.
    return isinstance(error, psycopg.DataError | psycopg.ProgrammingError)


def is_passing(error: BaseException) -> bool:
    """Return whether an error may be gone when the operation runs again: nothing of it was written."""
    if not isinstance(error, psycopg.OperationalError | psycopg.InternalError):
        return False
    if error.sqlstate is not None:
        return error.sqlstate in _PASSING or error.sqlstate.startswith("08")
    # Without a code it is the connection that failed.
    return isinstance(error, psycopg.OperationalError)


_STARTING: Final = ("shutting down", "starting up", "in recovery", "terminating connection")
"""Parts of a server's English messages while it restarts; other refusals of a connection are the fault of a setting."""

_PING_SECONDS: Final = 2


def is_away(error: BaseException, conninfo: str) -> bool:
    """Return whether a connection could not be made because the server is down for now."""
    if not isinstance(error, psycopg.OperationalError) or not is_passing(error):
        return False
    text = str(error)
    if "FATAL" not in text or any(words in text for words in _STARTING):
        return True
    # The driver does not tell the SQLSTATE of a refusal. A ping tells whether it is 57P03, in any language. No thread
    # of the process runs meanwhile, so it comes last: the server has just answered, and answers again at once.
    return PGconn.ping(make_conninfo(conninfo, connect_timeout=_PING_SECONDS).encode()) == Ping.REJECT


def is_busy(error: BaseException) -> bool:
    """Return whether another process held a lock for too long."""
    return isinstance(error, errors.LockNotAvailable)


def as_caller_error(error: BaseException) -> BaseException:
    """Return the error for the caller: the driver's translated, any other as it is."""
    refused: Exception
    if isinstance(error, errors.UniqueViolation):
        refused = AlreadyExists(f"There is such a row already. ({first_line(error)})")
    elif isinstance(error, errors.ForeignKeyViolation):
        refused = LookupError("A row refers to something that is not there, or is referred to.")
    else:
        return translate(error) if isinstance(error, psycopg.Error) else error
    refused.__cause__ = error
    return refused


def translate(error: psycopg.Error) -> StorageError:
    """Return the storage error for a driver's error, which is its cause."""
    lost = is_passing(error)
    message = "The connection to the database was lost." if lost else "The database cannot be used."
    message = _MESSAGES.get(error.sqlstate or "", message)
    translated = _kind(error)(f"{message} ({type(error).__name__}: {first_line(error)})")
    translated.__cause__ = error
    return translated


def _kind(error: psycopg.Error) -> type[StorageError]:
    if is_busy(error):
        return StorageBusy
    if isinstance(error, errors.DiskFull):
        return StorageFull
    return StorageUnreachable if is_passing(error) else StorageError


def not_usable(name: str, error: psycopg.Error) -> str:
    """Return the message for a database that could not be opened."""
    # A refused connection has no SQLSTATE.
    refused = error.sqlstate is None and "FATAL" in str(error)
    advice = _REFUSED if refused else _MESSAGES.get(error.sqlstate or "", "")
    return (
        f"The database {name} cannot be used. {advice}{' ' * bool(advice)}({type(error).__name__}: {first_line(error)})"
    )


def first_line(error: BaseException) -> str:
    """Return an error's first line: the lines after it may quote the values of a row."""
    lines = str(error).splitlines()
    return lines[0].strip() if lines else ""
