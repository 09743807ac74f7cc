"""The dispatch lock of a PostgreSQL database: an advisory lock, which the server frees with its connection."""

from __future__ import annotations

from contextlib import suppress

import psycopg

from outreach.models.work import DatabaseHome, HighWaterMark
from outreach.storage.postgres.connect import DISPATCH_KEY, PostgresConnection, connect


class PostgresDispatchLock:
    """Ensures that one process at a time dispatches; a process that loses its connection is fenced by its lease.

    The database is where its cluster is: a dump that was restored elsewhere is another one, and starts paused.
    """

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self._connection: PostgresConnection | None = None
        self._home: DatabaseHome | None = None
        self._held = False

    def open(self) -> None:
        """Connect, and learn where the database is; blocks, and may raise `psycopg.Error`."""
        self._connection = connect(self._conninfo)
        try:
            [(system, database)] = self._connection.execute(
                "SELECT system_identifier::text, current_database() FROM pg_control_system()"
            ).fetchall()
        except psycopg.errors.InsufficientPrivilege:
            return
        self._home = DatabaseHome(host=f"postgresql-{system}", path=database)

    def acquire(self) -> bool:
        """Take the lock; return whether it was free. It blocks for one round trip."""
        if self._held:
            return False
        for _ in range(2):
            try:
                if self._connection is None or self._connection.closed:
                    self._connection = connect(self._conninfo)
                [(self._held,)] = self._connection.execute(f"SELECT pg_try_advisory_lock({DISPATCH_KEY})").fetchall()
            except psycopg.OperationalError:
                self.close()
            else:
                return self._held
        return False

    def release(self) -> None:
        """Release the lock, if held."""
        if not self._held or self._connection is None:
            return
        try:
            # At once: a server ends the session of a closed connection when it comes to it.
            self._connection.execute(f"SELECT pg_advisory_unlock({DISPATCH_KEY})")
            self._held = False
        except psycopg.Error:
            self.close()

    def close(self) -> None:
        """Close the connection."""
        self._held = False
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.close()

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
