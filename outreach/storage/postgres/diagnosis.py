"""Examining a PostgreSQL database: its server, its schema and its indexes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from outreach.core.command_lines import pip_commands
from outreach.errors import OutreachError, Problem, StorageError
from outreach.models.diagnosis import database_problem
from outreach.storage.base.schema import written_by_newer, written_by_older
from outreach.storage.postgres.connect import SCHEMA, PostgresConnection, connect, name_of
from outreach.storage.postgres.errors import not_usable, translate
from outreach.storage.postgres.maintenance import invalid_indexes, unsafe_settings
from outreach.storage.postgres.schema import NOT_MADE, missing_right, version_of

OLDEST_SERVER: Final = 160_000
"""PostgreSQL 16, as `server_version_num` writes it (docs/postgresql.md)."""

FEW_CONNECTIONS: Final = 16
"""Two processes: each has up to eight connections."""

OLD_TRANSACTION: Final = timedelta(minutes=10)
"""Nothing that a server of this package does lasts so long; `db check`, `db copy` or a dump may."""

# To an ordinary role `pg_stat_activity` does not show the `backend_type` of other roles' connections.
_CONNECTIONS: Final = """
    SELECT
        current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
            - COALESCE(current_setting('reserved_connections', true)::int, 0),
        (SELECT SUM(numbackends) FROM pg_stat_database)::int
"""

_OLDEST_TRANSACTION: Final = """
    SELECT pid, coalesce(nullif(application_name, ''), usename), clock_timestamp() - xact_start
    FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend'
        AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
        AND pid NOT IN (SELECT pg_backend_pid() UNION ALL SELECT pid FROM pg_stat_progress_vacuum)
        AND clock_timestamp() - xact_start > %s
    ORDER BY xact_start
    LIMIT 1
"""

# A worker's heartbeat changes the same row. The value is too long for the free part of any page: a full disk has no
# room for a new one.
_TRY_TO_WRITE: Final = """
    SET LOCAL lock_timeout = '500ms';
    UPDATE fence SET writer = (SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 250)) WHERE id = 1
"""

_TRIAL_SECONDS: Final = 2.0


def diagnose_server(conninfo: str) -> Sequence[Problem]:
    """Return what is wrong with a database, which may be in use; changes nothing, and never raises for a fault."""
    name = name_of(conninfo)
    looks = ["outreach-server db check", _psql(conninfo, "SELECT 1")]
    try:
        with connect(conninfo) as connection:
            return [*_server(connection, name, conninfo), *_schema(connection, name, conninfo)]
    except psycopg.Error as error:
        words = not_usable(name, error)
        if isinstance(error, psycopg.errors.InsufficientPrivilege):
            # It shows the owner.
            looks = ["outreach-server config", _psql(conninfo, rf"\dn {SCHEMA}")]
    except OutreachError as error:
        words = error.message
    return [database_problem("database_not_usable", words, name, looks=looks)]


def why_not_writable(conninfo: str) -> StorageError | None:
    """Return the error of a write that is undone; None where there is none, or where it cannot be tried now."""
    try:
        with connect(conninfo) as connection:
            connection.longest_seconds = _TRIAL_SECONDS
            return _try_to_write(connection)
    except psycopg.Error:
        return None


def _try_to_write(connection: PostgresConnection) -> StorageError | None:
    """Write, undo it, and return the server's error; None also where others lock the row, or there is no schema.

    Raises:
        psycopg.Error: The connection was lost.
    """
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(_TRY_TO_WRITE)
    except (psycopg.errors.LockNotAvailable, psycopg.errors.UndefinedTable):
        return None
    except psycopg.Error as error:
        if connection.closed:
            raise
        return translate(error)
    return None


def _psql(conninfo: str, statement: str) -> str:
    """Return a command that runs a statement: as a user that may, who is asked for the password."""
    given = conninfo_to_dict(conninfo)
    known = {name: given[name] for name in ("host", "hostaddr", "port", "dbname") if given.get(name)}
    return f"psql -U NAME -d {shlex.quote(make_conninfo(**known))} -c {shlex.quote(statement)}"  # type: ignore[arg-type]


def _server(connection: PostgresConnection, name: str, conninfo: str) -> Iterator[Problem]:
    if connection.info.server_version < OLDEST_SERVER:
        yield database_problem(
            "server_old",
            f"The server has version {connection.info.server_version // 10_000}: this package needs "
            f"{OLDEST_SERVER // 10_000} or newer.",
            name,
            looks=[_psql(conninfo, "SELECT version()")],
            severity="warning",
        )
    [(standby,)] = connection.execute("SELECT pg_is_in_recovery()").fetchall()
    if standby:
        words = "The server is a standby, which cannot be written: name the primary in the database's URL."
        yield database_problem("database_not_writable", words, name, looks=["outreach-server config"])
    elif (refused := _try_to_write(connection)) is not None:
        looks = [_psql(conninfo, f"SHOW {setting}") for setting in ("default_transaction_read_only", "data_directory")]
        yield database_problem("database_not_writable", refused.message, name, looks=looks)
    for setting in unsafe_settings(connection):
        yield database_problem(
            "server_setting_unsafe",
            f"The server runs with {setting} = off: a power cut may lose or damage what was committed.",
            name,
            _psql(conninfo, f"ALTER SYSTEM SET {setting} = on"),
            _psql(conninfo, "SELECT pg_reload_conf()"),
            severity="warning",
        )
    [(allowed, used)] = connection.execute(_CONNECTIONS).fetchall()
    if allowed - used < FEW_CONNECTIONS:
        yield database_problem(
            "connections_low",
            f"{used} of the server's {allowed} connections are taken. Each process of this package takes up to eight: "
            "raise max_connections, and start the server anew.",
            name,
            _psql(conninfo, f"ALTER SYSTEM SET max_connections = {2 * allowed}"),
            severity="warning",
        )
    for process, program, age in connection.execute(_OLDEST_TRANSACTION, (OLD_TRANSACTION,)).fetchall():
        yield database_problem(
            "transaction_old",
            f"A transaction of {program} (process {process} of the server) has been open for "
            f"{age // timedelta(minutes=1)} minutes. Until it ends, the server keeps all versions of rows since then, "
            "and sending gets slower: find out what it does, and end it.",
            name,
            looks=[_psql(conninfo, "TABLE pg_stat_activity")],
            severity="warning",
        )


def _schema(connection: PostgresConnection, name: str, conninfo: str) -> Iterator[Problem]:
    version = version_of(connection)
    if version.is_foreign:
        words = f"The schema `{SCHEMA}` of the database {name} holds the tables of something else."
        yield database_problem("database_foreign", words, name, looks=["outreach-server config"])
    elif version.newer:
        yield database_problem(
            "database_newer",
            written_by_newer("The database", version),
            name,
            *pip_commands("install", "--upgrade", "outreach"),
            looks=["outreach-server --version"],
        )
    elif not version.applied:
        words = f"The database {name} has no schema `{SCHEMA}`: nothing has been stored in it yet."
        commands = ["outreach-server workspaces create NAME"]
        if (grant := missing_right(connection)) is not None:
            words, commands = f"{words} {NOT_MADE}", [_psql(conninfo, grant), *commands]
        yield database_problem("database_missing", words, name, *commands)
    elif version.pending_migrations:
        yield database_problem(
            "database_older",
            f"{written_by_older('The database', version)} Stop every server that uses it, and migrate it.",
            name,
            "outreach-server db migrate",
        )
    else:
        for index in invalid_indexes(connection):
            yield database_problem(
                "index_not_valid",
                f"The index {index} is not valid: queries that need it read whole tables.",
                name,
                _psql(conninfo, f"REINDEX INDEX {SCHEMA}.{index}"),
                severity="warning",
            )
