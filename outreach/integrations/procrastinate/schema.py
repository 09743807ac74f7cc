"""The tables of Procrastinate, in a schema of their own, and the triggers that defer jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

import psycopg
from procrastinate.schema import SchemaManager
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from outreach.errors import ConfigError, DatabaseNewer, DatabaseOlder, StorageError

SCHEMA: Final = "outreach_jobs"

_INSTALL_KEY: Final = 0x6F757472_0010
"""The advisory lock that a process holds while it checks for, and installs, the schema."""

_OURS: Final = "outreach-jobs"

_SETTINGS: Final = {
    "search_path": SCHEMA,
    "client_min_messages": "warning",
    "jit": "off",
    # A process that is suspended within a transaction does not prevent a pause of the jobs that it has fetched.
    "idle_in_transaction_session_timeout": "3000",
    # An operator's timeouts for other sessions would end the listening one, and the creation of the tables.
    "idle_session_timeout": "0",
    "statement_timeout": "0",
    # A transaction that has waited for another process's job must see that job.
    "default_transaction_isolation": r"read\ committed",
}

_CLIENT: Final = {
    "application_name": "outreach-jobs",
    "client_encoding": "UTF8",
    "connect_timeout": "5",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}


def conninfo_of(url: str) -> str:
    """Return how to connect to the jobs in the database of a URL.

    Raises:
        ConfigError: It is no URL of PostgreSQL.
    """
    if not url.startswith(("postgresql://", "postgres://")):
        raise ConfigError(
            "The dispatcher procrastinate keeps its jobs in PostgreSQL, and this database is not: name one as "
            "postgresql://user:password@host/database, or leave OUTREACH_DISPATCHER at in_process."
        )
    try:
        given = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        # The driver quotes the URL, and so its password.
        raise ConfigError("The database's URL is not valid.") from None
    options = " ".join(f"-c {name}={value}" for name, value in _SETTINGS.items())
    merged: dict[str, Any] = {**_CLIENT, **given, "options": f"{given.get('options') or ''} {options}".strip()}
    return make_conninfo(**merged)


def install(url: str) -> Sequence[str]:
    """Create the jobs' tables and triggers, or bring them up to date, all or nothing; return the names of the steps.

    Units that are due already get their jobs. It blocks.

    Raises:
        ConfigError: It is no URL of PostgreSQL.
        DatabaseNewer: A newer version of Procrastinate or of this package has made them; nothing was changed.
        DatabaseOlder: The database has no schema `outreach` yet.
        StorageError: The database cannot be used; nothing was changed.
    """
    with _connected(url) as connection, connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_INSTALL_KEY,))
        pending, shown = _pending(connection), _shown(connection)
        if not pending:
            return ()
        if not _exists(connection, "outreach.work"):
            raise DatabaseOlder("The database has no schema `outreach` yet, whose work the jobs are for.")
        if _exists(connection, f"{SCHEMA}.applied"):
            for name in pending:
                connection.execute(_migrations()[name].encode())
        else:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(SCHEMA)))
            connection.execute(SchemaManager.get_schema().encode())
            connection.execute(_migrations()[_OURS].encode())
        for name in pending:
            connection.execute("INSERT INTO applied (name) VALUES (%s)", (name,))
    return shown


def pending_steps(url: str) -> Sequence[str]:
    """Return what `install` would do; it blocks.

    Raises:
        ConfigError: It is no URL of PostgreSQL.
        DatabaseNewer: A newer version of Procrastinate or of this package has made them.
        StorageError: The database cannot be used.
    """
    with _connected(url) as connection:
        return _shown(connection)


def _shown(connection: psycopg.Connection[Any]) -> Sequence[str]:
    """Return the names of what is to be installed; the schema's own where it is all."""
    pending = _pending(connection)
    return [SCHEMA] if len(pending) == len(_migrations()) else pending


def require(url: str) -> None:
    """Raise `DatabaseOlder` unless everything is installed; it blocks."""
    if pending_steps(url):
        raise DatabaseOlder(
            "The tables of the dispatcher procrastinate are missing, or of an older version. Nothing was changed. This "
            "makes them: outreach-server db migrate"
        )


def _pending(connection: psycopg.Connection[Any]) -> Sequence[str]:
    known = _migrations()
    if not _exists(connection, f"{SCHEMA}.applied"):
        if _exists(connection, f"{SCHEMA}.procrastinate_jobs"):
            raise StorageError(f"The schema {SCHEMA} holds the tables of something else. Nothing was changed.")
        return list(known)
    applied = {name for (name,) in connection.execute("SELECT name FROM applied").fetchall()}
    newer = sorted(applied - known.keys())
    if newer:
        raise DatabaseNewer(
            f"A newer version of Procrastinate or of this package has made the jobs' tables: they have "
            f"{', '.join(newer)}. Nothing was changed. Install that version."
        )
    return [name for name in known if name not in applied]


def _exists(connection: psycopg.Connection[Any], table: str) -> bool:
    [(there,)] = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (table,)).fetchall()
    return bool(there)


@cache
def _migrations() -> Mapping[str, str]:
    """Return the scripts of Procrastinate's migrations, in order, and then ours."""
    files = sorted(Path(SchemaManager.get_migrations_path()).glob("*.sql"))
    return {
        **{file.stem: file.read_text("utf-8") for file in files},
        _OURS: (resources.files(__package__ or "") / "jobs.sql").read_text("utf-8"),
    }


@contextmanager
def _connected(url: str) -> Iterator[psycopg.Connection[Any]]:
    try:
        with psycopg.connect(conninfo_of(url), autocommit=True) as connection:
            yield connection
    except psycopg.Error as error:
        message = str(error).strip().partition("\n")[0]
        raise StorageError(f"The jobs' tables cannot be used. ({type(error).__name__}: {message})") from error
