"""The pool of connections, each fit for operations."""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg.types.numeric import Int8Dumper
from psycopg_pool import ConnectionPool

from outreach.storage.postgres import schema
from outreach.storage.postgres.connect import BUSY_SECONDS, OPEN_KEY, PostgresConnection

# Commits have to survive a crash, whatever the server's default is. The timeline tells a failover.
_CONFIGURE: Final = f"""
    SELECT
        pg_advisory_lock_shared({OPEN_KEY}),
        CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', false) END,
        CASE WHEN NOT pg_is_in_recovery() THEN substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END
"""

_MIGRATIONS: Final = "SELECT name FROM migrations ORDER BY name"

Pool = ConnectionPool[PostgresConnection]


def open_pool(conninfo: str, *, size: int) -> Pool:
    """Return an open pool of connections; may raise `psycopg.OperationalError`."""
    pool = ConnectionPool(
        conninfo,
        connection_class=PostgresConnection,
        kwargs={"autocommit": True, "prepare_threshold": 3},
        configure=configure,
        min_size=2,
        max_size=size,
        timeout=BUSY_SECONDS,
        # A connection is tried for after pauses that double: after this long whoever asks has one tried for at once.
        reconnect_timeout=2 * BUSY_SECONDS,
        num_workers=2,
        name="outreach",
        open=False,
    )
    try:
        pool.open(wait=True, timeout=2 * BUSY_SECONDS)
    except BaseException:
        pool.close(timeout=0)
        raise
    return pool


def configure(connection: PostgresConnection) -> None:
    """Prepare a connection for operations.

    Raises:
        psycopg.OperationalError: Its server cannot be written, or another version of this package has migrated the
            database since this process opened it.
    """
    connection.adapters.register_dumper(int, Int8Dumper)
    [row] = connection.execute(_CONFIGURE).fetchall()
    if row[2] is None:
        raise psycopg.OperationalError("the server is a standby, which cannot be written")
    connection.timeline = row[2]
    # Asked for under the lock: while this process had no connection, nothing kept a migration or a copy away.
    known = schema.migrations()
    unknown = [name for (name,) in connection.execute(_MIGRATIONS).fetchall() if name not in known]
    if unknown:
        raise psycopg.OperationalError(
            f"the database was changed by another version of this package ({', '.join(unknown)}): restart this process "
            "with that version"
        )
