"""The schema and its migrations: SQL files by name, all pending ones in one transaction, forward only."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from psycopg import sql

from outreach.errors import DatabaseInUse, DatabaseMissing, StorageError
from outreach.storage.base.progress import Progress, ProgressCallback
from outreach.storage.base.schema import Version, pending, read_migrations, require_usable, version_by
from outreach.storage.postgres.connect import MIGRATION_KEY, OPEN_KEY, SCHEMA, PostgresConnection

_FOREIGN: Final = (
    "The schema `outreach` of this database holds the tables of something else. Nothing was changed. "
    "Name another database."
)

LAST_REPLACED: Final = "0054_workspace_versions"
"""A database that has this migration has the schema that `FIRST` makes."""

NOT_MADE: Final = f"This user may not make the schema `{SCHEMA}` in the database."

_WAIT_SECONDS: Final = 60
"""How long opening waits for another process's migration."""

_GONE_SECONDS: Final = 1.0
"""For so long the server may still have the lock of a process that has just ended."""

_LOOK_AGAIN_SECONDS: Final = 0.05


@cache
def migrations() -> Mapping[str, str]:
    """Return the script of each migration, in order."""
    words = {"text": 'TEXT COLLATE "C"', "integer": "BIGINT", "bytes": "BYTEA", "strict": "", "strict_by_key": ""}
    return read_migrations(__name__, words)


def version_of(connection: PostgresConnection) -> Version:
    """Return a database's version without changing it; see `version_by` for the error."""
    [(is_there, tables)] = connection.execute(
        "SELECT to_regclass(%s) IS NOT NULL, (SELECT COUNT(*) FROM pg_tables WHERE schemaname = %s)",
        (f"{SCHEMA}.migrations", SCHEMA),
    ).fetchall()
    query = "SELECT name FROM outreach.migrations ORDER BY name"
    recorded = [name for (name,) in connection.execute(query).fetchall()] if is_there else []
    return version_by(recorded, migrations(), last_replaced=LAST_REPLACED, has_tables=tables > 0)


def missing_right(connection: PostgresConnection) -> str | None:
    """Return the GRANT that the user lacks in order to make the schema; None where it may, or there is one."""
    found = connection.execute(
        "SELECT format('GRANT CREATE ON DATABASE %%I TO %%I', current_database(), current_user) "
        "WHERE to_regnamespace(%s) IS NULL AND NOT has_database_privilege(current_database(), 'CREATE')",
        (SCHEMA,),
    ).fetchone()
    return None if found is None else str(found[0])


def apply_migrations(
    connection: PostgresConnection,
    *,
    create: bool = True,
    migrate: bool = True,
    on_progress: ProgressCallback | None = None,
) -> Sequence[str]:
    """Apply the pending migrations, all or none; return their names.

    Of two processes that open a database at once, the second finds the work done. A database with content is migrated
    only while no other process has it open.

    Args:
        connection: Outside a transaction.
        create: Whether a database without the schema gets it.
        migrate: Whether a database with content may be changed.
        on_progress: Receives the progress of a long migration; None logs it.

    Raises:
        DatabaseMissing: There is no schema, and `create` is false.
        DatabaseOlder: Migrations are pending and `migrate` is false, or it is too old for this version; nothing was
            changed.
        DatabaseInUse: Migrations are pending and another process has the database open; nothing was changed.
        DatabaseNewer: It has migrations that this version does not know; nothing was changed.
        StorageError: The schema holds something else, or the database would not take every text; nothing was changed.
        psycopg.Error: A step failed; nothing was changed.
    """
    version = _checked(connection)
    if not version.pending_migrations:
        return ()
    if not version.applied and not create:
        raise DatabaseMissing("The database has no schema `outreach`: nothing has been stored in it yet.")
    if version.applied and not migrate:
        raise pending(version)
    progress = Progress("Bringing the database up to date", on_progress)
    with connection.transaction():
        connection.execute(f"SET LOCAL lock_timeout = '{_WAIT_SECONDS}s'")
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_KEY,))
        version = _checked(connection)
        if version.applied and version.pending_migrations:
            _require_only_user(connection)
        if not version.applied:
            _require_unicode(connection)
            if (grant := missing_right(connection)) is not None:
                raise StorageError(f"{NOT_MADE} Have an administrator run: {grant}")
            # `IF NOT EXISTS` needs the right to create a schema even where there is one.
            if connection.execute("SELECT to_regnamespace(%s)", (SCHEMA,)).fetchone() == (None,):
                connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(SCHEMA)))
            connection.execute("CREATE TABLE migrations (name TEXT PRIMARY KEY, applied_at TIMESTAMPTZ NOT NULL)")
        for number, name in enumerate(version.pending_migrations, start=1):
            progress.at(f"step {number} of {len(version.pending_migrations)}, {name}")
            connection.execute(migrations()[name])
            connection.execute("INSERT INTO migrations (name, applied_at) VALUES (%s, now())", (name,))
    progress.done("The database is up to date")
    return version.pending_migrations


def column_types(connection: PostgresConnection) -> Mapping[str, Mapping[str, str]]:
    """Return the type of each column of each table."""
    rows = connection.execute(
        "SELECT table_name::text, column_name::text, data_type::text FROM information_schema.columns "
        "WHERE table_schema = %s",
        (SCHEMA,),
    ).fetchall()
    types: dict[str, dict[str, str]] = {}
    for table, column, kind in rows:
        types.setdefault(table, {})[column] = kind
    return types


def _checked(connection: PostgresConnection) -> Version:
    version = version_of(connection)
    require_usable(version, foreign=_FOREIGN)
    return version


def _require_unicode(connection: PostgresConnection) -> None:
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise StorageError(
            f"The database stores texts in {encoding}, which has no place for every letter and emoji. Nothing was "
            "changed. Name a database that was made with: createdb --encoding=UTF8 --template=template0 NAME"
        )


def _require_only_user(connection: PostgresConnection) -> None:
    gives_up = time.monotonic() + _GONE_SECONDS
    while True:
        [(alone,)] = connection.execute("SELECT pg_try_advisory_xact_lock(%s)", (OPEN_KEY,)).fetchall()
        if alone:
            return
        if time.monotonic() > gives_up:
            raise DatabaseInUse(
                "This database must not be open elsewhere, but another process has it open. "
                "Nothing was changed. Stop the other process first."
            )
        time.sleep(_LOOK_AGAIN_SECONDS)
