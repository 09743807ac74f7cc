from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from outreach.storage import sql as shared
from outreach.storage.sqlite import backend, schema, sql
from outreach.storage.unit_of_work.kinds import ALL_KINDS

AGGREGATES = sorted({*(path.stem for path in Path(shared.__file__).parent.glob("*.sql")), *shared.RESOURCE_LISTS})


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    """A database in memory, with the schema, whose references are checked as the engine has them."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        made.execute("PRAGMA foreign_keys = ON")
        schema.run_migrations(made)
        yield made


def asked() -> Iterator[tuple[str, str]]:
    """Yield every statement that looks for rows, with its name."""
    for aggregate in AGGREGATES:
        for name, text in sql.load(aggregate).items():
            yield f"{aggregate}.{name}", text
    for kind in ALL_KINDS:
        yield f"{kind.table} by key", backend.load_one(kind)
        yield f"{kind.table} by keys", backend.load_many(kind)


def users(connection: sqlite3.Connection) -> Mapping[str, set[str]]:
    """Return the statements that read each index, those that look for what refers to a deleted row among them."""
    roots = dict(connection.execute("SELECT rootpage, name FROM sqlite_schema WHERE type = 'index'"))
    found: dict[str, set[str]] = {name: set() for name in roots.values()}
    for name, text in asked():
        for _, operation, _, root, schema_number, *_ in connection.execute(f"EXPLAIN {text}", _nothing_for(text)):
            if operation in {"OpenRead", "ReopenIdx"} and schema_number == 0 and root in roots:
                found[roots[root]].add(name)
    return found


def _nothing_for(text: str) -> dict[str, None] | list[None]:
    """Return a null for each of a statement's parameters: of no matter for its plan."""
    if names := re.findall(r":(\w+)", text):
        return dict.fromkeys(names)
    numbers = [int(number) for number in re.findall(r"\?(\d+)", text)]
    return [None] * max(numbers, default=text.count("?"))


def test_every_index_is_read_by_a_query_or_is_a_rule(connection: sqlite3.Connection) -> None:
    """Every row that is written pays for each index of its table: one that nobody reads is a mistake."""
    unique = {
        name
        for (table,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        for _, name, is_unique, *_ in connection.execute(f"PRAGMA index_list({table})")
        if is_unique
    }
    of_others = {"idx__sqlite_migrations_migration_set_name"}
    idle = {name for name, readers in users(connection).items() if not readers}
    assert idle - unique - of_others == set()


def test_an_index_that_nobody_reads_is_found(connection: sqlite3.Connection) -> None:
    """What the test above rests on: it tells one that is read from one that is not."""
    connection.execute("CREATE INDEX idle ON dispatches (settled_at)")
    found = users(connection)
    assert found["idle"] == set()
    assert {"dispatches.groups", "dispatches.judged", "dispatches.recent"} < found["dispatches_of_campaign"]
    # A reference: recipients of a campaign that never came about are deleted.
    assert {"campaigns.delete_empty", "campaigns.delete_recipients"} < found["calls_of_recipient"]


def test_no_index_begins_as_another_one_does(connection: sqlite3.Connection) -> None:
    """An index whose columns are the first ones of another, over the same rows, finds nothing more."""
    indexes: dict[str, tuple[str, str, list[str | None]]] = {}
    rules: set[str] = set()
    named = connection.execute("SELECT name, tbl_name, coalesce(sql, '') FROM sqlite_schema WHERE type = 'index'")
    for name, table, text in named.fetchall():
        # No name stands for what is computed.
        columns = [row[2] for row in connection.execute(f"PRAGMA index_info({name})")]
        _, _, condition = text.partition("WHERE")
        indexes[name] = (table, " ".join(condition.split()), columns)
        if not text or "UNIQUE" in text:
            rules.add(name)
    covered = {
        (name, other)
        for name, (table, condition, columns) in indexes.items()
        for other, (its_table, its_condition, its_columns) in indexes.items()
        if name != other
        and name not in rules
        and None not in columns
        and (table, condition) == (its_table, its_condition)
        and columns == its_columns[: len(columns)]
    }
    assert covered == set()


@pytest.mark.parametrize(
    ("table", "most"), [("dispatches", 12), ("recipients", 9), ("trail", 3), ("callbacks", 3), ("audit", 1)]
)
def test_a_large_table_has_no_more_indexes_than_it_was_measured_with(
    connection: sqlite3.Connection, table: str, most: int
) -> None:
    """Another one costs every message: it is to be measured (docs/performance.md) before this number goes up."""
    indexes = connection.execute(f"PRAGMA index_list({table})").fetchall()
    beside_the_key = [name for _, name, _, origin, _ in indexes if origin == "c"]
    assert len(beside_the_key) <= most, beside_the_key
