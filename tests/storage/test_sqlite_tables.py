from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from outreach.models.campaign import PreparedRecipient
from outreach.models.states import DispatchState, RecipientStatus
from outreach.storage import sql as shared
from outreach.storage import unit_of_work
from outreach.storage.sql import parse
from outreach.storage.sqlite import SqliteStorage, schema, sql
from outreach.storage.sqlite.backend import Session
from outreach.storage.unit_of_work import AlreadyExists, Transaction
from tests.storage.sqlite_support import NOW, contacts, dispatch, opened, set_up

AGGREGATES = sorted({*(path.stem for path in Path(shared.__file__).parent.glob("*.sql")), *shared.RESOURCE_LISTS})
LARGE = (
    "recipients",
    "dispatches",
    "calls",
    "messages",
    "inbound_messages",
    "work",
    "unsubscribes",
    "idempotency_keys",
    "audit",
    "trail",
    "callbacks",
)


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    """A database in memory, with the schema."""
    made = sqlite3.connect(":memory:", isolation_level=None)
    made.row_factory = sqlite3.Row
    schema.run_migrations(made)
    yield made
    made.close()


def _plan(connection: sqlite3.Connection, aggregate: str, name: str) -> list[str]:
    query = sql.load(aggregate)[name]
    names = re.findall(r":(\w+)", query)
    values = dict.fromkeys(names) if names else [None] * query.count("?")
    return [row["detail"] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}", values)]


WHOLE_TABLES = {"audit.list_all"}
"""Queries that an operator asks once, on a connection that only reads."""


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_every_query_is_valid_and_reads_no_large_table_through(connection: sqlite3.Connection, aggregate: str) -> None:
    """With a million rows in them, a query that has no index to follow would stop everything."""
    for name in sql.load(aggregate):
        plan = _plan(connection, aggregate, name)
        for step in plan:
            through = re.match(rf"SCAN ({'|'.join(LARGE)})\b(?! USING INDEX)", step)
            assert through is None or f"{aggregate}.{name}" in WHOLE_TABLES, (name, plan)


WHOLE_CAMPAIGNS = {
    *("campaigns.delete_empty", "recipients.in_flight", "recipients.recount"),
    "recipients.at_steps",
    *("reports.results", "reports.accepted", "reports.accepted_by_place", "reports.by_sender"),
    "reports.others",
    "reports.calls",
    "erasure.last_position",
}
"""Queries that are about a whole campaign, look whether there is anything, or follow an index of the few in flight."""


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_no_query_about_one_looks_at_its_whole_campaign(connection: sqlite3.Connection, aggregate: str) -> None:
    """With half a million sent, a question about one recipient that walks along all of them stops the sending."""
    for name, query in sql.load(aggregate).items():
        plan = _plan(connection, aggregate, name)
        through = [step for step in plan if re.search(rf"({'|'.join(LARGE)})\b.*\(campaign_number=\?\)$", step)]
        assert not through or "LIMIT" in query or f"{aggregate}.{name}" in WHOLE_CAMPAIGNS, (name, plan)


def test_a_report_looks_at_no_contact_that_ended_well_or_has_yet_to_begin(connection: sqlite3.Connection) -> None:
    """Of a million contacts nearly all do: their number is known, and the others have indexes of their own."""
    plans = {name: _plan(connection, "reports", name) for name in ("results", "others")}
    assert any("USING COVERING INDEX recipients_not_plain" in step for step in plans["results"]), plans
    assert any("USING INDEX dispatches_not_plain" in step for step in plans["others"]), plans
    walks = ("PRIMARY", "recipients_pending", "dispatches_of_campaign")
    assert not any(walk in step for plan in plans.values() for step in plan for walk in walks)


def test_those_of_a_state_of_few_are_found_in_an_index(connection: sqlite3.Connection) -> None:
    """By campaign and state."""
    plan = _plan(connection, "recipients", "page_of_few")
    assert any("USING INDEX recipients_not_plain (campaign_number=? AND status=?" in step for step in plan), plan


IN_ORDER = [
    "overdue_in_progress",
    "in_progress_after",
    "postponed",
    "page",
]


@pytest.mark.parametrize("name", IN_ORDER)
def test_recipients_are_read_in_the_order_of_an_index(connection: sqlite3.Connection, name: str) -> None:
    """A limit is worth nothing when everything has to be sorted before it."""
    assert not [step for step in _plan(connection, "recipients", name) if "TEMP B-TREE" in step]


def test_the_latest_requests_are_read_in_the_order_of_an_index(connection: sqlite3.Connection) -> None:
    """It is asked at every failure, and a wave's intents all have one moment: no look may be at all of these."""
    assert not [step for step in _plan(connection, "dispatches", "recent") if "TEMP B-TREE" in step]


@pytest.mark.parametrize("name", ["due_waiting_for", "due_waiting_else", "due_pending"])
def test_what_is_due_in_many_campaigns_is_read_in_the_order_of_an_index(
    connection: sqlite3.Connection, name: str
) -> None:
    """Of each campaign no more than the limit; only what is returned then is sorted."""
    query = sql.load("recipients")[name]
    plan = connection.execute(f"EXPLAIN QUERY PLAN {query}", dict.fromkeys(re.findall(r":(\w+)", query))).fetchall()
    [least] = [row["id"] for row in plan if "LIST SUBQUERY" in row["detail"]]
    inside = [row["detail"] for row in plan if row["parent"] == least]
    assert len(inside) == 1, inside
    assert re.match(r"SEARCH due USING INDEX recipients_\w+ \(campaign_number=\?", inside[0]), inside
    assert any("(campaign_number=? AND position=?)" in row["detail"] for row in plan)


@pytest.mark.parametrize("aggregate", ["dispatches", "trail"])
def test_what_is_asked_about_one_recipient_is_found_by_its_position(
    connection: sqlite3.Connection, aggregate: str
) -> None:
    """It is asked at every receipt: to go through all that a campaign has would take longer with each message."""
    plan = _plan(connection, aggregate, "of_recipient")
    assert any("campaign_number=? AND position=?" in step for step in plan), plan


def test_what_waits_for_an_identifier_is_found_by_it(connection: sqlite3.Connection) -> None:
    """It is asked with every answer: to go through all that was called back would take longer with each of them."""
    steps = [step for step in _plan(connection, "callbacks", "waiting") if "callbacks" in step]
    indexes = ("INTEGER PRIMARY KEY", "INDEX callbacks_waiting ", "INDEX callbacks_waiting_for_telephony ")
    assert [[index in step for index in indexes].index(True) for step in steps] == [0, 1, 2], steps


PAGES = {
    "page?channel": "campaigns_listed ",
    "page?channel,status": "campaigns_listed_in_status ",
    "page": "campaigns_listed ",
    "page?status": "campaigns_listed_in_status ",
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_campaigns_reads_nothing_but_an_index_in_its_order(connection: sqlite3.Connection, name: str) -> None:
    """What comes before a deep page is passed over in the narrowest of what there is, and nothing is sorted."""
    steps = [step for step in _plan(connection, "campaigns", name) if "campaigns" in step or "TEMP" in step]
    assert steps
    assert all(step.startswith(f"SEARCH campaigns USING COVERING INDEX {PAGES[name]}") for step in steps), steps


def test_campaigns_are_counted_without_looking_at_one(connection: sqlite3.Connection) -> None:
    """A list of a hundred thousand tells how many there are as fast as one of ten."""
    assert _plan(connection, "campaigns", "count") == [
        "SEARCH campaign_counts USING PRIMARY KEY (workspace_id=?)",
    ]


def test_campaigns_are_found_by_what_their_names_hold_within_their_workspace(connection: sqlite3.Connection) -> None:
    """The index of names is asked for the text and for the numbers of one workspace, then each campaign by its own."""
    names, campaigns, *_ = _plan(connection, "campaigns", "found")
    assert re.fullmatch(r"SCAN campaign_names VIRTUAL TABLE INDEX \d+:M1(><|<>)", names), names
    assert campaigns == "SEARCH campaigns USING INTEGER PRIMARY KEY (rowid=?)"


@pytest.mark.parametrize("filters", ["?search", "?channel,search", "?search,status", "?channel,search,status"])
def test_campaigns_that_are_scanned_come_in_the_order_of_an_index(connection: sqlite3.Connection, filters: str) -> None:
    """Nearly all of them may be found: to sort them would take longer than to find them."""
    plan = _plan(connection, "campaigns", f"scanned{filters}")
    steps = [step for step in plan if "campaigns" in step or "TEMP" in step]
    assert steps
    assert all(step.startswith("SEARCH campaigns USING INDEX campaigns_listed") for step in steps), steps


OVERVIEW = {
    ("campaigns", "count_in_status"): "campaigns_in_status",
    ("campaigns", "paused_by_engine"): "campaigns_in_status",
    ("campaigns", "taken_back"): "campaigns_in_status",
    ("dispatches", "count_unknown"): "dispatches_open",
    ("register", "held"): "unsubscribes_held",
}
"""What is asked over all workspaces, and the index of the few that it is about."""


@pytest.mark.parametrize(("aggregate", "name"), OVERVIEW)
def test_what_is_asked_over_everything_follows_an_index_of_the_few(
    connection: sqlite3.Connection, aggregate: str, name: str
) -> None:
    """A look at all that goes on costs the same however much was sent before, and is sorted already."""
    steps = _plan(connection, aggregate, name)
    assert any(f"INDEX {OVERVIEW[aggregate, name]}" in step for step in steps), steps
    assert not [step for step in steps if re.match(rf"(SEARCH|SCAN) ({'|'.join(LARGE)}|campaigns)$", step)], steps


def test_every_query_is_used() -> None:
    """A query that nothing asks for is a mistake."""
    package = Path(unit_of_work.__file__).parent
    asked = set(re.findall(r'"(?:\w+\.)?(\w+)"', "".join(path.read_text() for path in package.rglob("*.py"))))
    # Every table of what a workspace's owner sets up has a list.
    assert {name.partition("?")[0] for aggregate in AGGREGATES for name in sql.load(aggregate)} <= asked | {"list"}


def test_a_query_is_there_once_and_says_why() -> None:
    """Mistakes in the files are found when they are read."""
    assert dict(parse("-- File.\n\n-- one --\n-- Why.\nSELECT 1\n\n-- two --\n-- Why.\nSELECT 2")) == {
        "one": "-- Why.\nSELECT 1",
        "two": "-- Why.\nSELECT 2",
    }
    with pytest.raises(ValueError, match="'one' is there twice"):
        parse("-- one --\n-- Why.\nSELECT 1\n-- one --\n-- Why.\nSELECT 1")
    with pytest.raises(ValueError, match="'one' has no comment"):
        parse("-- one --\nSELECT 1")


@pytest.mark.anyio
async def test_an_iterator_of_recipients_that_raises_leaves_none(sqlite_storage: SqliteStorage) -> None:
    """Its error is the operation's own."""

    def rows() -> Iterator[tuple[int, PreparedRecipient, RecipientStatus, str | None]]:
        yield from contacts([10, 11])
        raise KeyError("source")

    def broken(tx: Transaction) -> int:
        with pytest.raises(KeyError, match="source"):
            tx.recipients.insert("w1", "c1", rows(), now=NOW)
        return len(tx.recipients.page("w1", "c1"))

    await sqlite_storage.write(set_up)
    assert await sqlite_storage.write(broken) == 0


@pytest.mark.anyio
async def test_the_unique_indexes_hold_for_who_writes_past_the_tables(
    sqlite_storage: SqliteStorage, database: Path
) -> None:
    """At most one open request a recipient and step is a rule of the file itself."""
    await sqlite_storage.write(lambda tx: set_up(tx, recipients=1, dispatches=[dispatch()]))
    settled = dispatch("d2", state=DispatchState.REFUSED)
    await sqlite_storage.write(lambda tx: tx.dispatches.insert(settled))
    with pytest.raises(AlreadyExists):
        await sqlite_storage.write(lambda tx: tx.dispatches.update(attrs.evolve(settled, state=DispatchState.UNKNOWN)))
    with opened(database) as other, pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        other.execute("UPDATE dispatches SET state = 'unknown' WHERE id = 'd2'")


def test_a_transaction_is_of_no_use_in_another_thread(connection: sqlite3.Connection) -> None:
    """An operation that lets its transaction escape is found out."""
    import threading

    errors: list[BaseException] = []

    def use() -> None:
        try:
            Session(connection).transaction.workspaces.list()
        except sqlite3.ProgrammingError as error:
            errors.append(error)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert len(errors) == 1
