from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from typing import TypeVar

import anyio
import attrs
import pytest

from outreach.ledger.campaigns import transitions
from outreach.ledger.sending import singles
from outreach.ledger.sending.intents import CAP_RECHECK_AFTER
from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.message import Message
from outreach.models.states import CallStatus, CampaignStatus, DispatchState, MessageStatus, RecipientStatus
from outreach.models.states import DispatchState as S
from outreach.models.work import WorkUnit
from outreach.protocols.storage import OneQuery, Operation, Storage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import (
    NOW,
    make_account,
    make_agent,
    make_call,
    make_call_campaign,
    make_campaign,
    make_dispatch,
    make_message,
    make_number,
    make_prepared,
    make_workspace,
)
from outreach.testing.clock import ManualClock
from outreach.testing.scripted import ScriptedCarrier, accept
from outreach.testing.storage_tables.base_contract import THIS_WORKSPACE, TICK, pending, publish
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.conftest import OpenStorage
from tests.engine.given import (
    ACCEPTED,
    SECOND,
    call_event,
    commit,
    given_active,
    given_dispatch,
    given_requested,
    intent_terms,
    plan_wave,
    receipt,
    recipient,
    refused,
    report,
    reread,
    settle,
)
from tests.engine.rig import WatchedStorage, reaches, sending

pytestmark = pytest.mark.virtual_time

T = TypeVar("T")

DAY = timedelta(hours=24)
PHONE = "+14155552671"
SENDER = "+14155550199"


async def given_cap(storage: Storage, cap: int) -> None:
    """Set the frequency cap of the workspace."""
    await storage.write(lambda tx: tx.workspaces.update(make_workspace(frequency_cap=cap)))


async def given_contact(storage: Storage, phone: str = PHONE) -> Campaign:
    """Write an active campaign with one contact of a certain number."""
    await given_active(storage, 0)  # brings the worker's lease
    campaign = make_campaign(status=CampaignStatus.ACTIVE, started_at=NOW)
    contact = make_prepared(phone_number=phone, phone=phone)
    return await storage.write(lambda tx: publish(tx, campaign, pending(contact)))


@pytest.mark.field(12)
async def test_two_campaigns_share_the_frequency_cap(storage: Storage) -> None:
    """Field, test 12 (Spoke #265, contacted by another campaign today): the second waits until the window is over."""
    await given_cap(storage, 1)
    first, second = await given_contact(storage), await given_contact(storage)
    await settle(storage, await given_dispatch(storage, first), ACCEPTED)
    assert (await commit(storage, second)).dispatches == ()
    held = await recipient(storage, second)
    assert (held.status, held.reason, held.due_at) == (RecipientStatus.WAITING, "frequency_cap", NOW + DAY)
    assert (held.attempts, held.dispatched) == (0, False)
    assert (await commit(storage, second, now=NOW + DAY - TICK)).dispatches == ()
    assert len((await commit(storage, second, now=NOW + DAY)).dispatches) == 1
    await reread(storage, second)


@pytest.mark.parametrize(
    ("outcome", "again"), [(ACCEPTED, False), (DispatchOutcome(state=S.NOT_SENT, reason="down"), True)]
)
async def test_who_is_capped_by_what_is_under_way_is_looked_at_again_soon(
    storage: Storage, outcome: DispatchOutcome, again: bool
) -> None:
    """It may have reached nobody; the campaign that waited a day for it could be over by then."""
    await given_cap(storage, 1)
    first, second = await given_contact(storage), await given_contact(storage)
    in_flight = await given_dispatch(storage, first)
    assert (await commit(storage, second)).dispatches == ()
    held = await recipient(storage, second)
    assert (held.reason, held.due_at) == ("frequency_cap", NOW + CAP_RECHECK_AFTER)
    await settle(storage, in_flight, outcome)
    assert bool((await commit(storage, second, now=NOW + CAP_RECHECK_AFTER)).dispatches) is again
    assert again or (await recipient(storage, second)).due_at == NOW + DAY


@pytest.mark.parametrize("state", DispatchState)
async def test_what_reached_nobody_does_not_count_against_the_cap(storage: Storage, state: DispatchState) -> None:
    """Deferred, withdrawn and not sent are not counted; what is in doubt is."""
    await given_cap(storage, 1)
    message = make_message(to=PHONE)
    await storage.write(lambda tx: tx.messages.insert(message))
    await storage.write(lambda tx: tx.dispatches.insert(make_dispatch(to=PHONE, message_id=message.id, state=state)))
    committed = await commit(storage, await given_contact(storage))
    assert len(committed.dispatches) == (state in {S.NOT_SENT, S.WITHDRAWN, S.DEFERRED})


async def test_a_plan_tells_who_is_capped(storage: Storage) -> None:
    """So that whole campaigns are put off without an intent each."""
    await given_cap(storage, 1)
    first, second = await given_contact(storage), await given_contact(storage)
    await settle(storage, await given_dispatch(storage, first), ACCEPTED)
    plan = await storage.read(lambda tx: plan_wave(tx, THIS_WORKSPACE, second.id, now=NOW, limit=9))
    assert plan is not None
    assert plan.capped_until == {0: NOW + DAY}


@pytest.mark.field(12)
async def test_the_rate_of_a_number_holds_over_its_campaigns_however_they_spell_it(
    storage: Storage, clock: ManualClock
) -> None:
    """Field, test 12 (jasmin #925, Spoke: each campaign is throttled for itself): so many starts in any 60 s."""
    await storage.write(lambda tx: tx.numbers.insert(make_number(phone=SENDER, rate_per_minute=30)))
    campaigns = [
        await given_active(storage, 50, from_number=spelling)
        for spelling in (SENDER, "+1 (415) 555-0199", "14155550199")
    ]
    slots: list[datetime] = []
    for turn in range(40):
        campaign = campaigns[turn % 3]
        one = turn // 3
        committed = await commit(storage, campaign, one, one + 20, now=clock.now(), look_ahead=9 * SECOND)
        slots += [dispatch.slot_at for dispatch in committed.dispatches]
        clock.advance(1.3)
    assert len(slots) > 20
    for start in slots:
        assert sum(start <= slot < start + 60 * SECOND for slot in slots) <= 30
    ordered = sorted(slots)
    assert all(later - earlier >= 2 * SECOND for earlier, later in pairwise(ordered))


async def test_a_single_message_takes_a_slot_of_its_number(storage: Storage) -> None:
    """Single messages follow the same rules; a number's rate is that of all it sends.

    docs/delivery-contract.md#rule-14 and docs/rules.md#pace.

    One that has no slot soon waits for it, and takes it before any campaign would.
    """
    await storage.write(lambda tx: tx.numbers.insert(make_number(phone=SENDER, rate_per_minute=30)))
    campaign = await given_active(storage, 5, from_number=SENDER)
    first, second, third = (
        make_message(from_number="+1 (415) 555-0199"),
        make_message(from_number=SENDER),
        make_message(from_number=SENDER),
    )
    elsewhere = make_message(from_number="+14155550188")
    for message in (first, second, third, elsewhere):
        await storage.write(lambda tx, message=message: singles.create_message(tx, message, now=NOW))  # type: ignore[misc]

    async def send(
        message: Message,
        *,
        now: datetime = NOW,
        not_before: datetime | None = None,
        lifetime: timedelta = 5 * SECOND,
        latest: datetime | None = None,
    ) -> datetime | None:
        terms = intent_terms(now, latest=latest or now + 15 * SECOND, lifetime=lifetime, not_before=not_before)
        unit = WorkUnit("message", THIS_WORKSPACE, message.id)
        made = await storage.write(lambda tx: singles.commit_single(tx, unit, terms, clock_now=lambda: now))
        if made is None:
            return None
        assert made.valid_until == now + 5 * SECOND
        return made.slot_at

    async def due(message: Message) -> datetime | None:
        work = await storage.read(lambda tx: tx.work.get(WorkUnit("message", THIS_WORKSPACE, message.id)))
        return work.due_at if work is not None else None

    assert [one.slot_at for one in (await commit(storage, campaign, 0)).dispatches] == [NOW]
    assert await send(first) == NOW + 2 * SECOND
    assert await send(second) is None
    assert await due(second) == NOW + 4 * SECOND - singles.SLOT_LEAD_TIME
    assert (await commit(storage, campaign, 1, now=NOW + 2 * SECOND, look_ahead=SECOND)).dispatches == ()
    assert await send(second, now=NOW + 2 * SECOND, not_before=NOW + 4 * SECOND + TICK) is None
    assert await send(second, now=NOW + 2 * SECOND) == NOW + 4 * SECOND
    assert await send(third, now=NOW + 5 * SECOND, lifetime=SECOND) is None
    assert await due(third) == NOW + 5.5 * SECOND
    assert await send(third, now=NOW + 5 * SECOND, latest=NOW + 5.9 * SECOND) is None
    assert await due(third) == NOW + 6 * SECOND
    assert await send(third, now=NOW + 5 * SECOND, latest=NOW + 6 * SECOND) is None
    later = await commit(storage, campaign, 1, 2, now=NOW + 6 * SECOND, look_ahead=9 * SECOND)
    assert [one.slot_at for one in later.dispatches] == [NOW + 6 * SECOND, NOW + 8 * SECOND]
    assert await send(elsewhere) == NOW


@pytest.mark.parametrize(("until", "sent"), [(SECOND, False), (SECOND + TICK, True)])
async def test_an_answer_to_a_keyword_takes_no_slot_at_the_moment_when_it_is_none_any_more(
    storage: Storage, until: timedelta, sent: bool
) -> None:
    """At `send_until` it is canceled as stale: a slot then would be taken for nothing."""
    await storage.write(lambda tx: tx.numbers.insert(make_number(phone=SENDER, rate_per_minute=60)))
    await given_active(storage)
    answer = make_message(from_number=SENDER, purpose="help", send_until=NOW + until)
    await storage.write(lambda tx: singles.create_message(tx, answer, now=NOW))
    await storage.write(lambda tx: tx.runs.put_sender_slot(THIS_WORKSPACE, SENDER, NOW + SECOND))
    terms = intent_terms(latest=NOW + 15 * SECOND)
    unit = WorkUnit("message", THIS_WORKSPACE, answer.id)
    made = await storage.write(lambda tx: singles.commit_single(tx, unit, terms, clock_now=lambda: NOW))
    assert (made is not None) == sent


class _SlowChecks(WatchedStorage):
    """A storage that takes a moment for the check before each request."""

    async def read(self, operation: Operation[T]) -> T:
        """Read, if it is such a check after a moment."""
        if isinstance(operation, OneQuery):
            await anyio.sleep(0.04)
        return await super().read(operation)


async def test_slots_follow_starts_that_are_late(open_storage: OpenStorage) -> None:
    """docs/rules.md#pace: a campaign whose every start is a little late does not fall behind by ever more."""
    storage = _SlowChecks(open_storage(clock_of_loop()))
    async with sending(storage, 80, carrier=ScriptedCarrier(lambda _: accept())) as (rig, campaign):
        await reaches(rig.engine, campaign, "completed")
        sent = [
            one
            for n in range(80)
            for one in await rig.engine.campaigns.list_dispatches(campaign.workspace_id, campaign.id, n)
        ]
    assert len(sent) == 80
    assert max(one.settled_at - one.slot_at for one in sent if one.settled_at is not None) < timedelta(seconds=1.5)


async def test_a_slow_number_does_not_hold_up_another(storage: Storage) -> None:
    """Field, test 18: the pace is the number's own."""
    await storage.write(lambda tx: tx.numbers.insert(make_number(phone=SENDER, rate_per_minute=1)))
    slow = await given_active(storage, 3, from_number=SENDER)
    quick = await given_active(storage, 3, from_number="+14155550188")
    assert len((await commit(storage, slow, 0, 1, 2, look_ahead=9 * SECOND)).dispatches) == 1
    committed = await commit(storage, quick, 0, 1, 2, look_ahead=9 * SECOND)
    assert [dispatch.slot_at for dispatch in committed.dispatches] == [NOW, NOW + SECOND, NOW + 2 * SECOND]


@pytest.mark.parametrize("reason", ["provider_auth", "provider_funds"])
@pytest.mark.parametrize("told_by", ["answer", "receipt"])
@pytest.mark.parametrize("single", [False, True])
async def test_trouble_with_the_account_pauses_every_campaign_of_it(
    storage: Storage, reason: str, told_by: str, single: bool
) -> None:
    """docs/rules.md#error-budget: active and scheduled, with the reason, however it became known; others' go on."""
    scheduled = {"status": CampaignStatus.SCHEDULED, "schedule_type": "scheduled", "scheduled_start_at": NOW + DAY}
    first, second = await given_active(storage, 2), await given_active(storage, 2)
    ahead = await given_active(storage, 2, started_at=None, **scheduled)
    other = await given_active(storage, 2, carrier="telnyx")
    other_ahead = await given_active(storage, 2, carrier="telnyx", started_at=None, **scheduled)
    if single:
        message = make_message(status=MessageStatus.DISPATCHING, tries=1)
        dispatch = make_dispatch(message_id=message.id, provider="twilio")
        await storage.write(lambda tx: (tx.messages.insert(message), tx.dispatches.insert(dispatch)))
    else:
        dispatch = await given_dispatch(storage, first)
    if told_by == "answer":
        await settle(storage, dispatch, refused(reason))
    else:
        await settle(storage, dispatch, ACCEPTED)
        await _receipt(storage, dispatch, MessageStatus.FAILED, reason)
    for campaign in (first, second, ahead):
        paused = await reread(storage, campaign)
        assert (paused.status, paused.pause_reason) == ("paused", reason)
    assert [(await reread(storage, one)).status for one in (other, other_ahead)] == ["active", "scheduled"]
    resumed = await storage.write(lambda tx: transitions.resume(tx, THIS_WORKSPACE, ahead.id, now=NOW, actor="test"))
    assert resumed.status == "scheduled"
    if told_by == "answer" and not single:
        # It was no fault of the contact's: it has its turn when the account is in order.
        contact = await recipient(storage, first)
        assert (contact.status, contact.reason, contact.attempts) == ("waiting", "deferred", 0)


@pytest.mark.parametrize("reason", ["provider_auth", "provider_funds"])
@pytest.mark.parametrize(("since", "status"), [(timedelta(), "paused"), (TICK, "active")])
async def test_a_refusal_of_earlier_credentials_pauses_nothing(
    storage: Storage, since: timedelta, status: str, reason: str
) -> None:
    """The operator has replaced them and resumed the campaigns while the last requests were under way."""
    campaign, dispatch = await given_requested(storage, 2)
    connected = make_account(provider="twilio", updated_at=dispatch.created_at + since)
    await storage.write(lambda tx: tx.accounts.insert(connected))
    await settle(storage, dispatch, refused(reason), now=NOW + timedelta(seconds=1))
    assert (await reread(storage, campaign)).status == status
    contact = await recipient(storage, campaign)
    assert (contact.status, contact.reason, contact.attempts) == ("waiting", "deferred", 0)


@pytest.mark.parametrize(("since", "waits"), [(timedelta(), False), (TICK, True)])
async def test_a_single_request_that_earlier_credentials_were_refused_for_goes_out_again(
    storage: Storage, since: timedelta, waits: bool
) -> None:
    """As a campaign's contact does; a refusal of today's credentials fails it."""
    message = make_message(status=MessageStatus.DISPATCHING, tries=1, attempts=1)
    call = make_call(status=CallStatus.DISPATCHING, tries=1, provider="vapi")
    singles = (
        make_dispatch(message_id=message.id, provider="twilio"),
        make_dispatch(channel="call", call_id=call.id, provider="vapi"),
    )

    def given(tx: Transaction) -> None:
        tx.agents.insert(make_agent(id=call.agent_id))
        tx.messages.insert(message)
        tx.calls.insert(call)
        for one in singles:
            tx.dispatches.insert(one)
            tx.accounts.insert(make_account(provider=one.provider, updated_at=one.created_at + since))

    await storage.write(given)
    for one in singles:
        await settle(storage, one, refused("provider_auth"), now=NOW + SECOND)
    sent, placed = await storage.read(
        lambda tx: (tx.messages.get(THIS_WORKSPACE, message.id), tx.calls.get(THIS_WORKSPACE, call.id))
    )
    assert sent is not None
    assert placed is not None
    assert (sent.status, sent.attempts) == (("queued", 0) if waits else ("failed", 1))
    assert placed.status == ("queued" if waits else "failed")
    units = [WorkUnit("message", THIS_WORKSPACE, sent.id), WorkUnit("call", THIS_WORKSPACE, placed.id)]
    due = await storage.read(lambda tx: [tx.work.get(unit) for unit in units])
    assert [work is not None and work.due_at is not None for work in due] == [waits, waits]


async def test_five_in_a_row_pause_a_campaign_and_a_resume_begins_anew(storage: Storage) -> None:
    """docs/rules.md#error-budget: the campaign alone; what failed before the resume is forgiven."""
    campaign, other = await given_active(storage, 20), await given_active(storage, 2)
    for position in range(5):
        assert (await reread(storage, campaign)).status == "active"
        dispatch = await given_dispatch(storage, campaign, position, now=NOW + position * SECOND)
        await settle(storage, dispatch, refused("rejected"), now=NOW + position * SECOND)
    paused = await reread(storage, campaign)
    assert (paused.status, paused.pause_reason) == ("paused", "error_budget")
    assert (await reread(storage, other)).status == "active"
    later = NOW + timedelta(minutes=1)
    await storage.write(lambda tx: transitions.resume(tx, THIS_WORKSPACE, campaign.id, now=later, actor="test"))
    for position in range(5, 9):
        moment = later + position * SECOND
        await settle(
            storage, await given_dispatch(storage, campaign, position, now=moment), refused("rejected"), now=moment
        )
    assert (await reread(storage, campaign)).status == "active"


async def _change(storage: Storage, campaign: Campaign, moment: datetime) -> None:
    changed = attrs.evolve(await reread(storage, campaign), updated_at=moment)
    await storage.write(lambda tx: tx.campaigns.update(changed))


async def test_a_change_of_a_campaign_does_not_begin_its_budget_anew(storage: Storage) -> None:
    """docs/rules.md#error-budget: only a resume does."""
    campaign = await given_active(storage, 20)
    await storage.write(lambda tx: transitions.pause(tx, THIS_WORKSPACE, campaign.id, now=NOW, actor="test"))
    await storage.write(lambda tx: transitions.resume(tx, THIS_WORKSPACE, campaign.id, now=NOW, actor="test"))
    for position in range(5):
        moment = NOW + position * SECOND
        await _change(storage, campaign, moment)
        dispatch = await given_dispatch(storage, campaign, position, now=moment)
        await settle(storage, dispatch, refused("rejected"), now=moment)
    assert (await reread(storage, campaign)).pause_reason == "error_budget"


async def test_requests_that_were_not_sent_do_not_hide_those_without_an_answer(storage: Storage) -> None:
    """docs/rules.md#error-budget: many get no connection while a provider hangs."""
    campaign = await given_active(storage, 200)
    hanging = [await given_dispatch(storage, campaign, position, now=NOW) for position in range(5)]
    for position in range(5, 105):
        moment = NOW + position * SECOND
        waiting = await given_dispatch(storage, campaign, position, now=moment)
        await settle(
            storage, waiting, DispatchOutcome(state=DispatchState.NOT_SENT, reason="not_connected"), now=moment
        )
    for dispatch in hanging:
        assert (await reread(storage, campaign)).status == "active"
        unanswered = DispatchOutcome(state=DispatchState.UNKNOWN, reason="timeout")
        await settle(storage, dispatch, unanswered, now=NOW + 110 * SECOND)
    paused = await reread(storage, campaign)
    assert (paused.status, paused.pause_reason) == ("paused", "error_budget")


async def _taken(storage: Storage, campaign: Campaign, position: int) -> Dispatch:
    moment = NOW + position * SECOND
    return await settle(storage, await given_dispatch(storage, campaign, position, now=moment), ACCEPTED, now=moment)


async def _receipt(storage: Storage, dispatch: Dispatch, status: MessageStatus, reason: str | None = None) -> None:
    await report(storage, receipt(dispatch, status, reason=reason), now=NOW + 60 * SECOND)


async def test_messages_that_fail_after_their_acceptance_spend_the_budget_each_once(storage: Storage) -> None:
    """docs/rules.md#error-budget: provider-class failures count, also those that only a receipt tells."""
    campaign, other = await given_active(storage, 20), await given_active(storage, 2)
    sent = [await _taken(storage, campaign, position) for position in range(5)]
    for dispatch in sent[:4]:
        for _ in range(3):
            await _receipt(storage, dispatch, MessageStatus.FAILED, "bad_sender")
    await _receipt(storage, sent[4], MessageStatus.SENT)
    assert (await reread(storage, campaign)).status == "active"
    await _receipt(storage, sent[4], MessageStatus.FAILED, "rejected")
    paused = await reread(storage, campaign)
    assert (paused.status, paused.pause_reason) == ("paused", "error_budget")
    assert (await reread(storage, other)).status == "active"


async def test_a_message_that_is_delivered_in_the_end_was_in_no_trouble(storage: Storage) -> None:
    """Delivered outranks failed; what is not so any more does not stay in the budget.

    docs/delivery-contract.md#rule-12.
    """
    campaign = await given_active(storage, 20)
    sent = [await _taken(storage, campaign, position) for position in range(5)]
    for dispatch in sent[:4]:
        await _receipt(storage, dispatch, MessageStatus.FAILED, "rejected")
    await _receipt(storage, sent[0], MessageStatus.DELIVERED)
    await _receipt(storage, sent[4], MessageStatus.FAILED, "rejected")
    stored = await storage.read(lambda tx: [tx.dispatches.get(THIS_WORKSPACE, one.id) for one in sent])
    assert [one.reason for one in stored if one is not None] == [None, *["rejected"] * 4]
    assert (await reread(storage, campaign)).status == "active"


async def test_a_single_call_that_ends_for_lack_of_credit_pauses_the_campaigns_of_the_account(storage: Storage) -> None:
    """docs/rules.md#error-budget: a call that was placed and then failed tells of the account too."""
    agent = make_agent(provider="vapi", direction="outbound")
    await storage.write(lambda tx: tx.agents.insert(agent))
    campaign = make_call_campaign(agent_id=agent.id, status=CampaignStatus.ACTIVE, started_at=NOW)
    call = make_call(agent_id=agent.id, provider="vapi", status=CallStatus.INITIATED, tries=1)
    dispatch = make_dispatch(call_id=call.id, channel="call", provider="vapi", state=DispatchState.ACCEPTED)

    def operation(tx: Transaction) -> None:
        publish(tx, campaign, pending(make_prepared()))
        tx.calls.insert(call)
        tx.dispatches.insert(dispatch)

    await storage.write(operation)
    assert await report(storage, call_event(dispatch, CallStatus.FAILED, reason="provider_funds"))
    paused = await reread(storage, campaign)
    assert (paused.status, paused.pause_reason) == ("paused", "provider_funds")


async def test_who_was_lost_with_a_worker_does_not_count_when_the_deadline_has_passed(storage: Storage) -> None:
    """Unconfirmed for want of evidence: it is still known that it was we who went away."""
    campaign = await given_active(storage, 9)
    for position in range(6):
        moment = NOW + position * SECOND
        dispatch = await given_dispatch(storage, campaign, position, now=moment)
        await settle(storage, dispatch, DispatchOutcome(state=S.UNKNOWN, reason="worker_lost"), now=moment)
        ended = await settle(storage, dispatch, DispatchOutcome(state=S.UNCONFIRMED, reason="no_evidence"), now=moment)
        assert ended.reason == "worker_lost"
    assert (await reread(storage, campaign)).status == "active"
