"""One connection with its working set and its transaction, for the connection's whole life."""

from __future__ import annotations

import sqlite3

from outreach.storage.sqlite.backend import SqliteBackend
from outreach.working_set import Transaction
from outreach.working_set.working_set import WorkingSet


class Session:
    """A connection, the rows that are known of its database, and the tables that operations see.

    Args:
        connection: Opened with `isolation_level=None`.
        read_only: Whether operations may only read.

    Attributes:
        connection: As it was given.
        rows: The working set.
        transaction: The tables.
    """

    def __init__(self, connection: sqlite3.Connection, *, read_only: bool = False) -> None:
        self.connection = connection
        self.rows = WorkingSet(SqliteBackend(connection), read_only=read_only)
        self.transaction = Transaction(self.rows)
