"""Sender pools: a campaign sends from several numbers, and each contact gets all its messages from one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any

import attrs
import pytest

from outreach import (
    CampaignUpdate,
    Conflict,
    FlowStep,
    InvalidRequest,
    NewFlow,
    NewMessage,
    NewNumber,
    NewSmsCampaign,
    Outreach,
    Workspace,
)
from outreach.ledger.common import workspace_of
from outreach.ledger.leases.leases import NUMBERS
from outreach.ledger.opt_out import inbound
from outreach.ledger.sending.intents import WaveSenders
from outreach.models.campaign import Campaign, NewFollowUp
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.plans import DecisionBasis, Intent, SenderPace, Wave
from outreach.models.resources import Number
from outreach.models.states import DispatchState, MessageStatus, RecipientStatus
from outreach.protocols.adapter import InboundMessageEvent
from outreach.protocols.storage import Storage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import NOW, WORKSPACE_ID, make_campaign, make_number, make_recipient, new_id
from outreach.testing.scripted import ScriptedCarrier, accept
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.conftest import OpenStorage
from tests.engine.given import ACCEPTED, SECOND, commit, given_active, receipt, recipient, report, settle
from tests.engine.rig import dispatching, given_campaign, given_workspace, start_campaign
from tests.engine.test_forecast import completes
from tests.engine.test_preflight import SLOW

pytestmark = pytest.mark.virtual_time

FIRST, SECOND_ONE, THIRD = "+14155550101", "+14155550102", "+14155550103"
POOL = (FIRST, SECOND_ONE, THIRD)
SERVICE = "MG" + "0aF1" * 8
MINUTE = timedelta(minutes=1)


async def given_pool(storage: Storage, count: int, *rates: int | None, **changes: Any) -> Campaign:
    """Write an active campaign with a pool of numbers with these rates."""
    for phone, rate in zip(POOL, rates, strict=False):
        number = make_number(phone=phone, rate_per_minute=rate)
        await storage.write(partial(_insert, number))
    pool = POOL[: len(rates)]
    return await given_active(storage, count, from_number=pool[0], from_numbers=pool, **changes)


def _insert(number: Number, tx: Transaction) -> None:
    tx.numbers.insert(number)


def senders_of(dispatches: Sequence[Dispatch]) -> list[str | None]:
    """Return what messages came from."""
    return [one.from_number for one in dispatches]


async def test_new_contacts_get_the_numbers_of_a_pool_in_turn(storage: Storage) -> None:
    """Over waves, too: the run remembers how many have got one."""
    campaign = await given_pool(storage, 5, None, None, None)
    sent = list((await commit(storage, campaign, 0, 1, look_ahead=9 * SECOND)).dispatches)
    sent += (await commit(storage, campaign, 2, 3, 4, now=NOW + 9 * SECOND, look_ahead=9 * SECOND)).dispatches
    assert senders_of(sent) == [*POOL, FIRST, SECOND_ONE]
    assert [(await recipient(storage, campaign, n)).caller_id for n in range(5)] == senders_of(sent)


async def test_a_contact_keeps_its_number(storage: Storage) -> None:
    """Another try comes from the number of the first one, whosever turn it is."""
    campaign = await given_pool(storage, 2, None, None)
    first, second = (await commit(storage, campaign, 0, 1, look_ahead=9 * SECOND)).dispatches
    deferred = DispatchOutcome(state=DispatchState.DEFERRED, reason="rate_limited")
    for dispatch in (first, second):
        await settle(storage, dispatch, deferred)
    waits = [(await recipient(storage, campaign, n)).due_at for n in (0, 1)]
    later = max(at for at in waits if at is not None)
    again = (await commit(storage, campaign, 1, 0, now=later, look_ahead=9 * SECOND)).dispatches
    assert senders_of(again) == [second.from_number, first.from_number]


async def test_the_rates_of_a_pool_add_up(storage: Storage) -> None:
    """A new contact gets the number that is free first; each number keeps its own rate."""
    campaign = await given_pool(storage, 9, 60, 30, rate_per_minute=600)
    quick: Any = {"spacing": SECOND / 10, "intent_lifetime": 9 * SECOND}
    sent = (await commit(storage, campaign, *range(9), look_ahead=3.9 * SECOND, **quick)).dispatches
    slots = {phone: [one.slot_at - NOW for one in sent if one.from_number == phone] for phone in (FIRST, SECOND_ONE)}
    assert slots[FIRST] == [n * SECOND for n in range(4)]
    assert slots[SECOND_ONE] == [0.1 * SECOND, 2.1 * SECOND]


async def test_kept_contacts_of_a_busy_number_are_postponed_in_turn(storage: Storage) -> None:
    """Each is decided again a look-ahead before its slot, at the latest after 15 minutes."""
    campaign = await given_pool(storage, 22, 1, None, rate_per_minute=600)

    def of_first(tx: Any) -> None:
        for position in range(20):
            known = tx.recipients.get(campaign.workspace_id, campaign.id, position)
            tx.recipients.put(campaign.workspace_id, attrs.evolve(known, caller_id=FIRST))

    await storage.write(of_first)
    sent = (await commit(storage, campaign, *range(22), look_ahead=2 * SECOND, spacing=SECOND / 10)).dispatches
    assert Counter(senders_of(sent)) == {FIRST: 1, SECOND_ONE: 2}
    waiting = [await recipient(storage, campaign, n) for n in range(1, 20)]
    assert {(one.status, one.reason, one.attempts) for one in waiting} == {(RecipientStatus.WAITING, "sender_rate", 0)}
    assert [one.due_at for one in waiting[:3]] == [NOW + n * MINUTE - 2 * SECOND for n in (1, 2, 3)]
    assert waiting[-1].due_at == NOW + 15 * MINUTE
    at = waiting[0].due_at
    assert at is not None
    [again] = (await commit(storage, campaign, 1, now=at, look_ahead=2 * SECOND, spacing=SECOND / 10)).dispatches
    assert (again.from_number, again.slot_at) == (FIRST, NOW + MINUTE)


@pytest.mark.parametrize("seed", range(20))
def test_a_wave_goes_in_the_order_of_its_slots(seed: int) -> None:
    """Each message is the one that can start first of all that are left; of several, the one that was due first."""
    random = Random(seed)
    pool = tuple(f"+1415555{1000 + n}" for n in range(random.randint(2, 9)))
    rated = {phone: random.choice((SECOND, 3 * SECOND)) for phone in pool if random.random() < 0.8}
    paces = {
        phone: SenderPace(
            workspace_id=WORKSPACE_ID,
            phone=phone,
            spacing=rated[phone],
            next_slot_at=NOW + random.randint(-2, 5) * SECOND,
        )
        if phone in rated
        else None
        for phone in pool
    }
    wave = make_wave(
        [random.choice((None, *pool, "+14155559999")) for _ in range(60)], random.choice((0, 0.1)) * SECOND
    )
    campaign = make_campaign(from_number=pool[0], from_numbers=pool)
    turn = random.randint(0, 9)
    ordered = WaveSenders(campaign, paces, wave, turn=turn).in_order(wave.intents, NOW)
    left, slot, senders = list(wave.intents), NOW, WaveSenders(campaign, paces, wave, turn=turn)
    for intent in ordered:
        starts = [senders.start(senders.sender_of(one.recipient, slot), slot) for one in left]
        assert left.pop(starts.index(min(starts))) is intent
        sender = senders.sender_of(intent.recipient, slot)
        assert sender in pool
        senders.take(sender, intent.recipient, min(starts))
        slot = min(starts) + wave.spacing
    assert not left


def make_wave(known: Sequence[str | None], spacing: timedelta) -> Wave:
    """Return a wave of intents whose contacts have these numbers already."""
    return Wave(
        workspace_id=WORKSPACE_ID,
        campaign_id=new_id(),
        epoch=1,
        basis=DecisionBasis(campaign=1, workspace=1, settings=1, agent=None),
        intents=[
            Intent(
                dispatch_id=new_id(),
                recipient=make_recipient(position=position, caller_id=one),
                provider="twilio",
                from_number=None,
                to="+14155550100",
            )
            for position, one in enumerate(known)
        ],
        endings=(),
        not_before=NOW,
        look_ahead=9 * SECOND,
        latest=NOW + MINUTE,
        spacing=spacing,
        intent_lifetime=9 * SECOND,
    )


async def test_a_pool_is_driven_by_one_worker(storage: Storage) -> None:
    """Its commit claims the numbers that have a rate."""
    campaign = await given_pool(storage, 1, 60, None)
    await commit(storage, campaign)
    held = await storage.read(lambda tx: {one.subject for one in tx.claims.held()})
    assert held == {NUMBERS, campaign.id}


@pytest.mark.parametrize("number", ["+14155550177", None, "ACME"])
async def test_a_contact_keeps_the_number_that_a_messaging_service_chose(storage: Storage, number: str | None) -> None:
    """Its receipt names the number; a name is none."""
    campaign = await given_active(storage, 1, from_number=SERVICE)
    [dispatch] = (await commit(storage, campaign)).dispatches
    assert (dispatch.from_number, (await recipient(storage, campaign)).caller_id) == (SERVICE, None)
    await settle(storage, dispatch, ACCEPTED)
    await report(storage, receipt(dispatch, MessageStatus.SENT, from_number=number))
    kept = number if number != "ACME" else None
    assert (await recipient(storage, campaign)).caller_id == kept
    await report(storage, receipt(dispatch, MessageStatus.DELIVERED, from_number="+14155550178"))
    assert (await recipient(storage, campaign)).caller_id == (kept or "+14155550178")


async def started(engine: Outreach, workspace: Workspace, pool: Sequence[str], **changes: Any) -> Campaign:
    """Start a campaign with a pool at the highest rate."""
    return await start_campaign(engine, workspace, from_number=None, from_numbers=pool, **changes)


async def test_a_report_counts_opt_outs_by_the_number_of_the_last_message(open_storage: OpenStorage) -> None:
    """Also where a contact wrote to another number of the pool; those of other campaigns do not count."""
    storage = open_storage(clock_of_loop())
    carrier = ScriptedCarrier(lambda _: accept().delivered(after_seconds=5))
    async with dispatching(storage, carrier=carrier, config=SLOW) as rig:
        engine, workspace = rig.engine, await given_workspace(rig.engine)
        for phone in (FIRST, SECOND_ONE):
            await engine.numbers.create(workspace.id, NewNumber(phone=phone, carrier="twilio"))
        campaign = await started(engine, workspace, (FIRST, SECOND_ONE), recipients=6)
        await completes(engine, campaign)
        of_number: dict[str | None, list[str]] = {}
        for message in rig.carrier.requests:
            of_number.setdefault(message.from_number, []).append(message.to)
        assert {number: len(people) for number, people in of_number.items()} == {FIRST: 3, SECOND_ONE: 3}
        left = [*of_number[FIRST][:2], of_number[SECOND_ONE][0], "+13035559999"]
        for phone in left:
            await engine.messages.receive(workspace.id, from_number=phone, to=FIRST, body="STOP")
        report = await engine.campaigns.report(workspace.id, campaign.id)
    assert [(one.from_number, one.requests, one.opt_outs) for one in report.senders] == [
        (FIRST, 3, 2),
        (SECOND_ONE, 3, 1),
    ]
    assert report.opt_outs == 3


@pytest.mark.virtual_time(max_run=timedelta(days=2))
async def test_flow_steps_and_follow_ups_come_from_the_number_that_a_contact_knows(open_storage: OpenStorage) -> None:
    """Whatever its rate is; the forecast adds the rates up."""
    storage = open_storage(clock_of_loop())
    carrier = ScriptedCarrier(lambda _: accept().delivered(after_seconds=5))
    async with dispatching(storage, carrier=carrier, config=SLOW) as rig:
        engine, workspace = rig.engine, await given_workspace(rig.engine)
        for phone, rate in ((FIRST, 10), (SECOND_ONE, 20)):
            await engine.numbers.create(workspace.id, NewNumber(phone=phone, carrier="twilio", rate_per_minute=rate))
        steps = [FlowStep(kind="send", body="one"), FlowStep(kind="send", body="two")]
        flow = await engine.flows.create(workspace.id, NewFlow(name="Flow", steps=steps))
        with_flow = {"message_source": "flow", "flow_id": flow.id}
        campaign = await started(engine, workspace, (FIRST, SECOND_ONE), recipients=30, **with_flow)
        told = await engine.campaigns.forecast(workspace.id, campaign.id)
        ended = await completes(engine, campaign)
        report = await engine.campaigns.report(workspace.id, campaign.id)
        everybody = NewFollowUp(results=["completed"], include=["reached"])
        follow = (await engine.campaigns.follow_up(workspace.id, campaign.id, everybody)).created
        again = await engine.campaigns.start(workspace.id, follow.campaign.id)
        await completes(engine, again)
    of_contact: dict[str, set[str | None]] = {}
    for message in rig.carrier.requests:
        of_contact.setdefault(message.to, set()).add(message.from_number)
    assert len(rig.carrier.requests) == 120
    assert len(of_contact) == 30
    assert {len(numbers) for numbers in of_contact.values()} == {1}
    assert [one.from_number for one in report.senders] == [FIRST, SECOND_ONE]
    assert sum(one.delivered for one in report.senders) == 60
    assert told.ends_at is not None
    assert ended.completed_at is not None
    assert ended.started_at is not None
    assert again.from_numbers == (FIRST, SECOND_ONE)
    took, forecast = ended.completed_at - ended.started_at, told.ends_at - told.at
    assert abs(took - forecast) < took / 10


async def test_a_pool_is_named_by_the_creation_or_a_change(engine: Outreach, workspace: Workspace) -> None:
    """Its first number is the campaign's; a pool of one is that number."""
    campaign = await given_campaign(engine, workspace, from_number=None, from_numbers=POOL)
    assert (campaign.status, campaign.from_number, campaign.from_numbers) == ("ready", FIRST, POOL)

    async def changed(**fields: Any) -> tuple[str | None, Sequence[str]]:
        found = await engine.campaigns.update(workspace.id, campaign.id, CampaignUpdate(**fields))
        return found.from_number, found.from_numbers

    assert await changed(from_numbers=POOL[:1]) == (FIRST, ())
    assert await changed(from_numbers=POOL[1:]) == (SECOND_ONE, POOL[1:])
    assert await changed(from_numbers=()) == (SECOND_ONE, ())
    assert await changed(from_numbers=POOL, from_number=FIRST) == (FIRST, POOL)
    assert await changed(from_number="ACME") == ("ACME", ())
    await changed(from_numbers=POOL)
    await engine.campaigns.start(workspace.id, campaign.id)
    for update in (CampaignUpdate(from_numbers=POOL[:2]), CampaignUpdate(from_number=FIRST)):
        with pytest.raises(Conflict, match="follow up"):
            await engine.campaigns.update(workspace.id, campaign.id, update)


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"from_numbers": [FIRST, FIRST]}, "from_numbers[1]"),
        ({"from_numbers": [FIRST, "ACME"]}, "from_numbers[1]"),
        ({"from_numbers": [FIRST, SERVICE]}, "from_numbers[1]"),
        ({"from_numbers": [FIRST], "from_number": SECOND_ONE}, "from_number"),
        ({"from_numbers": [f"+1415555{n:04}" for n in range(101)]}, "from_numbers"),
    ],
)
@pytest.mark.parametrize("new", [partial(NewSmsCampaign, name="N", body="Hi"), CampaignUpdate])
def test_a_pool_has_numbers_each_once(new: Any, fields: dict[str, Any], path: str) -> None:
    """At most 100; a name or a service is a sender of its own."""
    with pytest.raises(InvalidRequest) as refused:
        new(**fields)
    assert [detail.path for detail in refused.value.details] == [path]


async def test_each_number_of_a_pool_is_looked_at_before_the_start(engine: Outreach) -> None:
    """It must be the workspace's, at the campaign's carrier; a number in a pool is in use."""
    workspace = await given_workspace(engine, mode="live")
    await engine.accounts.connect(workspace.id, "twilio", {"account_sid": "AC" + "0" * 32, "auth_token": "x"})
    first = await engine.numbers.create(workspace.id, NewNumber(phone=FIRST, carrier="twilio"))
    await engine.numbers.create(workspace.id, NewNumber(phone=SECOND_ONE, carrier="telnyx"))
    campaign = await given_campaign(engine, workspace, from_number=None, from_numbers=POOL, add_sender=False)
    found = (await engine.campaigns.preflight(workspace.id, campaign.id)).problems
    assert {one.path: one.message.partition(":")[0] for one in found} == {
        "from_numbers[1]": f"{SECOND_ONE} of its sender pool is a number at Telnyx, not at the campaign's carrier",
        "from_numbers[2]": f"Its sending number {THIRD} is not a number of the workspace",
    }
    with pytest.raises(Conflict, match="in use by campaign"):
        await engine.numbers.remove(workspace.id, first.id)


@pytest.mark.parametrize(
    ("sender", "carrier", "words"),
    [
        (SERVICE, "twilio", None),
        ("4000eba1-a0c0-4563-9925-b25e842a7cb6", "telnyx", None),
        (SERVICE, "vonage", "no Messaging Service of Vonage"),
        (SERVICE, "telnyx", "no Messaging Service of Telnyx"),
    ],
)
async def test_a_messaging_service_belongs_to_its_carrier(
    engine: Outreach, workspace: Workspace, sender: str, carrier: Any, words: str | None
) -> None:
    """Vonage has none."""
    campaign = await given_campaign(engine, workspace, from_number=sender, carrier=carrier)
    found = await engine.campaigns.start_warnings(workspace.id, campaign.id)
    assert [words in one.message for one in found if words] == ([True] if words else [])
    assert bool(found) is (words is not None)


async def test_a_reply_tells_the_number_of_a_messaging_service(storage: Storage) -> None:
    """The receipt may be lost; the next message comes from the number that the contact wrote to."""
    campaign = await given_active(storage, 1, from_number=SERVICE)
    [dispatch] = (await commit(storage, campaign)).dispatches
    reply = InboundMessageEvent(provider_id="", from_number=dispatch.to, to=THIRD, body="Which table?", at=NOW)

    def receive(tx: Transaction) -> None:
        workspace = workspace_of(tx, campaign.workspace_id)
        inbound.receive(
            tx, workspace, reply, provider=None, answers_by=None, carrier_start_words=None, ids=new_id, now=NOW
        )

    await storage.write(receive)
    assert (await recipient(storage, campaign)).caller_id == THIRD
    await settle(storage, dispatch, DispatchOutcome(state=DispatchState.DEFERRED, reason="rate_limited"))
    due = (await recipient(storage, campaign)).due_at
    assert due is not None
    [again] = (await commit(storage, campaign, now=due)).dispatches
    assert again.from_number == THIRD


async def test_an_answer_goes_from_the_number_that_the_contact_wrote_to(engine: Outreach, workspace: Workspace) -> None:
    """Otherwise from the first number of the workspace."""
    for phone in POOL:
        await engine.numbers.create(workspace.id, NewNumber(phone=phone, carrier="twilio"))
    to = "+14155550000"
    assert (await engine.messages.send(workspace.id, NewMessage(to=to, body="Hi"))).from_number == FIRST
    await engine.messages.receive(workspace.id, from_number=to, to=THIRD, body="Which table?")
    assert (await engine.messages.send(workspace.id, NewMessage(to=to, body="Two"))).from_number == THIRD
    for blank in (None, " "):
        sent = await engine.messages.send(workspace.id, NewMessage(to=POOL[0], body="Two", from_number=blank))
        assert sent.from_number == FIRST
