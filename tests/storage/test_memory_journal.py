"""The undo journal: an operation that raises at whatever point leaves no trace."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outreach.errors import StorageError
from outreach.models.campaign import Counters
from outreach.models.settings import CallSettings, ReplySettings, SmsSettings
from outreach.models.states import CallStatus, CampaignStatus, DispatchState, RecipientStatus
from outreach.models.trail import What
from outreach.models.work import Home, Unit
from outreach.storage.memory.journal import Journal, Undoable
from outreach.storage.memory.table import Table
from outreach.storage.memory.transaction import Tables
from outreach.testing.builders import (
    NOW,
    WORKSPACE_ID,
    make_account,
    make_account_hold,
    make_agent,
    make_audit_entry,
    make_call,
    make_callback,
    make_campaign,
    make_dispatch,
    make_flow,
    make_inbound,
    make_key,
    make_lease,
    make_message,
    make_number,
    make_prepared,
    make_run,
    make_stored_request,
    make_trail_entry,
    make_trunk,
    make_unsubscribe,
    make_window,
    make_workspace,
)
from outreach.working_set import AlreadyThere

Step = Callable[[Tables], object]

# Few identifiers, so that the same row is written, written over and deleted again and again.
keys = st.sampled_from(["a", "b", "c"])
positions = st.integers(0, 4)
moments = st.integers(-3, 3).map(lambda minutes: NOW + timedelta(minutes=minutes))
phones = st.sampled_from(["+1", "+2", "+3"])


def calling(function: Callable[..., object], **arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    """Return steps that call a function of the tables with these arguments."""
    return st.fixed_dictionaries(arguments).map(lambda drawn: lambda tx: function(tx, **drawn))


def put_recipient(tx: Tables, key: str, position: int, status: RecipientStatus, due_at: Any) -> None:
    """Change the state of a recipient, when it is there."""
    recipient = tx.recipients.get(WORKSPACE_ID, key, position)
    if recipient is not None:
        tx.recipients.put(WORKSPACE_ID, attrs.evolve(recipient, status=status, due_at=due_at))


def insert_recipients(tx: Tables, key: str, at: list[int], phone: str, status: RecipientStatus) -> None:
    """Write recipients with one number."""
    rows = [(position, make_prepared(phone=phone), status, None) for position in at]
    tx.recipients.insert(WORKSPACE_ID, key, rows, now=NOW)


def touch(tx: Tables, key: str, kind: Any, due_at: Any) -> None:
    """Touch a unit."""
    tx.work.touch(Unit(kind, WORKSPACE_ID, key), due_at)


statuses = st.sampled_from(RecipientStatus)
maybe_moments = st.none() | moments

steps: st.SearchStrategy[Step] = st.one_of(
    calling(lambda tx, key: tx.workspaces.insert(make_workspace(id=key)), key=keys),
    calling(lambda tx, key, name: tx.workspaces.update(make_workspace(id=key, name=name)), key=keys, name=keys),
    calling(lambda tx, key, digest: tx.keys.insert(make_key(id=key, digest=digest)), key=keys, digest=keys),
    calling(lambda tx, key, digest: tx.keys.update(make_key(id=key, digest=digest)), key=keys, digest=keys),
    calling(lambda tx, key: tx.agents.insert(make_agent(id=key)), key=keys),
    calling(lambda tx, key, at: tx.agents.update(make_agent(id=key, created_at=at)), key=keys, at=moments),
    calling(lambda tx, key: tx.trunks.insert(make_trunk(id=key)), key=keys),
    calling(lambda tx, key, phone: tx.numbers.insert(make_number(id=key, phone=phone)), key=keys, phone=phones),
    calling(lambda tx, key: tx.flows.insert(make_flow(id=key)), key=keys),
    calling(lambda tx, key: tx.accounts.insert(make_account(id=key, provider=key)), key=keys),
    calling(lambda tx, key, at: tx.accounts.update(make_account(id=key, created_at=at)), key=keys, at=moments),
    calling(lambda tx, key: tx.accounts.delete(WORKSPACE_ID, key), key=keys),
    calling(lambda tx, key, at: tx.account_holds.put(make_account_hold(provider=key, until=at)), key=keys, at=moments),
    calling(lambda tx, key: tx.account_holds.delete(WORKSPACE_ID, key), key=keys),
    calling(lambda tx, key, at: tx.callbacks.insert(make_callback(event_id=key, received_at=at)), key=keys, at=moments),
    calling(lambda tx, at, limit: tx.callbacks.sweep(at, limit=limit), at=moments, limit=positions),
    calling(lambda tx, key: tx.settings.put(key, SmsSettings(footer_text=key)), key=keys),
    calling(
        lambda tx, key, most: tx.call_settings.put(key, CallSettings(retry_max_attempts=most)), key=keys, most=positions
    ),
    calling(
        lambda tx, phone, at: tx.register.put(make_unsubscribe(phone=phone, created_at=at)), phone=phones, at=moments
    ),
    calling(lambda tx, phone: tx.register.delete(WORKSPACE_ID, phone), phone=phones),
    calling(
        lambda tx, key, at: tx.campaigns.insert_loading(make_campaign(id=key), loading_until=at), key=keys, at=moments
    ),
    calling(lambda tx, key, at: tx.campaigns.extend_loading(WORKSPACE_ID, key, loading_until=at), key=keys, at=moments),
    calling(lambda tx, key: tx.campaigns.publish(make_campaign(id=key)), key=keys),
    calling(
        lambda tx, key, limit: tx.campaigns.delete_loading(WORKSPACE_ID, key, limit=limit), key=keys, limit=positions
    ),
    calling(
        lambda tx, key, status: tx.campaigns.update(make_campaign(id=key, status=status)),
        key=keys,
        status=st.sampled_from(CampaignStatus),
    ),
    calling(lambda tx, key: tx.campaigns.add_counters(WORKSPACE_ID, key, Counters(total=1)), key=keys),
    calling(
        insert_recipients, key=keys, at=st.lists(positions, max_size=3, unique=True), phone=phones, status=statuses
    ),
    calling(put_recipient, key=keys, position=positions, status=statuses, due_at=maybe_moments),
    calling(lambda tx, key, at: tx.recipients.delete_stopped_since(WORKSPACE_ID, key, "sms", at), key=keys, at=moments),
    calling(
        lambda tx, key, to, state: tx.dispatches.insert(make_dispatch(id=key, message_id=to, state=state)),
        key=keys,
        to=keys,
        state=st.sampled_from(DispatchState),
    ),
    calling(
        lambda tx, key, to, state: tx.dispatches.update(
            make_dispatch(id=key, campaign_id=to, position=1, call_id=to, provider_id=to, state=state)
        ),
        key=keys,
        to=keys,
        state=st.sampled_from(DispatchState),
    ),
    calling(lambda tx, key, to: tx.calls.insert(make_call(id=key, to=to)), key=keys, to=phones),
    calling(
        lambda tx, key, status: tx.calls.update(make_call(id=key, provider_call_id=key, status=status)),
        key=keys,
        status=st.sampled_from(CallStatus),
    ),
    calling(lambda tx, key: tx.reply_settings.put(key, ReplySettings(help_text=key)), key=keys),
    calling(lambda tx, key: tx.messages.insert(make_message(id=key)), key=keys),
    calling(lambda tx, key: tx.messages.insert(make_message(id=key, purpose="help")), key=keys),
    calling(lambda tx, key: tx.messages.update(make_message(id=key)), key=keys),
    calling(lambda tx, key, phone: tx.inbound.insert(make_inbound(id=key, sender=phone)), key=keys, phone=phones),
    calling(
        lambda tx, key, phone: tx.inbound.insert(make_inbound(sender=phone, provider_id=key, keyword="stop")),
        key=keys,
        phone=phones,
    ),
    calling(touch, key=keys, kind=st.sampled_from(["campaign", "call", "message"]), due_at=maybe_moments),
    calling(lambda tx, limit: tx.work.forget(limit=limit), limit=positions),
    calling(lambda tx, at: tx.leases.put(make_lease(renewed_at=at)), at=moments),
    calling(lambda tx, key: tx.leases.set_home(Home(host=key, path=key)), key=keys),
    calling(lambda tx, key, at: tx.runs.put(make_run(campaign_id=key, next_slot_at=at)), key=keys, at=moments),
    calling(lambda tx, phone, at: tx.runs.put_sender_slot(WORKSPACE_ID, phone, at), phone=phones, at=moments),
    calling(
        lambda tx, phone, at: tx.runs.put_sender_slot(WORKSPACE_ID, phone, next_slot_at=at), phone=phones, at=moments
    ),
    calling(
        lambda tx, key, at: tx.requests.put_window(make_window(workspace_id=key, started_at=at)), key=keys, at=moments
    ),
    calling(
        lambda tx, key, at: tx.requests.put_stored(make_stored_request(key=key, expires_at=at)), key=keys, at=moments
    ),
    calling(lambda tx, key: tx.requests.delete_stored(WORKSPACE_ID, "create_call", key), key=keys),
    calling(lambda tx, at, limit: tx.requests.sweep(at, limit=limit), at=moments, limit=positions),
    calling(lambda tx: tx.audit.append(make_audit_entry())),
    calling(
        lambda tx, key, at: tx.trail.append(make_trail_entry(what=What.HELD, campaign_id=key, position=at)),
        key=st.none() | keys,
        at=st.none() | positions,
    ),
    calling(
        lambda tx, key, position, at: tx.trail.prolong(WORKSPACE_ID, key, position, at),
        key=keys,
        position=positions,
        at=moments,
    ),
)


def tables_of(tx: Tables) -> list[Table[Any, Any]]:
    """Return every table of rows there is, found by looking: one that is added later is checked too."""
    found: dict[int, Table[Any, Any]] = {}
    for part in vars(tx).values():
        for value in vars(part).values():
            if isinstance(value, Table):
                found[id(value)] = value
    return list(found.values())


def content(tx: Tables) -> list[Any]:
    """Return a copy of every row and every index."""
    return [table.content() for table in tables_of(tx)]


def run(tx: Tables, operation: list[Step]) -> None:
    """Run steps; one that is refused is passed over, as an operation may."""
    for step in operation:
        try:
            step(tx)
        except (AlreadyThere, LookupError):
            continue


class Broken(Exception):
    """What the operations of these tests raise."""


@given(st.lists(st.lists(steps, max_size=12), max_size=3), st.lists(steps, max_size=25))
def test_an_operation_that_raises_leaves_everything_as_it_was(before: list[list[Step]], broken: list[Step]) -> None:
    """Whatever was there, whatever it did, wherever it raised: rows and indexes are equal to those before."""
    journal = Journal()
    tx = Tables(journal)
    for operation in before:
        with journal.recording():
            run(tx, operation)
    expected = content(tx)

    def fail() -> None:
        with journal.recording():
            run(tx, broken)
            raise Broken

    with pytest.raises(Broken):
        fail()
    assert content(tx) == expected


@given(st.lists(steps, max_size=40))
def test_indexes_are_functions_of_the_rows(operation: list[Step]) -> None:
    """Whatever order the rows came in: an index filled anew from the rows is the same."""
    journal = Journal()
    tx = Tables(journal)
    with journal.recording():
        run(tx, operation)
    for table in tables_of(tx):
        rows, indexes = table.content()
        for index in table._indexes:
            for key, row in rows.items():
                index.move(key, row, None)
            assert index.content() == {}
            for key in sorted(rows, key=repr, reverse=True):
                index.move(key, None, rows[key])
        assert table.content() == (rows, indexes)


class WatchedJournal(Journal):
    """A journal that remembers which tables were written to."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[int] = set()

    def record(self, table: Undoable, key: Hashable, before: object) -> None:
        """Note the table too."""
        super().record(table, key, before)
        self.seen.add(id(table))


def test_the_random_operations_reach_every_table() -> None:
    """A table that no step writes to would be undone by nothing and noticed by nobody."""
    journal = WatchedJournal()
    tx = Tables(journal)

    @settings(derandomize=True)
    @given(st.lists(steps, min_size=20, max_size=40))
    def fill(operation: list[Step]) -> None:
        with journal.recording():
            run(tx, operation)

    fill()
    assert {id(table) for table in tables_of(tx)} == journal.seen


@given(steps)
def test_nothing_is_written_outside_a_transaction(step: Step) -> None:
    """A step is refused before it has changed anything, or had nothing to change."""
    tx = Tables(Journal())
    expected = content(tx)
    with suppress(LookupError, AlreadyThere, StorageError):
        step(tx)
    assert content(tx) == expected
