"""Checking and migrating a database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import psycopg
from psycopg import sql

from outreach.errors import DatabaseMissing, StorageError
from outreach.models.database import DatabaseCheck
from outreach.storage.base.progress import ProgressCallback
from outreach.storage.base.schema import written_by_newer
from outreach.storage.postgres.connect import SCHEMA, PostgresConnection, connect, conninfo_of, name_of
from outreach.storage.postgres.errors import first_line, not_usable
from outreach.storage.postgres.schema import apply_migrations, version_of

_SETTINGS: Final = ("fsync", "full_page_writes")
"""Settings of the server without which a power cut loses what was answered."""

_INVALID_INDEXES: Final = """
    SELECT pg_class.relname FROM pg_index
    JOIN pg_class ON pg_class.oid = pg_index.indexrelid
    JOIN pg_namespace ON pg_namespace.oid = pg_class.relnamespace
    WHERE pg_namespace.nspname = %s AND NOT (pg_index.indisvalid AND pg_index.indisready)
    ORDER BY 1
"""

_KEPT: Final = {
    "The number of campaigns of {} is not that of its list.": """
        SELECT COALESCE(kept.workspace_id, found.workspace_id)
        FROM (SELECT workspace_id, channel, status, count FROM campaign_counts WHERE count <> 0) AS kept
        FULL JOIN (
            SELECT workspace_id, channel, status, COUNT(*) AS count FROM campaigns WHERE loading_until IS NULL
            GROUP BY workspace_id, channel, status
        ) AS found USING (workspace_id, channel, status)
        WHERE kept.count IS DISTINCT FROM found.count
    """,
    "The counters of campaign {} are not those of its recipients.": """
        SELECT campaigns.id FROM campaigns
        LEFT JOIN (
            SELECT
                campaign_number,
                COUNT(*) AS total,
                COUNT(*) FILTER (
                    WHERE status IN ('pending', 'waiting', 'dispatching', 'in_progress', 'unknown')
                ) AS opened
            FROM recipients GROUP BY campaign_number
        ) AS found ON found.campaign_number = campaigns.number
        WHERE loading_until IS NULL
            AND (recipients_total, recipients_open) <> (COALESCE(found.total, 0), COALESCE(found.opened, 0))
    """,
    "Campaign {} is not in the index of names.": """
        SELECT id FROM campaigns
        WHERE loading_until IS NULL AND number NOT IN (SELECT number FROM campaign_names)
    """,
    "Entry {} of the trail has a higher number than the last that was given.": """
        SELECT MAX(number)::text FROM trail HAVING MAX(number) > (SELECT last FROM trail_numbers)
    """,
}
"""Checks of the values that triggers and operations keep beside the rows: the fault, and a query of the faulty ones."""


def check(url: str, *, quick: bool = False) -> DatabaseCheck:
    """Check a database, which may be in use: its server's settings, its indexes and, unless `quick`, all rows.

    Raises:
        DatabaseMissing: There is no schema `outreach`.
        StorageError: It cannot be used at all.
    """
    with _connected(url) as connection:
        version = version_of(connection)
        if not version.applied and not version.is_foreign:
            raise DatabaseMissing("The database has no schema `outreach`: nothing has been stored in it yet.")
        problems = [
            f"The server runs with {name} = off: a power cut may lose or damage what was committed."
            for name in unsafe_settings(connection)
        ]
        if version.is_foreign:
            problems.append("The schema `outreach` holds the tables of something else.")
        elif version.newer:
            problems.append(written_by_newer("It", version))
        else:
            invalid = invalid_indexes(connection)
            problems += [f"The index {name} is not valid: run REINDEX INDEX {SCHEMA}.{name}." for name in invalid]
            if not quick and not version.pending_migrations:
                problems += _problems_of_rows(connection)
        [(size,)] = connection.execute(
            "SELECT COALESCE(SUM(pg_total_relation_size(pg_class.oid)), 0)::bigint FROM pg_class "
            "JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = %s AND relkind = 'r'",
            (SCHEMA,),
        ).fetchall()
        return DatabaseCheck(
            problems=problems,
            size=size,
            log_size=0,
            pending_migrations=version.pending_migrations,
            is_archive=False,
        )


def unsafe_settings(connection: PostgresConnection) -> Sequence[str]:
    """Return the settings of the server that are off, and without which a power cut loses what was answered."""
    return [
        name for name in _SETTINGS if connection.execute("SELECT current_setting(%s)", (name,)).fetchall() == [("off",)]
    ]


def invalid_indexes(connection: PostgresConnection) -> Sequence[str]:
    """Return the indexes of the schema that are not valid."""
    return [name for (name,) in connection.execute(_INVALID_INDEXES, (SCHEMA,)).fetchall()]


def migrate(url: str, *, on_progress: ProgressCallback | None = None) -> Sequence[str]:
    """Migrate an older database; return the names of the applied migrations. See `apply_migrations` for the errors."""
    with _connected(url) as connection:
        return apply_migrations(connection, create=False, on_progress=on_progress)


def _problems_of_rows(connection: PostgresConnection) -> Sequence[str]:
    """Read every value of every row, and compare the values that are kept beside the rows with the rows."""
    problems = []
    # Everything is read, for which following an index would take longer.
    connection.execute("SET enable_seqscan = on")
    tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s ORDER BY 1", (SCHEMA,))
    for (table,) in tables.fetchall():
        try:
            connection.execute(sql.SQL("SELECT SUM(length(row::text)) FROM {} AS row").format(sql.Identifier(table)))
        except (psycopg.InternalError, psycopg.DataError) as error:
            problems.append(f"The table {table} cannot be read: {first_line(error)}.")
    if not problems:
        for sentence, query in _KEPT.items():
            problems += [sentence.format(subject) for (subject,) in connection.execute(query).fetchall()]
    return problems


@contextmanager
def _connected(url: str) -> Iterator[PostgresConnection]:
    conninfo = conninfo_of(url)
    try:
        with connect(conninfo, patient=True) as connection:
            yield connection
    except psycopg.Error as error:
        raise StorageError(not_usable(name_of(conninfo), error)) from error
