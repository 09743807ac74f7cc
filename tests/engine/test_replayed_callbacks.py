"""Callbacks that come again after what they did was deleted, and callbacks of long ago."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from outreach import Outreach, WorkspaceUpdate
from outreach.dispatch.worker import backoff_of
from outreach.ledger.settling.callback_events import MAX_EVENT_AGE, CallbackContext, process_events
from outreach.models.states import CallStatus, MessageStatus
from outreach.protocols.adapter import CallbackEvent, InboundMessageEvent
from outreach.protocols.storage import Storage
from outreach.providers.registry import Adapters
from outreach.rules.provider_analyser import ProviderAnalyser
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import (
    NOW,
    make_account,
    make_agent,
    make_call,
    make_call_report,
    make_dispatch,
    make_message,
    make_message_report,
    new_id,
)
from outreach.testing.clock import ManualClock
from outreach.testing.storage_tables.base_contract import THIS_WORKSPACE
from tests.engine.conftest import OpenStorage, given_workspaces
from tests.engine.rig import QUICK

pytestmark = pytest.mark.virtual_time

PHONE = "+14155550101"
DAY = timedelta(days=1)
OLD = MAX_EVENT_AGE + timedelta(seconds=1)


@pytest.fixture
async def engine(open_storage: OpenStorage, clock: ManualClock) -> AsyncIterator[Outreach]:
    """Open an engine that does not dispatch, over a database with a workspace that keeps little."""
    async with Outreach(open_storage(clock), clock=clock) as engine:
        await given_workspaces(engine._storage)
        await engine.workspaces.update(THIS_WORKSPACE, WorkspaceUpdate(retention_days=2))
        yield engine


async def wrote(engine: Outreach, body: str, provider_id: str) -> bool:
    """Receive a message, as Twilio sends it: without a time. Return whether it was new."""
    received = await engine.messages.receive(
        THIS_WORKSPACE, from_number=PHONE, to="+14155550100", body=body, provider="twilio", provider_id=provider_id
    )
    return received is not None


async def is_opted_out(engine: Outreach) -> bool:
    """Return whether the number is on the register."""
    return bool(await engine.unsubscribes.filter_unsubscribed(THIS_WORKSPACE, "sms", [PHONE]))


@pytest.mark.parametrize("words", ["START", "yes"])
async def test_a_start_that_comes_again_after_the_retention_changes_nothing(
    engine: Outreach, clock: ManualClock, words: str
) -> None:
    """Also a word that was no START when it came first; one that is new is obeyed."""
    assert await wrote(engine, words, "SM1")
    clock.advance(DAY.total_seconds())
    assert await wrote(engine, "STOP", "SM2")
    clock.advance((28 * DAY).total_seconds())
    await engine.erasure.apply_retention(THIS_WORKSPACE)
    assert not await engine.messages.list_inbound(THIS_WORKSPACE)
    assert not await wrote(engine, words, "SM1")
    assert await is_opted_out(engine)
    assert await wrote(engine, words, "SM3")
    assert not await is_opted_out(engine)


async def test_what_is_remembered_of_a_start_is_a_hash_and_outlives_every_sweep(
    engine: Outreach, clock: ManualClock
) -> None:
    """No number and no text; of other messages nothing."""
    for number, body in enumerate(("START", "STOP", "Hello", "HELP")):
        assert await wrote(engine, body, f"SM{number}")
    await engine.messages.receive(THIS_WORKSPACE, from_number=PHONE, to="+14155550100", body="START")
    clock.advance((28 * DAY).total_seconds())
    await engine.erasure.apply_retention(THIS_WORKSPACE)
    century = clock.now() + 36_500 * DAY
    assert await engine._storage.write(lambda tx: tx.requests.sweep(century, limit=10)) == 0
    assert [await wrote(engine, "START", f"SM{number}") for number in range(4)] == [False, True, True, True]


async def test_a_start_of_a_person_who_was_erased_since_is_remembered_too(engine: Outreach, clock: ManualClock) -> None:
    """Its text is gone, so that nobody knows what it said."""
    assert await wrote(engine, "yes", "SM1")
    await engine.erasure.purge(THIS_WORKSPACE, PHONE)
    clock.advance((28 * DAY).total_seconds())
    await engine.erasure.apply_retention(THIS_WORKSPACE)
    assert await wrote(engine, "STOP", "SM2")
    assert not await wrote(engine, "yes", "SM1")
    assert await is_opted_out(engine)


async def called_back(storage: Storage, content: Any, *, provider: str = "twilio") -> str:
    """Process one event of an account; return what became of it, as it was stored."""
    account = make_account(provider=provider)
    context = CallbackContext(ids=new_id, backoff=backoff_of(QUICK), analyser=ProviderAnalyser(), adapters=Adapters())

    def operation(tx: Transaction) -> None:
        event = CallbackEvent(event_id="e1", content=content)
        process_events(tx, account, [event], b"{}", context=context, now=NOW)

    await storage.write(lambda tx: tx.accounts.insert(account))
    await storage.write(operation)
    [record] = await storage.read(lambda tx: tx.callbacks.list(THIS_WORKSPACE))
    assert record.body == b"{}"
    return record.result


def text(body: str, age: timedelta) -> InboundMessageEvent:
    """Return a message of so long ago."""
    return InboundMessageEvent(provider_id="SM1", from_number=PHONE, to="+14155550100", body=body, at=NOW - age)


@pytest.mark.parametrize("body", ["START", "HELP", "Hello"])
@pytest.mark.parametrize(("age", "result"), [(MAX_EVENT_AGE, "received"), (OLD, "outdated")])
async def test_a_message_of_long_ago_is_kept_and_changes_nothing(
    storage: Storage, body: str, age: timedelta, result: str
) -> None:
    """It came a week late or more: no provider repeats one for so long."""
    assert await called_back(storage, text(body, age)) == result
    stored = await storage.read(lambda tx: tx.inbound.list(THIS_WORKSPACE))
    assert bool(stored) is (result == "received")


@pytest.mark.parametrize("body", ["STOP", "please take me off your list", "I said stop it, will you"])
async def test_an_opt_out_of_long_ago_counts(storage: Storage, body: str) -> None:
    """However late it comes, and also what only may be one."""
    assert await called_back(storage, text(body, 300 * DAY)) == "received"
    assert await storage.read(lambda tx: tx.register.get(THIS_WORKSPACE, PHONE)) is not None


@pytest.mark.parametrize(
    ("age", "reason", "result"),
    [
        (MAX_EVENT_AGE, None, "merged"),
        (OLD, None, "outdated"),
        (OLD, "rejected", "outdated"),
        (OLD, "opted_out", "merged"),
    ],
)
async def test_of_a_receipt_of_long_ago_counts_an_opt_out_alone(
    storage: Storage, age: timedelta, reason: str | None, result: str
) -> None:
    """It is kept as it came; the message itself stays what it was."""
    message = make_message(to=PHONE, status=MessageStatus.ACCEPTED)
    dispatch = make_dispatch(message_id=message.id, to=PHONE, provider_id="SM1")
    await storage.write(lambda tx: (tx.messages.insert(message), tx.dispatches.insert(dispatch)))
    status = MessageStatus.FAILED if reason else MessageStatus.DELIVERED
    report = make_message_report(provider_id="SM1", status=status, reason=reason, at=NOW - age)
    assert await called_back(storage, report) == result
    found = await storage.read(lambda tx: tx.messages.get(THIS_WORKSPACE, message.id))
    assert found is not None
    assert (found == message) is (age == OLD)
    assert found.status == ("accepted" if age == OLD else "delivered")
    entry = await storage.read(lambda tx: tx.register.get(THIS_WORKSPACE, PHONE))
    assert (entry is not None) is (reason == "opted_out")


async def test_an_opt_out_in_a_call_of_long_ago_counts_and_nothing_else(storage: Storage) -> None:
    """The call stays what it was."""
    agent = make_agent()
    call = make_call(to=PHONE, agent_id=agent.id, status=CallStatus.IN_PROGRESS)
    dispatch = make_dispatch(call_id=call.id, channel="call", to=PHONE, provider="vapi", provider_id="call-1")

    def given(tx: Transaction) -> None:
        tx.agents.insert(agent)
        tx.calls.insert(call)
        tx.dispatches.insert(dispatch)

    await storage.write(given)
    report = make_call_report(
        provider="vapi", provider_id="call-1", status=CallStatus.COMPLETED, at=NOW - OLD, do_not_call=True
    )
    assert await called_back(storage, report, provider="vapi") == "merged"
    assert await storage.read(lambda tx: tx.register.get(THIS_WORKSPACE, PHONE)) is not None
    found = await storage.read(lambda tx: tx.calls.get(THIS_WORKSPACE, call.id))
    assert found == call
