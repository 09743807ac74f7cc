"""The dispatch lock of a PostgreSQL database: advisory locks, which the server frees with their connection."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Final

import psycopg

from outreach.models.work import DatabaseHome, HighWaterMark
from outreach.storage.postgres.connect import DISPATCH_KEY, PostgresConnection, connect

_RECONNECT_SECONDS: Final = 1.0


class PostgresDispatchLock:
    """The places of the workers, an advisory lock each; a worker that loses its connection is fenced by its lease.

    The database is where its cluster is: a dump that was restored elsewhere is another one, and starts paused.

    Args:
        conninfo: How to connect.
        workers: How many places there are.
    """

    def __init__(self, conninfo: str, *, workers: int = 1) -> None:
        self._workers = workers
        self._conninfo = conninfo
        self._connection: PostgresConnection | None = None
        self._home: DatabaseHome | None = None
        self._held: set[int] = set()
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

    def acquire(self) -> int:
        """Take the lowest free place; return it, or 0 if none is free. It blocks for a round trip for each place.

        Without a connection none is free, and a thread connects anew: the event loop must not wait for that.
        """
        for place in range(1, self._workers + 1):
            if place not in self._held and self._ask("SELECT pg_try_advisory_lock(%(key)s)", place):
                self._held.add(place)
                return place
        return 0

    def release(self, place: int | None = None) -> None:
        """Give a place back, if it is held here; by default all that are."""
        for one in sorted(self._held) if place is None else [place]:
            if one in self._held:
                # At once: a server ends the session of a closed connection when it comes to it.
                self._ask("SELECT pg_advisory_unlock(%(key)s)", one)
                self._held.discard(one)

    def is_free(self, place: int) -> bool:
        """Return whether nobody holds a place; it blocks for a round trip. Without a connection nobody can tell."""
        if place in self._held:
            return False
        return self._ask("SELECT pg_try_advisory_lock(%(key)s) AND pg_advisory_unlock(%(key)s)", place)

    def _ask(self, query: str, place: int) -> bool:
        """Return the server's answer about the key of a place; False without a connection."""
        connection = self._connection
        if connection is None:
            return False
        try:
            [(answer,)] = connection.execute(query, {"key": DISPATCH_KEY + place - 1}).fetchall()
        except psycopg.OperationalError:
            self._drop()
            self._reconnect_later()
            return False
        return bool(answer)

    def close(self) -> None:
        """Close the connection for good."""
        self._closed.set()
        self._drop()

    def _drop(self) -> None:
        self._held.clear()
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
