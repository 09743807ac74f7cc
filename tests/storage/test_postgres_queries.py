"""The named queries of PostgreSQL beside those of SQLite."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.sql import SQL

from outreach.storage import sql as shared
from outreach.storage.postgres.connect import connect, conninfo_of
from outreach.storage.postgres.schema import column_types
from outreach.storage.postgres.sql import Queries, for_driver
from outreach.storage.sqlite import sql as sqlite_queries
from outreach.storage.sqlite.memory import empty_database, open_image
from outreach.storage.unit_of_work.kinds import ALL_KINDS, AUDIT, LOADING_CAMPAIGNS, TRAIL
from tests import postgres

AGGREGATES = sorted({*(path.stem for path in Path(shared.__file__).parent.glob("*.sql")), *shared.RESOURCE_LISTS})
STORAGE = Path(shared.__file__).parents[1]
NAMED = [f"{aggregate}.{name}" for aggregate in AGGREGATES for name in sqlite_queries.load(aggregate)]

BY_ROWS = {name for name in NAMED if "?" in re.sub(r"--.*", "", sqlite_queries.statement(name))}
"""Statements that run for many rows: each value there is an array here."""

LARGE = "recipients|dispatches|calls|messages|inbound_messages|work|unsubscribes|idempotency_keys|audit|trail|callbacks"

WHOLE_CAMPAIGN = {
    "recipients.at_steps",
    "recipients.recount",
    "dispatches.groups",
    "campaigns.delete_empty",
}

OPERATORS = {"audit.list_all", "erasure.messages_of_person"}
"""Asked rarely, by an operator: all rows are read."""


@pytest.fixture(scope="module")
def connection() -> Iterator[psycopg.Connection[Any]]:
    """A connection to an empty database."""
    with connect(conninfo_of(postgres.empty_database())) as made:
        yield made


@pytest.fixture(scope="module")
def queries(connection: psycopg.Connection[Any]) -> Queries:
    """The queries."""
    return Queries(column_types(connection))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def file() -> Iterator[sqlite3.Connection]:
    """A SQLite database."""
    with closing(open_image(empty_database())) as made:
        made.execute("PRAGMA foreign_keys = OFF")
        yield made


def test_both_have_the_same_queries(queries: Queries) -> None:
    """None is missing, and none is left over."""
    for name in NAMED:
        assert queries[name]
    of_sqlite, of_postgres = (
        {
            f"{path.stem}.{name}"
            for path in STORAGE.glob(f"{database}/sql/*.sql")
            for name in re.findall(r"-- (\w+) --\n", path.read_text("utf-8"))
        }
        for database in ("sqlite", "postgres")
    )
    assert of_sqlite == of_postgres
    assert of_sqlite <= set(NAMED)


@pytest.mark.parametrize("name", sorted(set(NAMED) - BY_ROWS))
def test_a_query_takes_the_same_values_and_returns_the_same_columns(
    name: str, queries: Queries, connection: psycopg.Connection[Any], file: sqlite3.Connection
) -> None:
    """By name, in order; PostgreSQL itself says that the query is valid, and that it follows indexes."""
    theirs = sqlite_queries.statement(name)
    ours = queries[name]
    wanted = re.findall(r":([a-z_]+)", re.sub(r"--.*", "", theirs))
    given = set(re.findall(r"%\(([a-z_]+)\)s", ours))
    assert given == set(wanted)
    values = some_values(ours, connection)
    with connection.transaction(force_rollback=True):
        # The rows that values refer to are not there.
        connection.execute("SET LOCAL session_replication_role = replica")
        cursor = connection.execute(ours, values)
        columns = [column.name for column in cursor.description or ()]
        plan = [row[0] for row in connection.execute(f"EXPLAIN {ours}", values).fetchall()]
    file.execute("BEGIN")
    try:
        described = file.execute(theirs, values).description or ()
    finally:
        file.execute("ROLLBACK")
    assert len(columns) == len(described)
    named = [one[0] for one in described if re.fullmatch(r"[a-z_]+", one[0])]
    assert [one for one in columns if one in named] == named
    for step in plan:
        through = re.search(rf"Seq Scan on ({LARGE})\b", step)
        assert through is None or name in OPERATORS | WHOLE_CAMPAIGN, plan


def some_values(query: str, connection: psycopg.Connection[Any]) -> dict[str, Any]:
    """Return a value for each parameter of a query, of the type that PostgreSQL finds it to have."""
    names = list(dict.fromkeys(re.findall(r"%\(([a-z_]+)\)s", query)))
    numbered = re.sub(r"%\(([a-z_]+)\)s", lambda found: f"${names.index(found[1]) + 1}", query).replace("%%", "%")
    connection.execute(SQL("PREPARE one AS {}").format(SQL(numbered)))
    [(types,)] = connection.execute(
        "SELECT parameter_types::text[] FROM pg_prepared_statements WHERE name = 'one'"
    ).fetchall()
    connection.execute("DEALLOCATE one")
    return {name: _BY_NAME.get(name, _BY_TYPE.get(kind, 1)) for name, kind in zip(names, types, strict=True)}


_BY_NAME = {"now": "2026-11-20T16:10:25.000000Z", "phrase": '"abcd"'}
_BY_TYPE = {"text": "[]", "json": "[]", "boolean": True, "bytea": b"a"}


@pytest.mark.parametrize("name", sorted(BY_ROWS))
def test_a_statement_for_many_rows_takes_as_many_values(
    name: str, queries: Queries, connection: psycopg.Connection[Any]
) -> None:
    """Each placeholder of a row is an array, or a column that is copied."""
    theirs, ours = sqlite_queries.statement(name), queries[name]
    expected = len(set(re.findall(r"\?\d+", theirs))) or theirs.count("?")
    if "COPY" in ours:
        assert len(ours[ours.index("(") : ours.index(")")].split(",")) == expected
        return
    assert ours.count("%s") == expected
    with connection.transaction(force_rollback=True):
        assert connection.execute(ours, [[]] * expected).rowcount == 0


def test_both_have_the_same_columns(connection: psycopg.Connection[Any], file: sqlite3.Connection) -> None:
    """Of every table that is not one database's own."""
    ours = column_types(connection)  # type: ignore[arg-type]
    theirs = {
        name: {row[1] for row in file.execute(f"PRAGMA table_info({name})")}
        for (name,) in file.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        if not name.startswith(("campaign_names", "sqlite_", "_sqlite"))
    }
    of_postgres = {"fence", "workspace_versions", "writers", "trail_numbers", "campaign_names"}
    here = of_postgres | {"migrations", "campaign_progress", "recipient_outcomes"}
    assert ours.keys() - here == theirs.keys()
    for table, columns in theirs.items():
        assert ours[table].keys() - ({"number"} if table == "dispatches" else set()) == columns, table
    for kind in (*ALL_KINDS, LOADING_CAMPAIGNS, AUDIT, TRAIL):
        assert set(kind.columns) <= ours[kind.table].keys()


def test_a_query_is_written_as_the_driver_takes_it() -> None:
    """Types keep their colons, and percent signs are doubled."""
    assert for_driver("SELECT :one::json, ? || '%'") == "SELECT %(one)s::json, %s || '%%'"
