"""Run functions of the raw connection in aiosqlite's thread: the one place that reaches into aiosqlite.

aiosqlite offers its connection statement by statement, each a trip between threads. A transaction that is a
plain function needs one trip, and while it runs nothing of the event loop can come between its statements.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import aiosqlite
from anyio import CancelScope

T = TypeVar("T")

_log = logging.getLogger(__name__)

CLOSE_SECONDS: Final = 3.0
"""How long closing waits for what was posted; a statement that still runs then is interrupted."""

_INTERRUPTED_SECONDS: Final = 0.5
"""How long it waits after that: whatever has not come back by then waits for a disk that does not answer."""


async def connect(path: Path, *, busy_seconds: float) -> aiosqlite.Connection:
    """Open a connection that begins and ends transactions when it is told to.

    Raises:
        sqlite3.Error: The file cannot be opened.
    """
    connection = aiosqlite.connect(path, isolation_level=None, timeout=busy_seconds, cached_statements=256)
    # A process must be able to end while its disk does not answer; what was committed is safe without this thread.
    connection._thread.daemon = True
    try:
        # Cut short, it would leave an open file that nobody knows of.
        with CancelScope(shield=True):
            await connection
    except BaseException:
        connection._thread.join()
        raise
    return connection


async def close(connection: aiosqlite.Connection, *, timeout_seconds: float | None = None) -> None:
    """Close a connection after all that was posted, and see its thread off, whoever is cancelled meanwhile.

    It waits no longer than its patience for what was posted, and is over soon afterwards whatever the disk does: a
    thread that hangs in it is left behind.
    """
    raw = connection._conn
    closing = asyncio.ensure_future(connection.close())
    try:
        with CancelScope(shield=True):
            await asyncio.wait({closing}, timeout=CLOSE_SECONDS if timeout_seconds is None else timeout_seconds)
            if not closing.done():
                with suppress(sqlite3.Error):
                    raw.interrupt()
                await asyncio.wait({closing}, timeout=_INTERRUPTED_SECONDS)
    finally:
        if not closing.done():
            closing.cancel()
            connection.stop()
        # It has nothing left to do, but its last word to the event loop must not come when that has closed.
        connection._thread.join(None if closing.done() else _INTERRUPTED_SECONDS)
        if connection._thread.is_alive():
            _log.error(
                "The database was left without being closed: its disk does not answer. What was committed is safe.",
                extra={"action": "not_closed"},
            )
    if closing.done():
        closing.result()


async def call(connection: aiosqlite.Connection, function: Callable[[sqlite3.Connection], T]) -> T:
    """Run a function after all that was posted before it, and return its result."""
    result: T = await connection._execute(_with_raw, connection, function)  # type: ignore[no-untyped-call]
    return result


def post(connection: aiosqlite.Connection, function: Callable[[sqlite3.Connection], None]) -> None:
    """Run a function after all that was posted before it, without waiting; it must not raise."""
    connection._tx.put_nowait((None, partial(_with_raw, connection, function)))


def _with_raw(connection: aiosqlite.Connection, function: Callable[[sqlite3.Connection], T]) -> T:
    return function(connection._conn)


BUSY_SECONDS: Final = 5.0
"""How long a transaction waits for another process's lock: somebody waits for its answer."""

BULK_SECONDS: Final = 30.0
"""How long large work waits for it: of a long load all would be lost."""

LAST_SECONDS: Final = 0.5
"""How much longer once the storage is being closed."""


class LockWait:
    """How long a connection waits for locks; each try waits for as long as its `busy_timeout` says.

    In real seconds, whatever the engine's clock says: it is another process that is waited for.
    """

    def __init__(self) -> None:
        self._ends = float("inf")

    def end(self) -> None:
        """Have whoever waits now or later give up soon; to be called in any thread."""
        self._ends = time.monotonic() + LAST_SECONDS

    @property
    def is_over(self) -> bool:
        """Whether the storage is being closed."""
        return self._ends != float("inf")

    def retry_while_busy(self, step: Callable[[], T]) -> T:
        """Return what a step returns, which has no effect where it fails for a lock; try it again until then.

        Raises:
            sqlite3.Error: What the step raises: for another process's lock once the patience is over.
        """
        until = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                return step()
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() > min(until, self._ends):
                    raise


def is_busy(error: Exception) -> bool:
    """Return whether an error is another process's lock."""
    # The low byte is the kind, the rest says more of it.
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
