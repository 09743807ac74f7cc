"""Run functions of the raw connection in aiosqlite's thread: the one place that reaches into aiosqlite.

aiosqlite offers its connection statement by statement, each a trip between threads. A transaction that is a
plain function needs one trip, and while it runs nothing of the event loop can come between its statements.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import aiosqlite
from anyio import CancelScope

T = TypeVar("T")


async def connect(path: Path, *, busy_seconds: float) -> aiosqlite.Connection:
    """Open a connection that begins and ends transactions when it is told to.

    Raises:
        sqlite3.Error: The file cannot be opened.
    """
    connection = aiosqlite.connect(path, isolation_level=None, timeout=busy_seconds, cached_statements=256)
    try:
        # Cut short, it would leave an open file that nobody knows of.
        with CancelScope(shield=True):
            await connection
    except BaseException:
        _join(connection)
        raise
    return connection


async def close(connection: aiosqlite.Connection) -> None:
    """Close a connection after all that was posted, and see its thread off, whoever is cancelled meanwhile."""
    try:
        with CancelScope(shield=True):
            await connection.close()
    finally:
        _join(connection)


def _join(connection: aiosqlite.Connection) -> None:
    # It has nothing left to do, but its last word to the event loop must not come when that has closed.
    connection._thread.join()


async def call(connection: aiosqlite.Connection, function: Callable[[sqlite3.Connection], T]) -> T:
    """Run a function after all that was posted before it, and return its result."""
    result: T = await connection._execute(_with_raw, connection, function)  # type: ignore[no-untyped-call]
    return result


def post(connection: aiosqlite.Connection, function: Callable[[sqlite3.Connection], None]) -> None:
    """Run a function after all that was posted before it, without waiting; it must not raise."""
    connection._tx.put_nowait((None, partial(_with_raw, connection, function)))


def _with_raw(connection: aiosqlite.Connection, function: Callable[[sqlite3.Connection], T]) -> T:
    return function(connection._conn)
