"""The pool of connections, each fit for operations."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any, Final, Self
from weakref import WeakSet

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from outreach.models.work import DatabaseHome
from outreach.storage.base.schema import version_by
from outreach.storage.postgres import schema
from outreach.storage.postgres.connect import (
    BUSY_SECONDS,
    OPEN_KEY,
    TIMELINE,
    PostgresConnection,
    ServerHangs,
    apply_session_settings,
    home_of,
)
from outreach.storage.postgres.errors import first_line

# Commits have to survive a crash, whatever the server's default is. A changed timeline shows a failover.
_CONFIGURE: Final = f"""
    SELECT
        pg_advisory_lock_shared({OPEN_KEY}),
        CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', false) END,
        {TIMELINE}
"""

_NAME: Final = "outreach"
"""The pool's name in its lines in the log."""

_pool_log = logging.getLogger("psycopg.pool")

_MIGRATIONS: Final = "SELECT name FROM migrations ORDER BY name"


class Pool(ConnectionPool[PostgresConnection]):
    """A pool that can end the connections that are in use, too, and knows why it cannot make one.

    Attributes:
        problem: What the driver said of the last attempt to connect; None if it went well.
    """

    def __init__(self, *given: Any, home: DatabaseHome | None, **more: Any) -> None:
        self._home = home
        self._made: WeakSet[PostgresConnection] = WeakSet()
        self._guard = threading.Lock()
        self.problem: str | None = None
        kind = type("PoolConnection", (_PoolConnection,), {"pool": self})
        super().__init__(*given, connection_class=kind, configure=self._prepare, **more)

    def getconn(self, timeout: float | None = None) -> PostgresConnection:
        """Return a connection; may raise `psycopg.OperationalError`, with what the driver said."""
        try:
            return super().getconn(timeout)
        except PoolTimeout as error:
            raise self.explained(error) from None

    def explained(self, error: PoolTimeout) -> PoolTimeout:
        """Return the error of a wait for a connection, with the reason why none is made."""
        return error if self.problem is None else PoolTimeout(f"{self.problem} ({error})")

    def cut(self) -> None:
        """End all of its connections, whatever their servers are doing."""
        with self._guard:
            made = list(self._made)
        for connection in made:
            connection.cut()

    def find_live(self, error: BaseException) -> None:
        """Replace the connections that were lost, as one was by this error."""
        if isinstance(error, ServerHangs):
            # Each would be waited for as long. An operation that uses one begins again, as with any lost connection.
            self.cut()
        self.check()

    @staticmethod
    def check_connection(conn: PostgresConnection) -> None:
        """Check an idle connection for a moment only, however long its last user was ready to wait."""
        conn.longest_seconds = BUSY_SECONDS
        ConnectionPool.check_connection(conn)

    def _prepare(self, connection: PostgresConnection) -> None:
        with self._guard:
            self._made.add(connection)
        try:
            apply_session_settings(connection)
            configure(connection, home=self._home)
        except psycopg.Error as error:
            self.problem = first_line(error)
            raise
        self.problem = None


class _PoolConnection(PostgresConnection):
    """A connection whose pool gets to know why it could not be made."""

    pool: Pool

    @classmethod
    def connect(cls, *given: Any, **more: Any) -> Self:
        """Connect; may raise `psycopg.OperationalError`."""
        try:
            return super().connect(*given, **more)
        except psycopg.Error as error:
            cls.pool.problem = first_line(error)
            raise


class _WhileOpening(logging.Filter):
    """Lowers the pool's log lines on its first connections to `debug`: opening the pool raises their error."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the line is written."""
        if record.args and record.args[0] == _NAME and record.levelno == logging.WARNING:  # type: ignore[index]
            record.levelno, record.levelname = logging.DEBUG, "DEBUG"
            return _pool_log.isEnabledFor(logging.DEBUG)
        return True


_OPEN_SECONDS: Final = 2 * BUSY_SECONDS
"""How long opening waits for the first connections."""


def open_pool(conninfo: str, *, size: int, home: DatabaseHome | None = None) -> Pool:
    """Return an open pool of connections; may raise `psycopg.OperationalError`.

    Args:
        conninfo: How to connect.
        size: How many connections it has at the most.
        home: The database that it is for; None if that is not known.
    """
    pool = Pool(
        conninfo,
        home=home,
        kwargs={"autocommit": True, "prepare_threshold": 3},
        min_size=2,
        max_size=size,
        timeout=BUSY_SECONDS,
        # The pool retries a connection with a doubling backoff. After this long, the next caller retries at once.
        reconnect_timeout=2 * BUSY_SECONDS,
        num_workers=2,
        name=_NAME,
        open=False,
    )
    quiet = _WhileOpening()
    _pool_log.addFilter(quiet)
    try:
        pool.open(wait=True, timeout=_OPEN_SECONDS)
    except PoolTimeout as error:
        pool.close(timeout=0)
        raise pool.explained(error) from None
    except BaseException:
        pool.close(timeout=0)
        raise
    finally:
        _pool_log.removeFilter(quiet)
    return pool


def configure(connection: PostgresConnection, *, home: DatabaseHome | None = None) -> None:
    """Prepare a connection for operations.

    Args:
        connection: Has just been made.
        home: The database that this process has opened; None if that is not known.

    Raises:
        psycopg.OperationalError: Its server cannot be written, another process copies or migrates the database, this is
            another one than before, or another version of this package has migrated it since this process opened it.
    """
    try:
        [row] = connection.execute(_CONFIGURE).fetchall()
    except psycopg.errors.LockNotAvailable as error:
        raise psycopg.OperationalError(
            "another process copies or migrates the database: try again when it has ended"
        ) from error
    if row[2] is None:
        raise psycopg.OperationalError("the server is a standby, which cannot be written")
    connection.timeline, connection.made_at = row[2], time.monotonic()
    if home is not None and not home_of(connection).is_connected_like(home):
        # A copy: a process that goes on with it would send again what was sent since it was made.
        raise psycopg.OperationalError(
            "the database's URL leads to another database now: restart this process, which then pauses what is active"
        )
    # Asked for under the lock: while this process had no connection, nothing kept a migration or a copy away.
    recorded = [name for (name,) in connection.execute(_MIGRATIONS).fetchall()]
    known = schema.migrations()
    if unknown := version_by(recorded, known, last_replaced=schema.LAST_REPLACED, has_tables=True).newer:
        raise psycopg.OperationalError(
            f"the database was changed by another version of this package ({', '.join(unknown)}): restart this process "
            "with that version"
        )
