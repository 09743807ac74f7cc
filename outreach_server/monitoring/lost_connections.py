"""One line where PostgreSQL ends connections or is read-only: libraries write several for each, with tracebacks."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

_LIBRARIES: Final = ("procrastinate", "psycopg.pool")

_FOUND_BROKEN: Final = ("discarding broken connection", "discarding closed connection")
"""How the pool's lines about a connection begin that has ended while it was open."""

_GIVEN_UP: Final = "reconnection attempt in pool"
"""How its line begins when it stops retrying a connection until one is requested."""

_RESTARTING: Final = ("shutting down", "starting up", "in recovery", "terminating connection")
"""Parts of a server's messages while it restarts; any other refusal is the fault of a setting."""

_NONE_FREE: Final = (
    "There was no connection to PostgreSQL: %s. Either all were in use, or the server did not answer; more are tried."
)

_LOST: Final = "Connections to PostgreSQL were lost, and are made again: %s"
_READ_ONLY: Final = (
    "PostgreSQL takes no writes, and is tried again: %s. It may be a standby, or a server that hands over to one."
)

_QUIET_SECONDS: Final = 5.0
"""Open connections that are lost after this long belong to another interruption."""

_LOG_INTERVAL_SECONDS: Final = 60.0
"""How often an interruption that lasts is logged."""


class LostConnections(logging.Filter):
    """Writes one line for each interruption, in place of those of psycopg's pool and Procrastinate.

    An interruption is that connections are lost, or that the server takes no writes.

    All other lines pass, and with the level `debug` these do, too.

    Args:
        now: Seconds on a monotonic clock.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._lock = threading.Lock()
        self._seen_at = self._logged_at = float("-inf")

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the line is written."""
        if not _is_of_libraries(record) or logging.getLogger().isEnabledFor(logging.DEBUG):
            return True
        was_open = str(record.msg).startswith(_FOUND_BROKEN) or record.exc_info is not None
        with self._lock:
            now = self._now()
            going_on = now - self._seen_at < _LOG_INTERVAL_SECONDS
            if going_on and str(record.msg).startswith(_GIVEN_UP):
                return False
            why, read_only = "the server has closed them", False
            if not str(record.msg).startswith(_FOUND_BROKEN):
                lost = next((one for one in _errors_of(record) if _is_lost(one)), None)
                if lost is None:
                    return True
                why = next(iter(str(lost).splitlines()), type(lost).__name__)
                read_only = _is_read_only(lost)
                if _is_wait(lost) and not going_on:
                    # Lines with more detail may follow.
                    self._seen_at = now
                    _log.warning(_NONE_FREE, why, extra={"action": "connections_lost"})
                    return False
            anew = was_open and now - self._seen_at >= _QUIET_SECONDS
            self._seen_at = now
            if not anew and now - self._logged_at < _LOG_INTERVAL_SECONDS:
                return False
            self._logged_at = now
        if read_only:
            _log.warning(_READ_ONLY, why, extra={"action": "database_read_only"})
        else:
            _log.warning(_LOST, why, extra={"action": "connections_lost"})
        return False


def _is_of_libraries(record: logging.LogRecord) -> bool:
    """Return whether a line is a library's, or asyncio's about an error of a task of Procrastinate's own."""
    if record.name == "asyncio" and record.exc_info and record.exc_info[0] is not None:
        return record.exc_info[0].__module__.startswith(_LIBRARIES)
    return record.name.startswith(_LIBRARIES)


def _errors_of(record: logging.LogRecord) -> Iterator[BaseException]:
    """Yield the errors that a line reports, each before its cause."""
    raised = [record.exc_info[1]] if record.exc_info else []
    for found in (*raised, *(record.args if isinstance(record.args, tuple) else ())):
        error = found if isinstance(found, BaseException) else None
        while error is not None:
            yield error
            error = error.__cause__


def _is_wait(error: BaseException) -> bool:
    """Return whether an error is a timeout waiting for a connection: too few are free, or the server is silent."""
    # Loaded already: one of its libraries has written the line.
    from psycopg_pool import PoolTimeout

    return isinstance(error, PoolTimeout)


def _is_read_only(error: BaseException) -> bool:
    """Return whether an error says that the server, or its database, takes no writes."""
    from psycopg import Error

    return isinstance(error, Error) and error.sqlstate == "25006"


def _is_lost(error: BaseException) -> bool:
    """Return whether an error means an interruption: a connection that cannot be had, or a server without writes."""
    from psycopg import OperationalError

    if _is_wait(error) or _is_read_only(error):
        return True
    if not isinstance(error, OperationalError):
        return False
    if error.sqlstate is not None:
        return error.sqlstate.startswith(("08", "57P0"))
    text = str(error)
    return "FATAL" not in text or any(words in text for words in _RESTARTING)


_log = logging.getLogger("outreach_server")
