"""Connecting: the settings of every connection."""

from __future__ import annotations

import socket
import time
from collections.abc import Generator
from contextlib import suppress
from typing import Any, Final, TypeVar

import psycopg
from psycopg import Connection
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.numeric import Int8Dumper

from outreach.errors import ConfigError
from outreach.models.work import SOME_SERVER, DatabaseHome

T = TypeVar("T")

SCHEMA: Final = "outreach"

OPEN_KEY: Final = 0x6F757472_0001
"""The advisory lock that every open storage shares, and that a migration or a copy takes alone."""

MIGRATION_KEY: Final = 0x6F757472_0002
"""The advisory lock that a process holds while it checks for, and runs, migrations."""

DISPATCH_KEY: Final = 0x6F757472_0003
"""The advisory lock of the first worker's place; those of the others follow it."""

FENCE_KEY: Final = 0x6F757472_0000
"""The advisory lock that a transaction takes alone if it writes in all workspaces, and shares otherwise."""

NUMBERS_KEY: Final = 0x6F757471_0001
"""The advisory lock that a transaction takes before it draws numbers, until it ends."""

BUSY_SECONDS: Final = 5.0
"""How long a transaction waits for another process's lock, and for a connection."""

IDLE_SECONDS: Final = 10.0
"""After this long without a statement within a transaction the server ends it: a suspended process holds the others
up no longer."""

SILENT_SECONDS: Final = 2 * BUSY_SECONDS
"""After this long without an answer to an operation, its server is probed: no lock takes longer."""

LONGEST_SECONDS: Final = 60.0
"""After this long without an answer a writing operation's connection is lost, even if its server answers others: a
frozen disk, or a process of the server that hangs."""

LONGEST_READ_SECONDS: Final = 300.0
"""The same of a reading operation, which blocks no other one."""

_PATIENT_SECONDS: Final = 60.0
"""After this long without an answer to a migration, a check or a copy, its server is probed: a server that is busy with
such work may keep others waiting."""

_PROBE_SECONDS: Final = BUSY_SECONDS
"""A server that has not answered a new connection for this long is taken for hung."""

_SERVER_SETTINGS: Final = {
    "search_path": SCHEMA,
    "lock_timeout": f"{BUSY_SECONDS * 1000:.0f}",
    "idle_in_transaction_session_timeout": f"{IDLE_SECONDS * 1000:.0f}",
    # A session that listens, or holds a worker's place, has nothing to say for long; a check or a migration takes long.
    "idle_session_timeout": "0",
    "statement_timeout": "0",
    # A transaction that has waited for the fence must see what was committed meanwhile.
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

# The driver reads one form of times and intervals. They are not in `options`, because PGDATESTYLE overrides those.
# PostgreSQL 16 refuses `transaction_timeout` there: it has none. The URL's own stays.
_SESSION_SETTINGS: Final = """
    SELECT
        set_config('datestyle', 'ISO', false),
        set_config('intervalstyle', 'postgres', false),
        set_config('array_nulls', 'on', false),
        (SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'transaction_timeout' AND source <> 'client')
"""

_CLIENT_SETTINGS: Final = {
    "application_name": "outreach",
    "client_encoding": "UTF8",
    "connect_timeout": "5",
    # A server that has disappeared is detected within some seconds.
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}


class ServerSilent(psycopg.OperationalError):
    """No answer came for too long, and the connection was closed: the server may have done the work."""


class ServerHangs(ServerSilent):
    """The server answers no connection, so all connections to it are lost."""


class PostgresConnection(Connection[tuple[Any, ...]]):
    """A connection that waits for its server while that answers probes, up to a limit.

    TCP notices a machine that is gone. A server that hangs keeps its connections: after `silent_seconds` without
    an answer it is probed over another one, and where it does not answer that either, this one is closed.

    Attributes:
        timeline: On which timeline its server was when it was made fit for operations.
        made_at: When that was.
        silent_seconds: After so long without an answer its server is probed.
        longest_seconds: After this long it is closed, whatever the probes show.
    """

    timeline: str = ""
    made_at: float = 0.0
    silent_seconds: float = SILENT_SECONDS
    longest_seconds: float = LONGEST_SECONDS

    def wait(self, gen: Generator[Any, Any, T], *given: Any, **more: Any) -> T:
        """Wait for what the server says; the driver calls it for whatever it asks.

        Raises:
            ServerSilent: It said nothing for too long.
        """
        return super().wait(self._watched(gen), *given, **more)

    def cut(self) -> None:
        """End the connection from any thread; an operation that waits for its server gets the error of a lost one."""
        with suppress(psycopg.Error, OSError):
            number = self.pgconn.socket
            with socket.fromfd(number, socket.AF_INET, socket.SOCK_STREAM) as plug:
                # Only if the library has not closed it meanwhile: then the number may be another file's.
                if self.pgconn.socket == number:
                    plug.shutdown(socket.SHUT_RDWR)

    def _watched(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        """Run the driver's wait generator, and resume it every 0.1 s while nothing has arrived."""
        since: float | None = None
        asks_at = 0.0
        lost: ServerSilent | None = None
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                # A word is progress, also in the middle of a long answer, or of many rows on their way there.
                if ready:
                    since = lost = None
                elif lost is not None:
                    # Nothing has arrived during the probe, either.
                    self.cut()
                    self.close()
                    raise lost
                elif since is None:
                    since = time.monotonic()
                    asks_at = since + self.silent_seconds
                elif (now := time.monotonic()) >= min(asks_at, since + self.longest_seconds):
                    if now >= since + self.longest_seconds:
                        lost = ServerSilent(f"no answer for {now - since:.0f} s")
                    elif not self._server_answers():
                        lost = ServerHangs(f"the server hangs: no answer for {time.monotonic() - since:.0f} s")
                    asks_at = time.monotonic() + self.silent_seconds
                wanted = gen.send(ready)
        except StopIteration as ended:
            value: T = ended.value
            return value

    def _server_answers(self) -> bool:
        """Return whether its server answers over another connection; blocks for some seconds at the most."""
        info = self.info
        given: dict[str, Any] = {**info.get_parameters(), "password": info.password or None}
        # The very server, of several that the URL may name.
        given |= {"host": info.host, "hostaddr": info.hostaddr or None, "port": info.port}
        given |= {"target_session_attrs": "any", "connect_timeout": _PROBE_SECONDS}
        try:
            with PostgresConnection.connect(make_conninfo(**given), autocommit=True) as probe:
                probe.silent_seconds = probe.longest_seconds = _PROBE_SECONDS
                probe.execute("SELECT 1")
        except (psycopg.errors.ConnectionTimeout, ServerSilent):
            return False
        except (psycopg.Error, OSError):
            # Refused, perhaps for too many connections: it does not hang, and TCP notices if it is gone.
            return True
        return True


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
    options = {name: f"-c {name}=" + value.replace(" ", r"\ ") for name, value in _SERVER_SETTINGS.items()}
    # The last one wins: the URL's own options count more, but for where the tables are.
    schema = options.pop("search_path")
    ours = {
        **_CLIENT_SETTINGS,
        **given,
        "options": " ".join([*options.values(), f"{given.get('options', '')}", schema]),
    }
    return make_conninfo(**ours)  # type: ignore[arg-type]


def name_of(conninfo: str) -> str:
    """Return which database this is, for messages: without user and password."""
    given = conninfo_to_dict(conninfo)
    host = given.get("host") or given.get("hostaddr") or "this machine"
    port = f":{given['port']}" if given.get("port") else ""
    return f"{given.get('dbname')!r} at {host}{port}"


TIMELINE: Final = "CASE WHEN NOT pg_is_in_recovery() THEN substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END"
"""The timeline of a server that can be written: one that takes over, or was set back, begins another one."""

# A dump has no OIDs: what it is restored into has others. They outlive VACUUM FULL and minor upgrades. A migration that
# makes one of these tables anew has to write the home, too.
_HOME: Final = f"""
    SELECT
        current_database(),
        (SELECT oid::text FROM pg_database WHERE datname = current_database()),
        (
            SELECT COALESCE(string_agg(oid::text, '-' ORDER BY relname), '') FROM pg_class
            WHERE relnamespace = to_regnamespace('{SCHEMA}')
            AND relname IN ('campaigns', 'database_identity', 'dispatches', 'home', 'recipients', 'unsubscribes')
        ),
        {TIMELINE}
"""  # noqa: S608 - a constant


def home_of(connection: PostgresConnection) -> DatabaseHome:
    """Return which database of which cluster this is, and in which state."""
    [(database, oid, tables, timeline)] = connection.execute(_HOME).fetchall()
    server = SOME_SERVER
    # Everybody may ask for the rest.
    with suppress(psycopg.errors.InsufficientPrivilege):
        [(system,)] = connection.execute("SELECT system_identifier::text FROM pg_control_system()").fetchall()
        server = f"{SOME_SERVER}-{system}"
    return DatabaseHome.on_server(server=server, database=database, objects=f"{oid}-{tables}", timeline=timeline or "")


def connect(conninfo: str, *, patient: bool = False) -> PostgresConnection:
    """Open a connection outside transactions; may raise `psycopg.OperationalError`.

    Args:
        conninfo: How to connect.
        patient: Whether it waits for as long as its server lives, as what migrates, checks or copies must.
    """
    connection = PostgresConnection.connect(conninfo, autocommit=True, prepare_threshold=3)
    if patient:
        connection.silent_seconds, connection.longest_seconds = _PATIENT_SECONDS, float("inf")
    try:
        apply_session_settings(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def apply_session_settings(connection: PostgresConnection) -> None:
    """Give a new connection its types and the settings that are no `options`; may raise `psycopg.Error`."""
    # One type for all integers: a statement is prepared once.
    connection.adapters.register_dumper(int, Int8Dumper)
    connection.execute(_SESSION_SETTINGS)
