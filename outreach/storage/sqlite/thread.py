"""Functions of the raw connection in aiosqlite's thread: the only module that uses aiosqlite's internals.

A whole transaction in one function takes one trip between threads, and nothing of the event loop can interrupt it.
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

from outreach.storage.sqlite.errors import is_busy

T = TypeVar("T")

_log = logging.getLogger(__name__)

CLOSE_SECONDS: Final = 3.0
"""How long closing waits for posted functions before it interrupts the running statement."""

_INTERRUPTED_SECONDS: Final = 0.5
"""How long it waits after that, before it leaves a hanging disk behind."""


async def connect(path: Path, *, busy_seconds: float) -> aiosqlite.Connection:
    """Open a connection in autocommit mode, for explicit transactions; may raise `sqlite3.Error`."""
    connection = aiosqlite.connect(path, isolation_level=None, timeout=busy_seconds, cached_statements=256)
    # A process must be able to end while its disk hangs; commits are safe without this thread.
    connection._thread.daemon = True
    try:
        # Interrupted, it would leak an open file.
        with CancelScope(shield=True):
            await connection
    except BaseException:
        connection._thread.join()
        raise
    return connection


async def close(connection: aiosqlite.Connection, *, timeout_seconds: float | None = None) -> None:
    """Close a connection after the posted functions, and join its thread, even if the caller is cancelled.

    It waits at most `timeout_seconds` for them, and leaves a thread that hangs in its disk behind.
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
        # The thread's last callback must not come after the event loop has closed.
        connection._thread.join(None if closing.done() else _INTERRUPTED_SECONDS)
        if connection._thread.is_alive():
            _log.error(
                "The database was not closed, because its disk does not respond. Committed data is safe.",
                extra={"action": "not_closed"},
            )
    if closing.done():
        closing.result()


async def call(connection: aiosqlite.Connection, function: Callable[[sqlite3.Connection], T]) -> T:
    """Run a function after those posted before it, and return its result."""
    result: T = await connection._execute(_with_raw, connection, function)  # type: ignore[no-untyped-call]
    return result


def post(connection: aiosqlite.Connection, function: Callable[[sqlite3.Connection], None]) -> None:
    """Run a function after those posted before it, without waiting; it must not raise."""
    connection._tx.put_nowait((None, partial(_with_raw, connection, function)))


def _with_raw(connection: aiosqlite.Connection, function: Callable[[sqlite3.Connection], T]) -> T:
    return function(connection._conn)


BUSY_SECONDS: Final = 5.0
"""How long a transaction waits for another process's lock."""

LAST_SECONDS: Final = 0.5
"""How much longer, once the storage is closing."""


class LockWait:
    """How long a connection waits for locks, in real seconds because it waits for another process."""

    def __init__(self) -> None:
        self._ends = float("inf")

    def end(self) -> None:
        """End present and future waits soon; may be called from any thread."""
        self._ends = time.monotonic() + LAST_SECONDS

    @property
    def is_over(self) -> bool:
        """Whether the storage is closing."""
        return self._ends != float("inf")

    def retry_while_busy(self, step: Callable[[], T]) -> T:
        """Return the result of a step, retried while another process's lock blocks it, or raise its error."""
        until = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                return step()
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() > min(until, self._ends):
                    raise
