"""A part of a transaction that is undone by itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def savepoint(connection: sqlite3.Connection) -> Iterator[None]:
    """Undo what the body wrote when it raises, and nothing else.

    SQLite may have rolled back the whole transaction by itself, on a full disk for example; then there is
    nothing left to undo, and the body's own error is what is raised.
    """
    connection.execute("SAVEPOINT part")
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK TO part")
            connection.execute("RELEASE part")
        raise
    connection.execute("RELEASE part")
