"""The unit of work over a real database, whose statements are counted."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest

from outreach.models.campaign import Counters
from outreach.models.states import DispatchState, RecipientStatus
from outreach.models.work import WorkUnit
from outreach.storage.base.writer import Job, commit_group
from outreach.storage.sqlite.backend import Session, SqliteBackend, Transactions
from outreach.storage.sqlite.errors import as_caller_error
from outreach.storage.sqlite.memory import empty_database, open_image, write_now
from outreach.storage.sqlite.schema import apply_migrations
from outreach.storage.unit_of_work import AlreadyExists, Transaction, unit_of_work
from outreach.storage.unit_of_work.kinds import ALL_WORKSPACES, RECIPIENTS
from outreach.testing.builders import (
    NOW,
    WORKSPACE_ID,
    make_agent,
    make_dispatch,
    make_message,
    make_prepared,
    make_trail_entry,
    make_workspace,
    new_id,
)
from outreach.testing.builders import make_campaign as build_campaign
from outreach.testing.storage_tables.base_contract import OTHER_WORKSPACE, pending, publish


class Broken(Exception):
    """What an operation of these tests raises."""


@pytest.fixture
def session() -> Iterator[Session]:
    """A database in memory that holds a workspace."""
    with closing(open_image(empty_database())) as connection:
        made = Session(connection)
        write_now(made, lambda tx: tx.workspaces.insert(make_workspace(id=WORKSPACE_ID)))
        yield made


@pytest.fixture
def campaign_id(session: Session) -> str:
    """A campaign with fifty pending recipients."""
    campaign = build_campaign()
    contacts = [make_prepared() for _ in range(50)]
    write_now(session, lambda tx: publish(tx, campaign, pending(*contacts)))
    return campaign.id


def statements_of(session: Session, operation: Callable[[Transaction], Any]) -> list[str]:
    """Return the calls that an operation makes of the database, each by its first words."""
    asked: list[str] = []

    class Counting(SqliteBackend):
        def load(self, *given: Any) -> Any:
            asked.append(f"load {given[0].table}")
            return super().load(*given)

        def query(self, name: str, values: Any) -> Any:
            asked.append(f"query {name}")
            return super().query(name, values)

        def write(self, *given: Any) -> Any:
            asked.append(f"{given[1]} {given[0].table}")
            return super().write(*given)

        def run_many(self, name: str, rows: Any) -> Any:
            asked.append(f"run {name}")
            return super().run_many(name, rows)

    counting = Counting(session.connection)
    counting.__dict__.update(vars(session.rows.backend))
    session.rows.backend = counting
    write_now(session, operation)
    return asked


def forgetting(session: Session) -> Session:
    """Return a session that knows nothing of its database."""
    session.rows.forget()
    return session


def run_group(session: Session, *operations: Callable[[Transaction], Any]) -> list[Any]:
    """Commit operations as one group; return the result or the error of each."""
    waiting = [Job(operation=operation, bulk=False, done=None) for operation in operations]  # type: ignore[arg-type]
    group: list[Job] = []
    session.rows.read_only = False
    while waiting:
        commit_group(
            session,
            waiting.pop(0),
            lambda: waiting.pop(0) if waiting else None,
            group,
            control=Transactions(session.connection),
        )
    return [job.error or job.result for job in group]


def names(session: Session) -> set[str]:
    """Return the names of the agents, by a reader of its own."""
    reader = Session(session.connection, read_only=True)
    return {agent.name for agent in reader.transaction.agents.list(WORKSPACE_ID)}


def adding(name: str) -> Callable[[Transaction], str]:
    """Return an operation that goes to the database at once."""

    def add(tx: Transaction) -> str:
        tx.agents.insert(make_agent(name=name))
        return name

    return add


def test_a_row_is_read_once(session: Session, campaign_id: str) -> None:
    """Asked for again, in this transaction and in the next ones, nobody is asked."""

    def read(tx: Transaction) -> None:
        for _ in range(3):
            tx.campaigns.get(WORKSPACE_ID, campaign_id)
            tx.recipients.get(WORKSPACE_ID, campaign_id, 7)
            assert tx.settings.get(WORKSPACE_ID) is None

    assert sorted(statements_of(forgetting(session), read)) == [
        "load campaigns",
        "load recipients",
        "load sms_settings",
        "query campaigns.refs",
    ]
    assert statements_of(session, read) == []


def test_many_rows_are_written_by_one_statement(session: Session, campaign_id: str) -> None:
    """Whatever their number; counters are summed."""

    def write(tx: Transaction) -> None:
        for recipient in tx.recipients.page(WORKSPACE_ID, campaign_id):
            tx.recipients.put(WORKSPACE_ID, attrs.evolve(recipient, status=RecipientStatus.CANCELED))
            tx.campaigns.add_counters(WORKSPACE_ID, campaign_id, Counters(pending=-1))
            tx.trail.append(make_trail_entry(campaign_id=campaign_id, position=recipient.position))

    assert sorted(statements_of(forgetting(session), write)) == [
        "load campaigns",
        "query campaigns.refs",
        "query recipients.page",
        "run campaigns.add_counters",
        "run trail.append",
        "update recipients",
    ]
    reader = Session(session.connection, read_only=True).transaction
    assert [it.status for it in reader.recipients.page(WORKSPACE_ID, campaign_id)] == [RecipientStatus.CANCELED] * 50
    counted = reader.campaigns.get(WORKSPACE_ID, campaign_id)
    assert counted is not None
    assert counted.counters.pending == 0


def test_many_intents_are_opened_by_one_statement(session: Session, campaign_id: str) -> None:
    """And one whose recipient has an unsettled one is left out, without an error and without the others."""
    first = make_dispatch(campaign_id=campaign_id, position=3)
    write_now(session, lambda tx: tx.dispatches.insert(first))
    intents = [make_dispatch(campaign_id=campaign_id, position=position) for position in range(10)]
    opened: list[Any] = []
    asked = statements_of(session, lambda tx: opened.extend(tx.dispatches.open(intents)))
    assert asked == ["load dispatches", "insert dispatches", "load dispatches", "run work.draw_changes"]
    assert opened == [intent for intent in intents if intent.position != 3]
    reader = Session(session.connection, read_only=True).transaction
    assert list(reader.dispatches.of_recipient(WORKSPACE_ID, campaign_id, 3)) == [first]


def test_a_query_sees_what_is_pending(session: Session, campaign_id: str) -> None:
    """It is written before, of that kind at least."""

    def write(tx: Transaction) -> tuple[int, int]:
        before = tx.recipients.in_flight(WORKSPACE_ID, campaign_id)
        recipient = tx.recipients.get(WORKSPACE_ID, campaign_id, 0)
        assert recipient is not None
        tx.recipients.put(WORKSPACE_ID, attrs.evolve(recipient, status=RecipientStatus.DISPATCHING))
        return before, tx.recipients.in_flight(WORKSPACE_ID, campaign_id)

    assert write_now(session, write) == (0, 1)


def test_an_operation_that_fails_is_undone_in_memory(session: Session, campaign_id: str) -> None:
    """What the others of its group did stands, and what they knew is true."""

    def fail(tx: Transaction) -> None:
        recipient = tx.recipients.get(WORKSPACE_ID, campaign_id, 0)
        assert recipient is not None
        tx.recipients.put(WORKSPACE_ID, attrs.evolve(recipient, status=RecipientStatus.FAILED))
        tx.campaigns.add_counters(WORKSPACE_ID, campaign_id, Counters(failed=1))
        tx.work.schedule(WorkUnit("campaign", WORKSPACE_ID, campaign_id), NOW)
        tx.trail.append(make_trail_entry(campaign_id=campaign_id))
        tx.calls.get(WORKSPACE_ID, new_id())
        raise Broken

    def state(tx: Transaction) -> tuple[Any, ...]:
        campaign = tx.campaigns.get(WORKSPACE_ID, campaign_id)
        recipient = tx.recipients.get(WORKSPACE_ID, campaign_id, 0)
        assert campaign is not None
        assert recipient is not None
        return campaign.counters.failed, recipient.status, tx.work.last_change(), tx.trail.last_number()

    before = write_now(session, state)
    kept, failed, seen = run_group(session, adding("kept"), fail, state)
    assert (kept, seen) == ("kept", before)
    assert isinstance(failed, Broken)
    assert state(Session(session.connection, read_only=True).transaction) == before
    assert names(session) == {"kept"}


def test_one_that_fails_after_it_was_written_takes_nobody_along(session: Session) -> None:
    """The transaction is rolled back, and the others run again, once, with their results."""
    runs: list[str] = []

    def counted(name: str) -> Callable[[Transaction], str]:
        def run(tx: Transaction) -> str:
            runs.append(name)
            return adding(name)(tx)

        return run

    def fail(tx: Transaction) -> None:
        adding("undone")(tx)
        raise Broken

    first, failed, last = run_group(session, counted("first"), fail, counted("last"))
    assert (first, last) == ("first", "last")
    assert isinstance(failed, Broken)
    assert names(session) == {"first", "last"}
    assert runs == ["first", "first", "last"]


def test_a_row_that_is_refused_at_the_end_fails_its_own_operation(session: Session, campaign_id: str) -> None:
    """Whose it is shows when each runs alone; the others are kept, and nothing that is wrong is remembered."""

    def refused(tx: Transaction) -> None:
        # A call of a campaign that refers to no recipient.
        tx.dispatches.insert(make_dispatch(campaign_id=campaign_id, position=999))

    def buffered(tx: Transaction) -> None:
        tx.messages.insert(make_message(workspace_id=new_id()))

    kept, first, second = run_group(session, adding("kept"), refused, buffered)
    assert kept == "kept"
    assert isinstance(first, LookupError)
    assert isinstance(second, LookupError)
    assert names(session) == {"kept"}


def test_an_error_of_the_flush_is_nobody_elses(session: Session) -> None:
    """An operation whose query writes what another one left does not get that one's error."""
    bad = make_message(workspace_id=new_id())

    def looks(tx: Transaction) -> None:
        assert tx.messages.last_reply(WORKSPACE_ID, "+1", "help") is None

    failed, looked = run_group(session, lambda tx: tx.messages.insert(bad), looks)
    assert isinstance(failed, LookupError)
    assert looked is None


def test_what_no_column_can_hold_fails_its_own_operation(session: Session, campaign_id: str) -> None:
    """And never the writer."""
    odd: Any = object()
    kept, failed = run_group(
        session, adding("kept"), lambda tx: tx.messages.insert(make_message(body=odd, workspace_id=WORKSPACE_ID))
    )
    assert kept == "kept"
    assert isinstance(failed, Exception)
    assert names(session) == {"kept"}


def test_an_operation_cannot_swallow_that_it_is_unsound(session: Session) -> None:
    """It is no error of its own that it could go on after."""

    def careless(tx: Transaction) -> str:
        try:
            tx.messages.last_reply(WORKSPACE_ID, "+1", "help")
        except Exception as error:
            raise AssertionError from error
        return "done"

    failed, done = run_group(session, lambda tx: tx.messages.insert(make_message(workspace_id=new_id())), careless)
    assert isinstance(failed, LookupError)
    assert done == "done"


def test_rows_are_forgotten_when_somebody_else_has_written(tmp_path: Path) -> None:
    """The command line changes a workspace: the next transaction of the server sees it."""
    path = tmp_path / "shared.db"
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as ours,
        closing(sqlite3.connect(path, isolation_level=None)) as theirs,
    ):
        apply_migrations(ours)
        here, there = Session(ours), Session(theirs)
        write_now(here, lambda tx: tx.workspaces.insert(make_workspace(id=WORKSPACE_ID)))
        assert statements_of(here, lambda tx: tx.workspaces.get(WORKSPACE_ID)) == []
        write_now(there, lambda tx: tx.workspaces.update(make_workspace(id=WORKSPACE_ID, name="Changed")))
        found = write_now(here, lambda tx: tx.workspaces.get(WORKSPACE_ID))
        assert found is not None
        assert found.name == "Changed"


def test_a_campaign_is_looked_for_again_when_somebody_has_written_in_its_workspace(
    session: Session, campaign_id: str
) -> None:
    """Also where nothing but its number is known: it may have been deleted."""

    def recount(tx: Transaction) -> Counters:
        return tx.recipients.recount(WORKSPACE_ID, campaign_id)

    assert statements_of(forgetting(session), recount) == ["query campaigns.refs", "query recipients.recount"]
    session.rows.forget_changed(lambda workspace_id: workspace_id != WORKSPACE_ID)
    assert statements_of(session, recount) == ["query recipients.recount"]
    session.rows.forget_changed(lambda workspace_id: workspace_id == WORKSPACE_ID)
    assert statements_of(session, recount) == ["query campaigns.refs", "query recipients.recount"]


def test_rows_that_a_statement_has_changed_are_not_kept_by_their_keys_either(session: Session) -> None:
    """They come by the million, and are deleted before there are so many that the oldest are dropped."""
    write_now(forgetting(session), lambda tx: tx.work.schedule(WorkUnit("message", WORKSPACE_ID, "M"), None))
    assert session.rows.cached_workspaces() == {WORKSPACE_ID}
    assert write_now(session, lambda tx: tx.work.delete_idle(limit=10)) == 1
    assert session.rows.cached_workspaces() == set()


@pytest.mark.parametrize("most", [20_000, 4], ids=["all", "trimmed"])
@pytest.mark.parametrize("changed", [WORKSPACE_ID, OTHER_WORKSPACE, ALL_WORKSPACES])
def test_rows_are_read_again_of_the_workspaces_in_which_others_have_written(
    session: Session, monkeypatch: pytest.MonkeyPatch, changed: str, most: int
) -> None:
    """Filed by their workspace, by their campaign's, or without one; also where the oldest ones were dropped."""
    monkeypatch.setattr(unit_of_work, "MAX_CACHED_ROWS", most)
    campaigns = {one: build_campaign(workspace_id=one) for one in (WORKSPACE_ID, OTHER_WORKSPACE)}

    def given(tx: Transaction) -> None:
        tx.workspaces.insert(make_workspace(id=OTHER_WORKSPACE))
        for campaign in campaigns.values():
            publish(tx, campaign, pending(*[make_prepared() for _ in range(4)]))

    def read(workspace_id: str, tx: Transaction) -> None:
        campaign_id = campaigns[workspace_id].id
        tx.campaigns.get(workspace_id, campaign_id)
        tx.runs.get(workspace_id, campaign_id)
        tx.recipients.get(workspace_id, campaign_id, 3)
        tx.workspaces.get(workspace_id)

    def read_all(tx: Transaction) -> None:
        for position in range(3):
            for campaign in campaigns.values():
                tx.recipients.get(campaign.workspace_id, campaign.id, position)
        for workspace_id in campaigns:
            read(workspace_id, tx)
        tx.leases.home()

    write_now(session, given)
    write_now(forgetting(session), read_all)
    session.rows.forget_changed(changed.__eq__)
    of_workspace = ["load campaigns", "load recipients", "load runs", "load workspaces", "query campaigns.refs"]
    for workspace_id in campaigns:
        asked = statements_of(session, partial(read, workspace_id))
        assert sorted(asked) == (of_workspace if workspace_id == changed else [])
    assert statements_of(session, lambda tx: tx.leases.home()) == (["load home"] if changed == ALL_WORKSPACES else [])


def test_rows_of_a_campaign_that_was_not_known_are_read_again(session: Session) -> None:
    """They may be of any workspace."""
    campaign = build_campaign()
    key = (campaign.id, 0)
    assert write_now(session, lambda _: session.rows.get(RECIPIENTS, key)) is None
    there = Session(session.connection)
    write_now(there, lambda tx: publish(tx, campaign, pending(make_prepared())))
    session.rows.forget_changed(lambda _: False)
    assert write_now(session, lambda tx: tx.recipients.get(WORKSPACE_ID, campaign.id, 0)) is not None


def test_a_rolled_back_transaction_is_forgotten(session: Session, campaign_id: str) -> None:
    """What was read and written in it may never have been."""

    def fail(tx: Transaction) -> None:
        campaign = tx.campaigns.get(WORKSPACE_ID, campaign_id)
        assert campaign is not None
        tx.campaigns.update(attrs.evolve(campaign, name="Undone"))
        raise Broken

    with pytest.raises(Broken):
        write_now(session, fail)
    found = write_now(session, lambda tx: tx.campaigns.get(WORKSPACE_ID, campaign_id))
    assert found is not None
    assert found.name != "Undone"


def test_a_dispatch_that_is_reopened_beside_another_is_refused(session: Session, campaign_id: str) -> None:
    """The rule is the table's, before it is the index's."""
    settled = make_dispatch(campaign_id=campaign_id, position=0, state=DispatchState.REFUSED)
    opened = make_dispatch(campaign_id=campaign_id, position=0)

    def reopen(tx: Transaction) -> None:
        tx.dispatches.update(attrs.evolve(settled, state=DispatchState.UNKNOWN))

    write_now(session, lambda tx: (tx.dispatches.insert(settled), tx.dispatches.insert(opened)))
    with pytest.raises(AlreadyExists):
        write_now(session, reopen)


def test_errors_come_in_our_words() -> None:
    """What SQLite says stays the cause."""
    refused = sqlite3.IntegrityError("FOREIGN KEY constraint failed")
    refused.sqlite_errorcode = sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY
    assert isinstance(as_caller_error(refused), LookupError)
    mine = Broken()
    assert as_caller_error(mine) is mine
