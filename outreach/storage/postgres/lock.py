"""The dispatch lock of a PostgreSQL database: an advisory lock, which the server frees with its connection."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Final

import psycopg

from outreach.models.work import DatabaseHome, HighWaterMark
from outreach.storage.postgres.connect import DISPATCH_KEY, PostgresConnection, connect

_RECONNECT_SECONDS: Final = 1.0


class PostgresDispatchLock:
    """Ensures that one process at a time dispatches; a process that loses its connection is fenced by its lease.

    The database is where its cluster is: a dump that was restored elsewhere is another one, and starts paused.
    """

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self._connection: PostgresConnection | None = None
        self._home: DatabaseHome | None = None
        self._held = False
        self._closed = threading.Event()

    def open(self) -> None:
        """Connect, and learn where the database is; blocks, and may raise `psycopg.Error`."""
        self._closed = threading.Event()
        self._connection = connect(self._conninfo)
        try:
            [(system, database)] = self._connection.execute(
                "SELECT system_identifier::text, current_database() FROM pg_control_system()"
            ).fetchall()
        except psycopg.errors.InsufficientPrivilege:
            return
        self._home = DatabaseHome(host=f"postgresql-{system}", path=database)

    def acquire(self) -> bool:
        """Take the lock; return whether it was free. It blocks for one round trip.

        Without a connection it is not free, and a thread connects anew: the event loop must not wait for that.
        """
        connection = self._connection
        if self._held or connection is None:
            return False
        try:
            [(self._held,)] = connection.execute(f"SELECT pg_try_advisory_lock({DISPATCH_KEY})").fetchall()
        except psycopg.OperationalError:
            self._drop()
            self._reconnect_later()
        return self._held

    def release(self) -> None:
        """Release the lock, if held."""
        if not self._held or self._connection is None:
            return
        try:
            # At once: a server ends the session of a closed connection when it comes to it.
            self._connection.execute(f"SELECT pg_advisory_unlock({DISPATCH_KEY})")
            self._held = False
        except psycopg.Error:
            self._drop()
            self._reconnect_later()

    def close(self) -> None:
        """Close the connection for good."""
        self._closed.set()
        self._drop()

    def _drop(self) -> None:
        self._held = False
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()

    def _reconnect_later(self) -> None:
        threading.Thread(target=self._reconnect, name="outreach-postgres-lock", daemon=True).start()

    def _reconnect(self) -> None:
        """Connect again and again until it succeeds or the lock is closed; runs in a thread."""
        closed = self._closed
        while not closed.is_set():
            try:
                connection = connect(self._conninfo)
            except psycopg.OperationalError:
                closed.wait(_RECONNECT_SECONDS)
                continue
            self._connection = connection
            if closed.is_set():
                connection.close()
            return

    def home(self) -> DatabaseHome | None:
        """Return which database of which cluster this is; None where the server does not tell."""
        return self._home

    def high_water(self) -> HighWaterMark | None:
        """Return None: nothing is recorded outside the database."""
        return None

    def record_high_water(self, mark: HighWaterMark, *, ended: bool = False) -> None:
        """Record nothing."""

    def ended_uncleanly(self) -> bool:
        """Return False: the server recovers by itself."""
        return False

    async def check_integrity(self) -> str | None:
        """Return None: `outreach-server db check` reads the data."""
        return None
