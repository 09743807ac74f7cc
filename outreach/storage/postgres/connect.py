"""Connecting: the settings of every connection."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import Any, Final

import psycopg
from psycopg import Connection
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.numeric import Int8Dumper

from outreach.errors import ConfigError
from outreach.models.work import DatabaseHome

SCHEMA: Final = "outreach"

OPEN_KEY: Final = 0x6F757472_0001
"""The advisory lock that every open storage shares, and that a migration or a copy takes alone."""

MIGRATION_KEY: Final = 0x6F757472_0002
"""The advisory lock of whoever looks whether there is something to migrate."""

DISPATCH_KEY: Final = 0x6F757472_0003
"""The advisory lock of the first worker's place; those of the others follow it."""

BUSY_SECONDS: Final = 5.0
"""How long a transaction waits for another process's lock, and for a connection."""

IDLE_SECONDS: Final = 10.0
"""After this long without a word within a transaction the server ends it: a process that stands still holds the others
up no longer."""

_SERVER_SETTINGS: Final = {
    "search_path": SCHEMA,
    "lock_timeout": f"{BUSY_SECONDS * 1000:.0f}",
    "idle_in_transaction_session_timeout": f"{IDLE_SECONDS * 1000:.0f}",
    # A session that listens, or holds a worker's place, has nothing to say for long; a check or a migration takes long.
    "idle_session_timeout": "0",
    "statement_timeout": "0",
    # Who has waited for the fence has to see what was committed meanwhile.
    "default_transaction_isolation": "read committed",
    "client_min_messages": "warning",
    # Every query searches an index for each of its values, also where the statistics are too old to show that it pays.
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
}

_CLIENT_SETTINGS: Final = {
    "application_name": "outreach",
    "client_encoding": "UTF8",
    "connect_timeout": "5",
    # A server that has gone without a word is noticed within some seconds.
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}


class PostgresConnection(Connection[tuple[Any, ...]]):
    """A connection that knows when it was made fit for operations, and on which timeline its server was then."""

    timeline: str = ""
    made_at: float = 0.0

    def cut(self) -> None:
        """End the connection from any thread: who waits for its server gets the error of a lost one."""
        with suppress(psycopg.Error, OSError):
            number = self.pgconn.socket
            with socket.fromfd(number, socket.AF_INET, socket.SOCK_STREAM) as plug:
                # Only if the library has not closed it meanwhile: then the number may be another file's.
                if self.pgconn.socket == number:
                    plug.shutdown(socket.SHUT_RDWR)


def conninfo_of(url: str) -> str:
    """Return how to connect to the database of a URL, with the settings of every connection.

    Raises:
        ConfigError: The URL is not one of PostgreSQL, or names no database.
    """
    try:
        given = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        # What the driver says quotes the URL or a part of it, and so its password.
        raise ConfigError(
            "The database's URL is not valid. Write postgresql://user:password@host:5432/database, with %25 for % and "
            "%20 for a space in a password, and likewise for other signs."
        ) from None
    if not given.get("dbname"):
        raise ConfigError("The database's URL names no database. Write postgresql://user:password@host:5432/database")
    options = " ".join(f"-c {name}=" + value.replace(" ", r"\ ") for name, value in _SERVER_SETTINGS.items())
    # The URL's own options come last, and win.
    ours = {**_CLIENT_SETTINGS, **given, "options": f"{options} {given.get('options', '')}".strip()}
    return make_conninfo(**ours)  # type: ignore[arg-type]


def name_of(conninfo: str) -> str:
    """Return which database this is, for messages: without user and password."""
    given = conninfo_to_dict(conninfo)
    host = given.get("host") or given.get("hostaddr") or "this machine"
    port = f":{given['port']}" if given.get("port") else ""
    return f"{given.get('dbname')!r} at {host}{port}"


def home_of(connection: PostgresConnection) -> DatabaseHome | None:
    """Return which database of which cluster this is; None where the server does not tell."""
    try:
        [(system, database)] = connection.execute(
            "SELECT system_identifier::text, current_database() FROM pg_control_system()"
        ).fetchall()
    except psycopg.errors.InsufficientPrivilege:
        return None
    return DatabaseHome(host=f"postgresql-{system}", path=database)


def connect(conninfo: str) -> PostgresConnection:
    """Open a connection outside transactions; may raise `psycopg.OperationalError`."""
    connection = PostgresConnection.connect(conninfo, autocommit=True, prepare_threshold=3)
    # One type for all integers: a statement is prepared once.
    connection.adapters.register_dumper(int, Int8Dumper)
    return connection
