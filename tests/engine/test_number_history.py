"""Everything with one number."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from outreach import InvalidRequest, NotFound, Outreach, RecipientStatus
from outreach.models import HistoryItem
from outreach.models.states import CallStatus, DispatchState, MessageStatus, TrailStepKind
from outreach.protocols.storage import Storage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import (
    NOW,
    make_agent,
    make_call,
    make_campaign,
    make_dispatch,
    make_inbound,
    make_message,
    make_prepared,
    make_trail_entry,
    make_unsubscribe,
    new_id,
)
from outreach.testing.clock import ManualClock
from outreach.testing.storage_tables.base_contract import OTHER_WORKSPACE, THIS_WORKSPACE, pending, publish
from tests.engine.conftest import OpenStorage, given_workspaces

pytestmark = pytest.mark.anyio

ANN, BEN = "+14155550101", "+14155550102"
NEW, OLD = "+5511987654321", "+551187654321"
"""Two spellings of one Brazilian mobile."""


def at(minutes: float) -> datetime:
    """Return a moment so many minutes later."""
    return NOW + timedelta(minutes=minutes)


@pytest.fixture
async def opened(open_storage: OpenStorage, clock: ManualClock) -> AsyncIterator[tuple[Outreach, Storage]]:
    """Open an engine over a database with two workspaces."""
    storage = open_storage(clock)
    async with Outreach(storage, clock=clock) as engine:
        await given_workspaces(storage)
        yield engine, storage


def fill(tx: Transaction, workspace_id: str, phone: str, *, spelling: str) -> None:
    """Write one of everything, a minute apart, half of it under another spelling."""
    of = {"workspace_id": workspace_id}
    agent = make_agent(**of)
    tx.agents.insert(agent)
    campaign = make_campaign(id=new_id(), name="Autumn", created_at=at(0), **of)
    rows = [
        (0, make_prepared(phone=phone), RecipientStatus.COMPLETED, None),
        (1, make_prepared(phone=spelling), RecipientStatus.SKIPPED, "duplicate"),
    ]
    publish(tx, campaign, rows)
    sent = {"campaign_id": campaign.id, "position": 0, "state": DispatchState.ACCEPTED, **of}
    tx.dispatches.insert(make_dispatch(to=phone, report=MessageStatus.DELIVERED, created_at=at(1), **sent))
    failed = {"status": MessageStatus.FAILED, "reason": "unreachable", "created_at": at(2), "ended_at": at(2)}
    single = make_message(to=spelling, body="Hi", **failed, **of)
    tx.messages.insert(single)
    tx.dispatches.insert(make_dispatch(to=spelling, message_id=single.id, created_at=at(2), **of))
    positive = {"status": CallStatus.COMPLETED, "outcome": "positive", "created_at": at(3)}
    call = make_call(agent_id=agent.id, to=phone, **positive, **of)
    tx.calls.insert(call)
    tx.dispatches.insert(
        make_dispatch(to=phone, channel="call", call_id=call.id, provider="simulator", created_at=at(3), **of)
    )
    tx.inbound.insert(make_inbound(from_number=spelling, received_at=at(4), keyword="stop", body="STOP", **of))
    tx.trail.append(
        make_trail_entry(at=at(5), what=TrailStepKind.OPTED_OUT, state="all", reason="keyword", phone=phone, **of)
    )
    tx.trail.append(make_trail_entry(at=at(4), what=TrailStepKind.REPLIED, phone=phone, **of))
    answered = {"status": MessageStatus.SENT, "created_at": at(6), "ended_at": at(6)}
    answer = make_message(to=phone, purpose="stop", body="You will get no more.", **answered, **of)
    tx.messages.insert(answer)
    tx.trail.append(make_trail_entry(at=at(7), what=TrailStepKind.OPTED_IN, phone=spelling, **of))


def shown(items: Sequence[HistoryItem]) -> list[tuple[Any, ...]]:
    """Return what tells items apart."""
    return [(one.at, one.kind, one.direction, one.phone, one.status, one.reason, one.text) for one in items]


async def test_everything_with_a_number_is_listed_newest_first(opened: tuple[Outreach, Storage]) -> None:
    """Each thing once, under whichever spelling it stands; not that of others, nor of other workspaces."""
    engine, storage = opened
    await storage.write(lambda tx: fill(tx, THIS_WORKSPACE, NEW, spelling=OLD))
    await storage.write(lambda tx: fill(tx, THIS_WORKSPACE, ANN, spelling=ANN))
    await storage.write(lambda tx: fill(tx, OTHER_WORKSPACE, NEW, spelling=OLD))
    for asked in (NEW, OLD, "+55 (11) 98765-4321", "whatsapp:+551187654321"):
        page = await engine.contacts.list_history(THIS_WORKSPACE, asked)
        assert page.next is None
        assert shown(list(page)) == [
            (at(7), "opted_in", None, OLD, None, None, None),
            (at(6), "message", "outbound", NEW, "sent", "stop", "You will get no more."),
            (at(5), "opted_out", None, NEW, "all", "keyword", None),
            (at(4), "message", "inbound", OLD, None, "stop", "STOP"),
            (at(3), "call", "outbound", NEW, "completed", "positive", None),
            (at(2), "message", "outbound", OLD, "failed", "unreachable", "Hi"),
            (at(1), "message", "outbound", NEW, "delivered", None, "Hello Ann"),
            (at(0), "campaign", None, OLD, "skipped", "duplicate", None),
            (at(0), "campaign", None, NEW, "completed", None, None),
        ]
        of_campaign = [one for one in page if one.campaign_id is not None]
        assert [(one.campaign_name, one.position) for one in of_campaign] == [
            ("Autumn", 0),
            ("Autumn", 1),
            ("Autumn", 0),
        ]
        ids = [(one.message_id, one.call_id, one.dispatch_id) for one in page if one.kind in {"message", "call"}]
        assert all(sum(each is not None for each in one) == 1 for one in ids)
        assert len(set(ids)) == 5
    assert len(await engine.contacts.list_history(THIS_WORKSPACE, ANN)) == 9
    assert list(await engine.contacts.list_history(THIS_WORKSPACE, BEN)) == []


async def test_pages_of_any_size_have_every_item_once(opened: tuple[Outreach, Storage]) -> None:
    """Also where all kinds have items of the same moment, in two spellings."""
    engine, storage = opened

    def same_moment(tx: Transaction) -> None:
        agent = make_agent()
        tx.agents.insert(agent)
        for number in range(3):
            phone = (NEW, OLD)[number % 2]
            campaign = make_campaign(id=new_id())
            publish(tx, campaign, pending(make_prepared(phone=phone), make_prepared(phone=phone)))
            tx.dispatches.insert(make_dispatch(to=phone, campaign_id=campaign.id, position=0))
            tx.messages.insert(make_message(to=phone))
            tx.calls.insert(make_call(agent_id=agent.id, to=phone))
            tx.inbound.insert(make_inbound(from_number=phone))
            tx.trail.append(make_trail_entry(phone=phone, what=TrailStepKind.OPTED_IN))
        tx.register.put(make_unsubscribe(phone=OLD, scope="held", source="unclear"))

    await storage.write(same_moment)
    whole = list(await engine.contacts.list_history(THIS_WORKSPACE, NEW))
    assert len(whole) == 3 * 7 + 1
    assert [item async for item in engine.contacts.iter_history(THIS_WORKSPACE, NEW)] == whole
    for limit in (1, 2, 5, 21):
        found: list[HistoryItem] = []
        after = None
        while len(found) < len(whole):
            page = await engine.contacts.list_history(THIS_WORKSPACE, NEW, after=after, limit=limit)
            assert 0 < len(page) <= limit
            found += page
            after = page.next
        assert after is None
        assert found == whole


async def test_what_the_register_alone_knows_is_shown(opened: tuple[Outreach, Storage], clock: ManualClock) -> None:
    """A held number, and the hash of an erased one; nothing else of an erased person is found."""
    engine, storage = opened
    await storage.write(lambda tx: fill(tx, THIS_WORKSPACE, ANN, spelling=ANN))
    held = make_unsubscribe(phone=BEN, scope="held", source="unclear", created_at=at(9))
    await storage.write(lambda tx: tx.register.put(held))
    [item] = await engine.contacts.list_history(THIS_WORKSPACE, BEN)
    assert (item.at, item.kind, item.status, item.reason) == (at(9), "opted_out", "held", "unclear")
    clock.advance(600)
    await engine.unsubscribes.add(THIS_WORKSPACE, ANN)
    newest = list(await engine.contacts.list_history(THIS_WORKSPACE, ANN))
    assert len(newest) == 10, "the entry and its step in the trail are one"
    await engine.erasure.purge(THIS_WORKSPACE, ANN)
    [left] = await engine.contacts.list_history(THIS_WORKSPACE, ANN)
    assert (left.kind, left.status, left.reason, left.text) == ("opted_out", "all", "operator", None)


async def test_a_campaign_that_is_loading_is_not_shown(opened: tuple[Outreach, Storage]) -> None:
    """Nobody sees it before its last contact is there."""
    engine, storage = opened

    def load(tx: Transaction) -> None:
        campaign = make_campaign()
        tx.campaigns.insert_loading(campaign, loading_until=at(60))
        tx.recipients.insert(THIS_WORKSPACE, campaign.id, pending(make_prepared(phone=ANN)), now=NOW)

    await storage.write(load)
    assert list(await engine.contacts.list_history(THIS_WORKSPACE, ANN)) == []


async def test_what_is_no_number_and_no_workspace_is_refused(opened: tuple[Outreach, Storage]) -> None:
    """The message says how to write a number."""
    engine, _ = opened
    with pytest.raises(InvalidRequest, match=r"write it like \+14155550102"):
        await engine.contacts.list_history(THIS_WORKSPACE, "Ann")
    with pytest.raises(NotFound):
        await engine.contacts.list_history(new_id(), ANN)
