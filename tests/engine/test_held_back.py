"""Who writes what may be an opt-out is held back from campaigns until somebody has decided what it means."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from outreach import NewWorkspace, Outreach
from outreach.errors import Conflict, InvalidRequest, NotFound
from outreach.ledger.opt_out.entries import is_number_held, put_on_register, release_number
from outreach.ledger.sending.intents import withdrawal_reason
from outreach.models.campaign import Campaign
from outreach.models.states import CampaignStatus, RecipientStatus
from outreach.protocols.storage import Storage
from outreach.rules.deciding import HELD_RECHECK_AFTER
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import NOW, make_campaign, make_inbound, make_prepared, make_unsubscribe
from outreach.testing.clock import ManualClock
from outreach.testing.storage_tables.base_contract import OTHER_WORKSPACE, THIS_WORKSPACE, pending, publish
from tests.engine.conftest import OpenStorage
from tests.engine.given import commit, given_active, given_dispatch, recipient
from tests.engine.writing import PERSON, entry, write

pytestmark = pytest.mark.virtual_time

UNCLEAR = "Can I cancel my appointment?"
R = RecipientStatus


async def given_waiting(storage: Storage) -> Campaign:
    """Write an active campaign with the person as its one contact."""
    await given_active(storage, 0)
    campaign = make_campaign(status=CampaignStatus.ACTIVE, started_at=NOW)
    contact = make_prepared(phone_number=PERSON, phone=PERSON)
    return await storage.write(lambda tx: publish(tx, campaign, pending(contact)))


async def test_campaigns_wait_for_who_has_written_something_unclear(storage: Storage) -> None:
    """No intent is committed; nobody is skipped for good either, for it may be no opt-out."""
    campaign = await given_waiting(storage)
    message = await write(storage, UNCLEAR)
    assert message.unclear
    found = await entry(storage)
    assert found is not None
    assert (found.scope, found.source) == ("held", "unclear")
    assert UNCLEAR in (found.evidence or "")
    assert (await commit(storage, campaign)).dispatches == ()
    held = await recipient(storage, campaign)
    assert (held.status, held.reason, held.due_at) == (R.WAITING, "unclear_reply", NOW + HELD_RECHECK_AFTER)
    assert (await commit(storage, campaign, now=NOW + HELD_RECHECK_AFTER)).dispatches == ()


async def test_nothing_but_campaigns_is_kept_from_the_number(storage: Storage) -> None:
    """Somebody may answer; another workspace knows nothing of it; and the register counts nobody as opted out."""
    await write(storage, UNCLEAR)
    for channel in ("sms", "call"):
        assert not await storage.read(lambda tx, c=channel: tx.register.stopped(THIS_WORKSPACE, c, {PERSON}))  # type: ignore[misc]
        standing = await storage.read(lambda tx, c=channel: tx.register.restrictions(THIS_WORKSPACE, c, {PERSON}))  # type: ignore[misc]
        assert standing == {PERSON: "held"}
    assert await storage.read(lambda tx: tx.register.restrictions(OTHER_WORKSPACE, "sms", {PERSON})) == {}


async def test_what_was_committed_before_is_not_sent(storage: Storage) -> None:
    """Asked once more immediately before the request; a single message goes."""
    campaign = await given_waiting(storage)
    dispatch = await given_dispatch(storage, campaign)
    await write(storage, UNCLEAR)
    assert await storage.read(lambda tx: withdrawal_reason(tx, dispatch)) == "unclear_reply"


async def test_an_opt_out_takes_the_place_of_a_doubt_and_no_doubt_that_of_an_opt_out(storage: Storage) -> None:
    """Whatever comes first."""
    await write(storage, UNCLEAR)
    await write(storage, "STOP")
    stopped = await entry(storage)
    await write(storage, UNCLEAR)
    assert await entry(storage) == stopped
    assert stopped is not None
    assert (stopped.scope, stopped.source) == ("all", "keyword")


@pytest.mark.parametrize("order", [1, -1])
async def test_a_doubt_and_an_opt_out_of_one_channel_are_one_of_both(storage: Storage, order: int) -> None:
    """The doubt held both channels back: without it, the other one would be contacted undecided."""
    only_calls = make_unsubscribe(phone=PERSON, scope="call", evidence="asked by phone")
    for step in ["doubt", "opt-out"][::order]:
        if step == "doubt":
            await write(storage, UNCLEAR)
        else:
            await storage.write(lambda tx: put_on_register(tx, only_calls))
    found = await entry(storage)
    assert found is not None
    assert (found.scope, found.source, found.evidence) == ("all", "operator", "asked by phone")


async def test_a_start_decides_for_oneself(storage: Storage) -> None:
    """Who writes START wants messages; campaigns go on at once."""
    campaign = await given_waiting(storage)
    await write(storage, UNCLEAR)
    await commit(storage, campaign)
    await write(storage, "START", now=NOW + timedelta(seconds=1))
    assert await entry(storage) is None
    assert len((await commit(storage, campaign, now=NOW + timedelta(seconds=1))).dispatches) == 1


async def test_a_hold_is_lifted_once(storage: Storage) -> None:
    """And of nobody else."""
    assert not await storage.write(lambda tx: release_number(tx, THIS_WORKSPACE, PERSON, now=NOW))
    await write(storage, "STOP")
    assert not await storage.write(lambda tx: release_number(tx, THIS_WORKSPACE, PERSON, now=NOW))
    assert not await storage.read(lambda tx: is_number_held(tx, THIS_WORKSPACE, None))
    assert await entry(storage) is not None


@pytest.mark.parametrize("opted_out", [True, False])
async def test_somebody_decides(open_storage: OpenStorage, opted_out: bool) -> None:
    """An opt-out skips those that wait; anything else lets them go on. It is decided once."""
    clock = ManualClock()
    async with Outreach(open_storage(clock), clock=clock) as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme"))
        await engine.messages.receive(workspace.id, from_number=PERSON, to="+14155550199", body=UNCLEAR)
        [held] = await engine.unsubscribes.list_held(workspace.id)
        assert held.phone == PERSON
        await engine.unsubscribes.resolve(workspace.id, PERSON, opted_out=opted_out)
        assert list(await engine.unsubscribes.list_held(workspace.id)) == []
        stopped = await engine.unsubscribes.filter_unsubscribed(workspace.id, "sms", [PERSON])
        assert stopped == ({PERSON} if opted_out else set())
        with pytest.raises(Conflict if opted_out else NotFound):
            await engine.unsubscribes.resolve(workspace.id, PERSON, opted_out=False)
        with pytest.raises(NotFound):
            await engine.unsubscribes.resolve(workspace.id, "nobody", opted_out=False)


async def test_a_further_doubtful_message_joins_the_first(storage: Storage) -> None:
    """The latest first, at its time; together they have at most 1,000 characters."""
    await write(storage, UNCLEAR)
    later = NOW + timedelta(minutes=1)
    await write(storage, "Lass mich in Ruhe", now=later)
    found = await entry(storage)
    assert found is not None
    assert (found.scope, found.created_at) == ("held", later)
    first, second = ((found.evidence or "").find(text) for text in ("Lass mich in Ruhe", UNCLEAR))
    assert 0 <= first < second
    for minute in range(2, 12):
        await write(storage, f"{UNCLEAR} {'x' * 150} {minute}", now=NOW + timedelta(minutes=minute))
    found = await entry(storage)
    assert found is not None
    assert found.evidence is not None
    assert (len(found.evidence), " 11" in found.evidence, found.evidence[-1]) == (1000, True, "…")


async def test_a_decision_is_about_the_entry_that_was_seen(open_storage: OpenStorage) -> None:
    """A further message needs a decision of its own, also if the first was decided before it came."""
    clock = ManualClock()
    async with Outreach(open_storage(clock), clock=clock) as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme"))
        register = engine.unsubscribes

        async def hold() -> datetime:
            clock.advance(60)
            await engine.messages.receive(workspace.id, from_number=PERSON, to="+14155550199", body=UNCLEAR)
            return (await register.get(workspace.id, PERSON)).created_at

        first = await hold()
        joined = await hold()
        with pytest.raises(Conflict, match="further message"):
            await register.resolve(workspace.id, PERSON, opted_out=False, seen=first)
        await register.resolve(workspace.id, PERSON, opted_out=False, seen=joined)
        again = await hold()
        for opted_out in (True, False):
            with pytest.raises(Conflict, match="further message"):
                await register.resolve(workspace.id, PERSON, opted_out=opted_out, seen=joined)
        assert (await register.get(workspace.id, PERSON)).scope == "held"
        with pytest.raises(InvalidRequest):
            await register.resolve(workspace.id, PERSON, opted_out=False, seen=again.replace(tzinfo=None))
        await register.resolve(workspace.id, PERSON, opted_out=False, seen=again)
        assert await register.filter_unsubscribed(workspace.id, "sms", [PERSON]) == set()


async def test_a_decision_stands_when_an_older_start_is_delivered_late(open_storage: OpenStorage) -> None:
    """A person has read what was written after it; only a newer START takes that back."""
    clock = ManualClock()
    async with Outreach(open_storage(clock), clock=clock) as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme"))
        await engine.messages.receive(workspace.id, from_number=PERSON, to="+14155550199", body=UNCLEAR)
        await engine.unsubscribes.resolve(workspace.id, PERSON, opted_out=True)
        clock.advance(60)
        for written_at, left in ((NOW - timedelta(seconds=1), {PERSON}), (NOW + timedelta(seconds=1), set())):
            await engine.messages.receive(
                workspace.id, from_number=PERSON, to="+14155550199", body="START", written_at=written_at
            )
            assert await engine.unsubscribes.filter_unsubscribed(workspace.id, "sms", [PERSON]) == left


async def test_who_is_held_back_is_found_behind_a_thousand_other_messages(open_storage: OpenStorage) -> None:
    """Somebody who writes and writes hides nobody."""
    clock = ManualClock()
    storage = open_storage(clock)
    async with Outreach(storage, clock=clock) as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme"))
        await engine.messages.receive(workspace.id, from_number=PERSON, to="+14155550199", body=UNCLEAR)

        def write_more(tx: Transaction) -> None:
            for second in range(1001):
                later = clock.now() + timedelta(seconds=second + 1)
                tx.inbound.insert(make_inbound(workspace_id=workspace.id, unclear=True, received_at=later))

        await storage.write(write_more)
        assert [entry.phone for entry in await engine.unsubscribes.list_held(workspace.id)] == [PERSON]
