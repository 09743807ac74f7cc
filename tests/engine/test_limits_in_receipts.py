from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

import attrs
import pytest

from outreach import EngineConfig
from outreach.core.log_throttle import LogThrottle
from outreach.dispatch.worker import notify_report
from outreach.ledger import provider_throttles
from outreach.ledger.campaigns import trail, transitions
from outreach.ledger.settling.recipient_outcomes import update_recipient
from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.reports import MessageReport
from outreach.models.states import (
    CallStatus,
    CampaignStatus,
    DispatchState,
    MessageStatus,
    RecipientStatus,
    TrailRule,
    WorkspaceStatus,
)
from outreach.models.work import WorkUnit
from outreach.protocols import Instrumentation
from outreach.protocols.storage import Storage
from outreach.rules.settlement import MAX_LIMITED_TRIES
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import NOW, make_account, make_dispatch, make_unsubscribe
from outreach.testing.clock import ShiftedClock
from outreach.testing.scripted import ScriptedCarrier, ScriptedVoice
from outreach.testing.storage_tables.base_contract import OTHER_WORKSPACE, THIS_WORKSPACE, TICK
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.calling import CALLS, calls_of, given_call_settings, given_calls, hear
from tests.engine.conftest import OpenStorage
from tests.engine.given import (
    ACCEPTED,
    BACKOFF,
    given_active,
    given_dispatch,
    given_settings,
    receipt,
    recipient,
    refused,
    report,
    reread,
    settle,
)
from tests.engine.rig import dispatching, given_campaign, given_workspace, people, reaches, reported

pytestmark = pytest.mark.virtual_time

R: TypeAlias = RecipientStatus
C: TypeAlias = CampaignStatus
MS: TypeAlias = MessageStatus
HOURS: Final = 9 * 3600.0


def limit(dispatch: Dispatch, **changes: Any) -> MessageReport:
    """Return a receipt of a message that failed at a daily limit."""
    limited = {"reason": "rate_limited", "retry_after_seconds": HOURS, "error_code": "30027"}
    return receipt(dispatch, MS.FAILED, **{**limited, **changes})


async def sent(storage: Storage, campaign: Campaign, position: int = 0, *, now: datetime = NOW) -> Dispatch:
    """Send to one contact, which the carrier accepts."""
    dispatch = await given_dispatch(storage, campaign, position, now=now)
    return await settle(storage, dispatch, attrs.evolve(ACCEPTED, provider_id=dispatch.id[:30]), now=now)


async def given_sent(storage: Storage, count: int = 1) -> tuple[Campaign, Dispatch]:
    """Write an active campaign of so many contacts, and send to the first of them."""
    campaign = await given_active(storage, count)
    return campaign, await sent(storage, campaign)


async def change(storage: Storage, campaign: Campaign, **changes: Any) -> None:
    """Change the first contact."""
    before = await recipient(storage, campaign)
    after = attrs.evolve(before, **changes)

    def operation(tx: Transaction) -> None:
        update_recipient(tx, before, after, campaign, rule=TrailRule.FLOW, now=NOW)

    await storage.write(operation)


async def throttled_until(storage: Storage, now: datetime = NOW) -> datetime | None:
    """Return until when the carrier is not asked for anything."""
    throttle = await storage.read(lambda tx: provider_throttles.active_throttle(tx, THIS_WORKSPACE, "twilio", now))
    return throttle.until if throttle is not None else None


@pytest.mark.parametrize("retry", [False, True])
async def test_a_daily_limit_puts_the_contact_back_and_throttles_the_account(storage: Storage, retry: bool) -> None:
    """Whether retry is on or off: nobody was reached, so no attempt is spent."""
    await given_settings(storage, retry_enabled=retry)
    campaign = await given_active(storage, 2)
    first = await sent(storage, campaign)
    assert await report(storage, limit(first))
    after = await recipient(storage, campaign)
    assert (after.status, after.reason, after.attempts, after.tries) == (R.WAITING, "deferred", 0, 1)
    assert (after.due_at, after.ended_at, after.successful) == (NOW + timedelta(seconds=1), None, False)
    assert await throttled_until(storage) == NOW + timedelta(hours=9)
    stored = await reread(storage, campaign)
    assert (stored.status, stored.counters.failed, stored.counters.open) == (C.ACTIVE, 0, 2)
    later = NOW + timedelta(hours=9)
    second = await sent(storage, campaign, now=later)
    assert (second.attempt, second.try_number) == (1, 2)
    await report(storage, receipt(second, MS.DELIVERED), now=later)
    done = await recipient(storage, campaign)
    assert (done.status, done.attempts, done.successful) == (R.COMPLETED, 1, True)
    await reread(storage, campaign)


@pytest.mark.parametrize(
    "changes",
    [{"retry_after_seconds": None, "error_code": "30001"}, {"at": NOW - timedelta(hours=10)}],
    ids=["one sender's", "over"],
)
async def test_a_limit_that_is_not_the_accounts_of_today_throttles_nobody(
    storage: Storage, changes: dict[str, Any]
) -> None:
    """The carrier names no time for a queue that is full (30001); else its time counts from the failure on."""
    campaign = await given_active(storage, 2)
    await report(storage, limit(await sent(storage, campaign), **changes))
    assert (await recipient(storage, campaign)).status is R.WAITING
    assert await throttled_until(storage) is None


@pytest.mark.parametrize("seconds", [1e12, 86_400.0])
async def test_a_limit_throttles_for_a_day_at_most(storage: Storage, seconds: float) -> None:
    """Also where a carrier's clock is ahead."""
    campaign = await given_active(storage, 2)
    event = limit(await sent(storage, campaign), retry_after_seconds=seconds, at=NOW + timedelta(days=3))
    await report(storage, event)
    assert await throttled_until(storage) == NOW + timedelta(days=1)


async def test_a_longer_throttle_stands(storage: Storage) -> None:
    """A limit by the minute does not end a daily one."""
    campaign = await given_active(storage, 3)
    first, second = await sent(storage, campaign), await sent(storage, campaign, 1)
    await report(storage, limit(first))
    await report(storage, limit(second, retry_after_seconds=60.0, error_code="30022"))
    assert await throttled_until(storage) == NOW + timedelta(hours=9)


async def test_a_limit_of_replaced_credentials_throttles_nobody(storage: Storage) -> None:
    """The account of today may be another one, whose limit is not reached."""
    campaign, dispatch = await given_sent(storage, 2)
    account = make_account(provider="twilio", updated_at=NOW + TICK)
    await storage.write(lambda tx: tx.accounts.insert(account))
    await report(storage, limit(dispatch, at=NOW + 2 * TICK), now=NOW + 2 * TICK)
    assert (await recipient(storage, campaign)).status is R.WAITING
    assert await throttled_until(storage, NOW + 2 * TICK) is None


async def test_an_attempt_ends_after_so_many_tries_at_a_limit(storage: Storage) -> None:
    """A number that a network limits for good is not written to for ever."""
    campaign = await given_active(storage, 2)
    now = NOW
    for number in range(1, MAX_LIMITED_TRIES + 1):
        dispatch = await sent(storage, campaign, now=now)
        assert (dispatch.attempt, dispatch.try_number) == (1, number)
        await report(storage, limit(dispatch, retry_after_seconds=None, at=now), now=now)
        now += timedelta(hours=1)
    after = await recipient(storage, campaign)
    assert (after.status, after.reason) == (R.FAILED, "rate_limited")
    await reread(storage, campaign)


async def test_tries_that_the_carrier_did_not_take_are_no_tries_at_a_limit(storage: Storage) -> None:
    """A contact that was deferred ten times waits after its first failure at a limit."""
    campaign = await given_active(storage, 2)
    now = NOW
    for _ in range(MAX_LIMITED_TRIES):
        dispatch = await given_dispatch(storage, campaign, now=now)
        await settle(storage, dispatch, DispatchOutcome(state=DispatchState.DEFERRED, reason="rate_limited"), now=now)
        now += timedelta(hours=1)
    await report(storage, limit(await sent(storage, campaign, now=now), at=now), now=now)
    after = await recipient(storage, campaign)
    assert (after.status, after.reason, after.attempts) == (R.WAITING, "deferred", 0)


async def over(storage: Storage, campaign: Campaign, **changes: Any) -> None:
    """End a campaign, or change one that has ended."""
    ended = attrs.evolve(await reread(storage, campaign), **{"completed_at": NOW, **changes})
    await storage.write(lambda tx: tx.campaigns.update(ended))


@pytest.mark.parametrize("status", [C.CANCELLED, C.EXPIRED])
async def test_a_campaign_that_ended_early_is_not_opened_by_a_limit(storage: Storage, status: CampaignStatus) -> None:
    """The contact has failed, and a follow-up finds it."""
    campaign, dispatch = await given_sent(storage, 2)
    await over(storage, campaign, status=status)
    await report(storage, limit(dispatch))
    after = await recipient(storage, campaign)
    assert (after.status, after.reason) == (R.FAILED, "rate_limited")
    assert await throttled_until(storage) is not None
    assert (await reread(storage, campaign)).status is status


@pytest.mark.parametrize("retry_after", [HOURS, None])
async def test_a_completed_campaign_goes_on_after_a_limit(storage: Storage, retry_after: float | None) -> None:
    """A short list is sent completely before the first receipt comes."""
    campaign = await given_active(storage, 2)
    first, second = await sent(storage, campaign), await sent(storage, campaign, 1)
    done = await reread(storage, campaign)
    assert (done.status, done.completed_at) == (C.COMPLETED, NOW)
    await storage.write(lambda tx: tx.campaigns.update(attrs.evolve(done, archived_at=NOW)))
    later = NOW + BACKOFF.receipt - TICK
    for number, dispatch in enumerate((first, second)):
        await report(storage, limit(dispatch, retry_after_seconds=retry_after), now=later)
        after = await recipient(storage, campaign, number)
        assert (after.status, after.reason, after.attempts, after.successful) == (R.WAITING, "deferred", 0, False)
    opened = await reread(storage, campaign)
    assert (opened.status, opened.completed_at, opened.started_at, opened.archived_at) == (C.ACTIVE, None, NOW, None)
    assert (opened.counters.open, opened.counters.failed, opened.counters.completed) == (2, 0, 0)
    unit = WorkUnit("campaign", THIS_WORKSPACE, campaign.id)
    work = await storage.read(lambda tx: tx.work.get(unit))
    assert (work and work.due_at) == later
    entries = await storage.read(lambda tx: tx.audit.list(THIS_WORKSPACE))
    assert [(one.actor, one.action) for one in entries if one.action == "campaign.reopen"] == [
        ("engine", "campaign.reopen")
    ]
    reset = NOW + timedelta(hours=13)
    for number in range(2):
        await report(storage, receipt(await sent(storage, campaign, number, now=reset), MS.DELIVERED), now=reset)
    again = await reread(storage, campaign)
    assert (again.status, again.completed_at, again.counters.successful) == (C.COMPLETED, reset, 2)


@pytest.mark.parametrize(
    "changes",
    [
        {"completed_at": NOW - BACKOFF.receipt},
        {"scheduled_expires_at": NOW},
        {"erased_at": NOW},
    ],
    ids=["long ago", "past its expiry", "erased"],
)
async def test_a_completed_campaign_whose_time_is_over_is_not_opened_by_a_limit(
    storage: Storage, changes: dict[str, Any]
) -> None:
    """Its text may be out of date, or gone."""
    campaign, dispatch = await given_sent(storage)
    await over(storage, campaign, **changes)
    await report(storage, limit(dispatch))
    after = await recipient(storage, campaign)
    assert (after.status, after.reason) == (R.FAILED, "rate_limited")
    assert (await reread(storage, campaign)).status is C.COMPLETED


async def test_a_completed_campaign_of_a_copied_database_is_not_opened_by_a_limit(storage: Storage) -> None:
    """What was requested before a quarantine is not requested again by itself."""
    campaign, dispatch = await given_sent(storage)

    def quarantine(tx: Transaction) -> None:
        lease = tx.leases.current()
        assert lease is not None
        tx.leases.put(attrs.evolve(lease, quarantine_reason="restored", quarantine_epoch=dispatch.epoch + 1))

    await storage.write(quarantine)
    await report(storage, limit(dispatch))
    assert (await recipient(storage, campaign)).status is R.FAILED
    assert (await reread(storage, campaign)).status is C.COMPLETED


async def _stop(storage: Storage, workspace_id: str | None, *, now: datetime = NOW) -> None:
    assert not await storage.write(lambda tx: transitions.pause_all(tx, workspace_id, now=now, actor="cli:ann"))


@pytest.mark.parametrize("workspace_id", [THIS_WORKSPACE, None])
@pytest.mark.parametrize("stopped_at", [NOW, NOW + TICK, NOW - timedelta(hours=1)])
async def test_a_campaign_that_completed_before_a_stop_is_not_opened_by_a_limit(
    storage: Storage, workspace_id: str | None, stopped_at: datetime
) -> None:
    """A stop is for good until a person resumes, also where the clock was set back before it."""
    campaign, dispatch = await given_sent(storage)
    await _stop(storage, workspace_id, now=stopped_at)
    await report(storage, limit(dispatch))
    after = await recipient(storage, campaign)
    assert (after.status, after.reason) == (R.FAILED, "rate_limited")
    assert (await reread(storage, campaign)).status is C.COMPLETED
    assert await throttled_until(storage) is not None


async def test_a_stop_long_ago_is_found_behind_later_changes_of_the_workspace(storage: Storage) -> None:
    """Where too many follow to tell, the campaign stays completed."""
    campaign, dispatch = await given_sent(storage)
    await _stop(storage, THIS_WORKSPACE)

    def change(tx: Transaction) -> None:
        for _ in range(60):
            trail.record_workspace_status(
                tx, THIS_WORKSPACE, WorkspaceStatus.ACTIVE, reason="rules", actor="cli:ann", now=NOW
            )

    await storage.write(change)
    await report(storage, limit(dispatch))
    assert (await reread(storage, campaign)).status is C.COMPLETED


async def test_a_campaign_that_completed_after_a_stop_goes_on_after_a_limit(storage: Storage) -> None:
    """Nor does a stop of another workspace, or a change of this one, keep it completed."""
    campaign = await given_active(storage)
    await storage.write(
        lambda tx: (
            transitions.pause_all(tx, THIS_WORKSPACE, now=NOW, actor="cli:ann")
            and transitions.resume(tx, THIS_WORKSPACE, campaign.id, now=NOW, actor="cli:ann")
        )
    )
    dispatch = await sent(storage, campaign)
    await _stop(storage, OTHER_WORKSPACE)
    await storage.write(
        lambda tx: trail.record_workspace_status(
            tx, THIS_WORKSPACE, WorkspaceStatus.ACTIVE, reason="rules", actor="cli:ann", now=NOW
        )
    )
    await report(storage, limit(dispatch))
    assert (await reread(storage, campaign)).status is C.ACTIVE


async def test_who_opted_out_opens_no_completed_campaign(storage: Storage) -> None:
    """The contact is skipped, and nothing is left to send."""
    campaign, dispatch = await given_sent(storage)
    entry = make_unsubscribe(phone=dispatch.to)
    await storage.write(lambda tx: tx.register.put(entry))
    await report(storage, limit(dispatch))
    after = await recipient(storage, campaign)
    assert (after.status, after.reason) == (R.SKIPPED, "opted_out")
    assert (await reread(storage, campaign)).status is C.COMPLETED


@pytest.mark.parametrize(
    "outcome", [DispatchOutcome(state=DispatchState.DEFERRED, reason="rate_limited"), refused("invalid_number")]
)
async def test_a_try_that_ended_at_a_limit_does_not_stand_for_the_next_one(
    storage: Storage, outcome: DispatchOutcome
) -> None:
    """An acceptance stands within one attempt, but this one has reached nobody."""
    campaign = await given_active(storage, 2)
    await report(storage, limit(await sent(storage, campaign)))
    later = NOW + timedelta(hours=10)
    await settle(storage, await given_dispatch(storage, campaign, now=later), outcome, now=later)
    after = await recipient(storage, campaign)
    wanted = (R.FAILED, "invalid_number") if outcome.state is DispatchState.REFUSED else (R.WAITING, "deferred")
    assert (after.status, after.reason) == wanted
    await reread(storage, campaign)


async def test_a_delivery_after_a_limit_ends_the_wait(storage: Storage) -> None:
    """`delivered` outranks `failed`: the contact is not written to again."""
    campaign, dispatch = await given_sent(storage, 2)
    await report(storage, limit(dispatch))
    await report(storage, receipt(dispatch, MS.DELIVERED))
    after = await recipient(storage, campaign)
    assert (after.status, after.successful) == (R.COMPLETED, True)
    await reread(storage, campaign)


async def test_who_replied_is_not_written_to_again_after_a_limit(storage: Storage) -> None:
    """A reply ends the contact's flow, whatever a receipt says of an earlier message."""
    campaign, dispatch = await given_sent(storage, 2)
    await change(storage, campaign, reason="replied")
    await report(storage, limit(dispatch))
    assert (await recipient(storage, campaign)).status is R.FAILED


async def test_what_failed_at_a_limit_is_no_contact_of_the_frequency_cap(storage: Storage) -> None:
    """Nobody was reached: the next try is not kept for a day."""
    _, dispatch = await given_sent(storage, 2)
    phone = dispatch.to

    async def counted() -> int:
        return len(await storage.read(lambda tx: tx.dispatches.sent_to(THIS_WORKSPACE, phone, since=NOW)))

    assert await counted() == 1
    await report(storage, limit(dispatch))
    assert await counted() == 0


async def test_a_list_that_meets_a_daily_limit_goes_on_after_the_reset(
    open_storage: OpenStorage, caplog: pytest.LogCaptureFixture
) -> None:
    """End to end: all contacts are reached in the end, and nothing is asked for while the limit lasts."""
    carrier = ScriptedCarrier()
    cap = 3
    async with dispatching(open_storage(clock_of_loop()), carrier=carrier, config=EngineConfig()) as rig:
        workspace = await given_workspace(rig.engine)
        campaign = await given_campaign(rig.engine, workspace, 6)
        begun = clock_of_loop().now()
        caplog.set_level(logging.WARNING)
        await rig.engine.campaigns.start(workspace.id, campaign.id)
        for number in range(1, cap + 2):
            await carrier.wait_for_requests(number)
        request = carrier.requests[cap]
        carrier.report(reported(request, MS.FAILED, reason="rate_limited", retry_after_seconds=120.0))
        await carrier.wait_for_requests(7, timeout_seconds=300.0)
        await reaches(rig.engine, campaign, "completed")
        assert clock_of_loop().now() - begun > timedelta(seconds=120)
        contacts = await people(rig.engine, campaign)
        assert [one.status for one in contacts] == [R.COMPLETED] * 6
        assert [one.to for one in carrier.requests].count(request.to) == 2
    assert "rate-limited; sending paused for 120 s" in caplog.text


def test_a_wait_is_logged_as_no_longer_than_it_lasts(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever the provider says, it is a day at most."""
    dispatch = make_dispatch()
    log_throttle = LogThrottle(ShiftedClock())
    notify_report(Instrumentation(), log_throttle, dispatch, limit(dispatch, retry_after_seconds=1e308), NOW)
    assert "sending paused for 86400 s" in caplog.text


async def test_a_call_that_failed_at_a_limit_is_placed_again_and_spends_no_attempt(
    open_storage: OpenStorage,
) -> None:
    """Vapi's daily limit of a number, for example: nobody was called."""
    voice = ScriptedVoice(look_up="none")
    async with dispatching(open_storage(clock_of_loop()), voice=voice, config=CALLS) as rig:
        workspace = await given_workspace(rig.engine)
        await given_call_settings(rig, workspace, attempts=1)
        campaign = await given_calls(rig.engine, workspace, 1)
        begun = clock_of_loop().now()
        await rig.engine.campaigns.start(workspace.id, campaign.id)
        await voice.wait_for_requests(1)
        limit: dict[str, Any] = {"reason": "rate_limited", "retry_after_seconds": 60.0}
        hear(voice, voice.requests[0], status=CallStatus.FAILED, error="No more today.", **limit)
        await voice.wait_for_requests(2, timeout_seconds=120.0)
        assert clock_of_loop().now() - begun >= timedelta(minutes=1)
        hear(voice, voice.requests[1], status=CallStatus.COMPLETED, answered_by="human", outcome="positive")
        await reaches(rig.engine, campaign, "completed")
        person = (await people(rig.engine, campaign))[0]
        assert (person.status, person.attempts, person.successful) == (R.COMPLETED, 1, True)
        assert [one.status for one in await calls_of(rig, campaign)] != []


async def test_a_step_that_failed_at_a_limit_is_sent_again_before_the_next_one(storage: Storage) -> None:
    """A flow goes back to the step; its later steps wait."""
    campaign, dispatch = await given_sent(storage, 2)
    await change(storage, campaign, status=R.WAITING, reason="flow", step=1, attempts=0, due_at=NOW, ended_at=None)
    await report(storage, limit(dispatch))
    after = await recipient(storage, campaign)
    assert (after.status, after.reason, after.step, after.tries) == (R.WAITING, "deferred", 0, 1)
