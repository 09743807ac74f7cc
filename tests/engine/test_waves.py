from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import attrs
import pytest

from outreach.errors import LeaseLost
from outreach.ledger.campaigns import transitions
from outreach.ledger.campaigns.recipients import put_recipient
from outreach.ledger.leases import leases
from outreach.ledger.sending.intents import withdrawal_reason
from outreach.ledger.settling import ledger
from outreach.models.campaign import Campaign, Recipient
from outreach.models.plans import (
    Closing,
    Ending,
    Postponement,
    Wave,
    WaveResult,
)
from outreach.models.settings import SmsSettings
from outreach.models.states import CampaignStatus, DispatchState, RecipientStatus, TrailRule, WorkspaceStatus
from outreach.models.work import WorkUnit
from outreach.protocols.storage import Storage
from outreach.rules.settlement import DOUBLE_DIAL, waiting
from outreach.storage.unit_of_work import AlreadyExists, Transaction
from outreach.testing.builders import NOW, make_dispatch, make_run, make_unsubscribe, make_workspace
from outreach.testing.storage_tables.base_contract import OTHER_WORKSPACE, THIS_WORKSPACE, TICK
from tests.engine.given import (
    ACCEPTED,
    EPOCH,
    SECOND,
    commit,
    commit_wave,
    given_active,
    given_dispatch,
    given_requested,
    given_settings,
    make_wave,
    plan_wave,
    recipient,
    reread,
    settle,
)

pytestmark = pytest.mark.virtual_time


async def test_a_committed_intent_stands_in_the_ledger_before_the_request(storage: Storage) -> None:
    """docs/delivery-contract.md#rule-1: the dispatch is `dispatching`, the recipient with it, the counters as well."""
    campaign = await given_active(storage)
    committed = await commit(storage, campaign)
    (dispatch,) = committed.dispatches
    assert not committed.stale
    assert (dispatch.state, dispatch.attempt, dispatch.try_number, dispatch.epoch) == (
        DispatchState.DISPATCHING,
        1,
        1,
        EPOCH,
    )
    assert await storage.read(lambda tx: tx.dispatches.get(THIS_WORKSPACE, dispatch.id)) == dispatch
    opened = await recipient(storage, campaign)
    assert (opened.status, opened.attempts, opened.tries) == (RecipientStatus.DISPATCHING, 1, 1)
    counters = (await reread(storage, campaign)).counters
    assert (counters.pending, counters.open, counters.completed) == (0, 1, 0)


async def test_slots_lie_one_spacing_apart_and_go_on_where_the_last_wave_ended(storage: Storage) -> None:
    """docs/rules.md#pace: each intent takes a slot; a wave begins no earlier than the last one's next slot."""
    campaign = await given_active(storage, 5)
    first = await commit(storage, campaign, 0, 1, 2)
    second = await commit(storage, campaign, 3, 4)
    slots = [dispatch.slot_at for dispatch in (*first.dispatches, *second.dispatches)]
    assert slots == [NOW + n * SECOND for n in range(5)]
    run = await storage.read(lambda tx: tx.runs.get(THIS_WORKSPACE, campaign.id))
    assert run is not None
    assert run.next_slot_at == NOW + 5 * SECOND


async def test_unused_slots_are_not_made_up_for(storage: Storage) -> None:
    """docs/rules.md#pace: after a pause the next slot is now, not all those that were missed."""
    campaign = await given_active(storage, 3)
    await commit(storage, campaign, 0)
    later = NOW + timedelta(minutes=10)
    committed = await commit(storage, campaign, 1, 2, now=later)
    assert [dispatch.slot_at for dispatch in committed.dispatches] == [later, later + SECOND]


async def test_no_slot_lies_before_not_before_or_after_the_look_ahead(storage: Storage) -> None:
    """Slots farther ahead are left for the next wave; one that is just so far ahead is still within."""
    campaign = await given_active(storage, 5)
    committed = await commit(storage, campaign, 0, 1, 2, 3, 4, not_before=NOW + SECOND, look_ahead=3 * SECOND)
    assert [dispatch.slot_at for dispatch in committed.dispatches] == [NOW + n * SECOND for n in (1, 2, 3)]
    assert [(await recipient(storage, campaign, position)).status for position in (3, 4)] == [
        RecipientStatus.PENDING
    ] * 2


async def test_a_commit_that_waited_for_its_turn_still_commits(storage: Storage) -> None:
    """However long the writer was busy: slots count from the commit, or no wave of a busy machine would do anything."""
    campaign = await given_active(storage, 2)

    def operation(tx: Transaction) -> WaveResult:
        people = [tx.recipients.get(THIS_WORKSPACE, campaign.id, position) for position in (0, 1)]
        wave = make_wave(tx, campaign, [one for one in people if one is not None], look_ahead=SECOND / 10)
        return commit_wave(tx, wave, clock_now=lambda: NOW + 3 * SECOND)

    committed = await storage.write(operation)
    assert [dispatch.slot_at for dispatch in committed.dispatches] == [NOW + 3 * SECOND]


@pytest.mark.parametrize(("waited", "placed"), [(timedelta(seconds=10), True), (timedelta(seconds=10.001), False)])
async def test_a_second_call_whose_commit_came_too_late_is_dropped(
    storage: Storage, waited: timedelta, placed: bool
) -> None:
    """docs/rules.md#double-dial: it starts within ten seconds of the first one's end, or its attempt is over."""
    campaign = await given_active(storage)
    first = await recipient(storage, campaign)
    rang_out = attrs.evolve(waiting(first, DOUBLE_DIAL, NOW), attempts=1, leg=2)
    wave = await storage.write(lambda tx: _put_and_plan(tx, campaign, rang_out))
    committed = await storage.write(lambda tx: commit_wave(tx, wave, clock_now=lambda: NOW + waited))
    after = await recipient(storage, campaign)
    if placed:
        assert [(one.leg, one.valid_until) for one in committed.dispatches] == [(2, NOW + timedelta(seconds=10))]
    else:
        assert committed.dispatches == ()
        assert committed.changed
        assert (after.status, after.reason, after.leg) == (RecipientStatus.WAITING, "retry_no_answer", 1)


@pytest.mark.parametrize("by", ["hold", "frequency_cap", "contact_hours"])
async def test_a_second_call_is_dropped_where_another_one_would_be_put_off(storage: Storage, by: str) -> None:
    """docs/rules.md#double-dial: within ten seconds or never: nothing at the second leg waits for the morning."""
    campaign = await given_active(storage)
    first = await recipient(storage, campaign)
    rang_out = attrs.evolve(waiting(first, DOUBLE_DIAL, NOW), attempts=1, leg=2)
    if by == "frequency_cap":
        await storage.write(lambda tx: tx.workspaces.update(make_workspace(frequency_cap=1)))
        earlier = make_dispatch(to=first.phone, campaign_id=campaign.id, position=0, state=DispatchState.ACCEPTED)
        await storage.write(lambda tx: tx.dispatches.insert(earlier))
    wave = await storage.write(lambda tx: _put_and_plan(tx, campaign, rang_out))
    if by == "hold":
        held = Postponement(
            recipient=rang_out, due_at=NOW + 9 * SECOND, reason="frequency_cap", rule=TrailRule.FREQUENCY_CAP
        )
        wave = attrs.evolve(wave, intents=(), postponements=(held,))
    elif by == "contact_hours":
        closing = Closing(NOW, "contact_hours", TrailRule.CONTACT_HOURS)
        wave = attrs.evolve(wave, intents=[attrs.evolve(one, closing=closing) for one in wave.intents])
    committed = await storage.write(lambda tx: commit_wave(tx, wave, clock_now=lambda: NOW))
    after = await recipient(storage, campaign)
    assert (committed.dispatches, committed.changed) == ((), True)
    assert (after.status, after.reason, after.leg) == (RecipientStatus.WAITING, "retry_no_answer", 1)


def _put_and_plan(tx: Transaction, campaign: Campaign, rang_out: Recipient) -> Wave:
    put_recipient(tx, campaign.workspace_id, rang_out, rang_out, rule=TrailRule.DOUBLE_DIAL, now=NOW)
    return make_wave(tx, campaign, [rang_out])


@pytest.mark.parametrize(("latest", "last", "valid"), [(3, 2, 3), (5, 4, 5), (6, 5, 5), (0, -1, None)])
async def test_no_slot_lies_at_or_after_closing_time_and_no_intent_is_valid_after_it(
    storage: Storage, latest: int, last: int, valid: int | None
) -> None:
    """docs/delivery-contract.md#rule-4: valid_until is the earliest of the wave's latest and its commit plus 5 s.

    Windows are half-open: at its closing time a campaign is closed, and at its expiry it has expired.
    """
    campaign = await given_active(storage, 9)
    committed = await commit(storage, campaign, *range(9), latest=NOW + latest * SECOND)
    assert [dispatch.slot_at - NOW for dispatch in committed.dispatches] == [n * SECOND for n in range(last + 1)]
    wanted = {valid * SECOND} if valid is not None else set()
    assert {dispatch.valid_until - NOW for dispatch in committed.dispatches} == wanted


async def test_after_its_latest_moment_a_wave_is_stale(storage: Storage) -> None:
    """A commit that waited for its turn until after the latest moment commits nothing."""
    campaign = await given_active(storage)
    assert (await commit(storage, campaign, latest=NOW - TICK)).stale
    assert (await recipient(storage, campaign)).status is RecipientStatus.PENDING


def _touch_campaign(tx: Transaction, campaign: Campaign) -> None:
    tx.campaigns.update(attrs.evolve(campaign, revision=campaign.revision + 1))


def _pause(tx: Transaction, campaign: Campaign) -> None:
    tx.campaigns.update(attrs.evolve(campaign, status=CampaignStatus.PAUSED))


def _expire(tx: Transaction, campaign: Campaign) -> None:
    tx.campaigns.update(attrs.evolve(campaign, scheduled_expires_at=NOW))


def _touch_workspace(tx: Transaction, campaign: Campaign) -> None:
    tx.workspaces.update(make_workspace(revision=1))


def _suspend(tx: Transaction, campaign: Campaign) -> None:
    tx.workspaces.update(make_workspace(status=WorkspaceStatus.SUSPENDED))


def _touch_settings(tx: Transaction, campaign: Campaign) -> None:
    tx.settings.put(THIS_WORKSPACE, attrs.evolve(SmsSettings(), revision=1))


def _end_lease(tx: Transaction, campaign: Campaign) -> None:
    leases.end_worker(tx, EPOCH)


def _nothing(tx: Transaction, campaign: Campaign) -> None:
    pass


@pytest.mark.parametrize("change", [_touch_campaign, _pause, _expire, _touch_workspace, _suspend, _touch_settings])
async def test_a_decision_on_what_has_changed_since_commits_nothing(
    storage: Storage, change: Callable[[Transaction, Campaign], None]
) -> None:
    """The commit compares campaign, workspace and settings; what conflicts is stale.

    docs/delivery-contract.md#rule-3.
    """
    campaign = await given_active(storage)
    first = await recipient(storage, campaign)
    wave = await storage.read(lambda tx: make_wave(tx, campaign, [first]))
    await storage.write(lambda tx: change(tx, campaign))
    committed = await storage.write(lambda tx: commit_wave(tx, wave, clock_now=lambda: NOW))
    assert committed.stale
    assert committed.dispatches == ()
    assert await recipient(storage, campaign) == first
    assert not await storage.read(lambda tx: tx.dispatches.of_recipient(THIS_WORKSPACE, campaign.id, 0))
    assert await storage.read(lambda tx: tx.runs.get(THIS_WORKSPACE, campaign.id)) is None


@pytest.mark.parametrize("ended", [True, False])
async def test_without_the_lease_nothing_is_committed(storage: Storage, ended: bool) -> None:
    """docs/delivery-contract.md#rule-11: a lost lease means no new intents."""
    campaign = await given_active(storage)
    if ended:
        await storage.write(lambda tx: tx.workers.delete(EPOCH))
    with pytest.raises(LeaseLost):
        await commit(storage, campaign, epoch=EPOCH + (0 if ended else 1))
    assert (await recipient(storage, campaign)).status is RecipientStatus.PENDING


@pytest.mark.parametrize(
    ("scope", "workspace_id", "stopped"),
    [
        ("all", THIS_WORKSPACE, True),
        ("sms", THIS_WORKSPACE, True),
        ("call", THIS_WORKSPACE, False),
        ("all", OTHER_WORKSPACE, False),
    ],
)
async def test_who_opted_out_since_the_decision_is_skipped_and_takes_no_slot(
    storage: Storage, scope: str, workspace_id: str, stopped: bool
) -> None:
    """docs/delivery-contract.md#rule-3: the commit anti-joins the register: `skipped: opted_out`."""
    campaign = await given_active(storage, 2)
    first = await recipient(storage, campaign)
    entry = make_unsubscribe(phone=first.phone, scope=scope, workspace_id=workspace_id)
    await storage.write(lambda tx: tx.register.put(entry))
    committed = await commit(storage, campaign, 0, 1)
    after = await recipient(storage, campaign)
    if stopped:
        assert (after.status, after.reason, after.ended_at) == (RecipientStatus.SKIPPED, "opted_out", NOW)
        assert [dispatch.slot_at for dispatch in committed.dispatches] == [NOW]
    else:
        assert len(committed.dispatches) == 2
    await reread(storage, campaign)


async def test_a_recipient_has_one_open_dispatch(storage: Storage) -> None:
    """docs/delivery-contract.md#rule-2: a second intent of a decision on the old state opens nothing."""
    campaign = await given_active(storage)
    old = await recipient(storage, campaign)
    await commit(storage, campaign)
    again = await storage.read(lambda tx: make_wave(tx, campaign, [old]))
    committed = await storage.write(lambda tx: commit_wave(tx, again, clock_now=lambda: NOW))
    assert (committed.stale, committed.dispatches) == (False, ())
    assert len(await storage.read(lambda tx: tx.dispatches.of_recipient(THIS_WORKSPACE, campaign.id, 0))) == 1


async def test_the_ledger_itself_forbids_a_second_open_dispatch(storage: Storage) -> None:
    """Where a recipient's state is behind its ledger, the ledger wins and the wave goes on without it.

    Its slot is not made up for.
    """
    campaign = await given_active(storage, 2)
    first = await recipient(storage, campaign)
    left = make_dispatch(campaign_id=campaign.id, position=0, to=first.phone, state=DispatchState.UNKNOWN)
    await storage.write(lambda tx: tx.dispatches.insert(left))
    with pytest.raises(AlreadyExists):
        await storage.write(lambda tx: tx.dispatches.insert(make_dispatch(campaign_id=campaign.id, position=0)))
    committed = await commit(storage, campaign, 0, 1)
    assert [(dispatch.position, dispatch.slot_at) for dispatch in committed.dispatches] == [(1, NOW + SECOND)]
    assert await recipient(storage, campaign) == first


async def test_endings_are_committed_without_a_contact(storage: Storage) -> None:
    """What is not to be sent ends with its reason, is counted, and the last one completes the campaign."""
    campaign = await given_active(storage, 2)
    rows = [await recipient(storage, campaign, position) for position in (0, 1)]
    endings = [
        Ending(recipient=rows[0], status=RecipientStatus.FAILED, reason="over_segment_cap", rule=TrailRule.SEGMENT_CAP),
        Ending(
            recipient=rows[1], status=RecipientStatus.SKIPPED, reason="invalid_number", rule=TrailRule.INVALID_NUMBER
        ),
    ]
    wave = await storage.read(lambda tx: make_wave(tx, campaign, [], endings=endings))
    await storage.write(lambda tx: commit_wave(tx, wave, clock_now=lambda: NOW))
    after = await reread(storage, campaign)
    assert (after.counters.failed, after.counters.completed, after.counters.open) == (1, 0, 0)
    assert (after.status, after.completed_at) == (CampaignStatus.COMPLETED, NOW)


async def test_an_ending_never_touches_a_recipient_that_has_moved_on(storage: Storage) -> None:
    """A decision to end somebody who is being contacted meanwhile changes nothing."""
    campaign = await given_active(storage)
    old = await recipient(storage, campaign)
    await commit(storage, campaign)
    ending = Ending(
        recipient=old, status=RecipientStatus.SKIPPED, reason="invalid_number", rule=TrailRule.INVALID_NUMBER
    )
    wave = await storage.read(lambda tx: make_wave(tx, campaign, [], endings=[ending]))
    await storage.write(lambda tx: commit_wave(tx, wave, clock_now=lambda: NOW))
    assert (await recipient(storage, campaign)).status is RecipientStatus.DISPATCHING


async def test_a_plan_of_what_is_not_active_has_nothing_due(storage: Storage) -> None:
    """Only an active campaign is planned; one that is gone has no plan."""
    campaign = await given_active(storage, 2, status=CampaignStatus.PAUSED)
    plan = await storage.read(lambda tx: plan_wave(tx, THIS_WORKSPACE, campaign.id, now=NOW, limit=10))
    assert plan is not None
    assert (plan.due, plan.next_due) == ((), None)
    assert await storage.read(lambda tx: plan_wave(tx, OTHER_WORKSPACE, campaign.id, now=NOW, limit=10)) is None


@pytest.mark.parametrize(
    ("change", "obstacle"),
    [
        (_pause, "campaign_stopped"),
        (_suspend, "workspace_unavailable"),
        (_end_lease, "lease_over"),
        (_nothing, None),
    ],
)
async def test_the_last_check_finds_every_stop_that_has_committed(
    storage: Storage, change: Callable[[Transaction, Campaign], None], obstacle: str | None
) -> None:
    """docs/delivery-contract.md#rule-4: a stop since the commit is found immediately before the request."""
    campaign, dispatch = await given_requested(storage)
    await storage.write(lambda tx: change(tx, campaign))
    assert await storage.read(lambda tx: withdrawal_reason(tx, dispatch)) == obstacle


async def test_the_last_check_finds_an_opt_out_and_a_settlement_elsewhere(storage: Storage) -> None:
    """Field, test 10: a STOP between claim and request counts, and so does an outcome that another has settled."""
    campaign = await given_active(storage, 2)
    first, second = (await commit(storage, campaign, 0, 1)).dispatches
    await storage.write(lambda tx: tx.register.put(make_unsubscribe(phone=first.to)))
    assert await storage.read(lambda tx: withdrawal_reason(tx, first)) == "opted_out"
    await settle(storage, second, ACCEPTED)
    assert await storage.read(lambda tx: withdrawal_reason(tx, second)) == "settled_elsewhere"


@pytest.mark.parametrize(
    ("status", "closed"),
    [
        (CampaignStatus.CANCELLED, RecipientStatus.CANCELED),
        (CampaignStatus.EXPIRED, RecipientStatus.EXPIRED),
    ],
)
async def test_what_is_over_closes_its_open_recipients_in_slices(
    storage: Storage, status: CampaignStatus, closed: RecipientStatus
) -> None:
    """docs/states.md#recipients: pending and waiting ones close as canceled or expired; what is in flight stays."""
    campaign = await given_active(storage, 6)
    await given_dispatch(storage, campaign, 2)
    over = attrs.evolve(await reread(storage, campaign), status=status, completed_at=NOW)
    await storage.write(lambda tx: tx.campaigns.update(over))
    slices = 0
    while await storage.write(
        lambda tx: ledger.close_open_recipients(tx, THIS_WORKSPACE, campaign.id, now=NOW, limit=2)
    ):
        slices += 1
        await reread(storage, campaign)
    statuses = [(await recipient(storage, campaign, position)).status for position in range(6)]
    assert statuses == [closed, closed, RecipientStatus.DISPATCHING, closed, closed, closed]
    assert slices == 2
    assert (await reread(storage, campaign)).counters.completed == 0


async def test_what_is_closed_is_not_due_any_more(storage: Storage) -> None:
    """The work feed is cleared with the last slice, once: a change that nobody made would be looked at for ever."""
    campaign = await given_active(storage, 5)
    await storage.write(lambda tx: transitions.cancel(tx, THIS_WORKSPACE, campaign.id, now=NOW, actor="test"))
    unit = WorkUnit("campaign", THIS_WORKSPACE, campaign.id)

    async def close() -> tuple[bool, datetime | None, int]:
        more = await storage.write(
            lambda tx: ledger.close_open_recipients(tx, THIS_WORKSPACE, campaign.id, now=NOW, limit=4)
        )
        work = await storage.read(lambda tx: tx.work.get(unit))
        assert work is not None
        return more, work.due_at, work.change

    more, due_at, _ = await close()
    assert (more, due_at) == (True, NOW)
    more, due_at, change = await close()
    assert (more, due_at) == (False, None)
    assert await close() == (False, None, change)


@pytest.mark.parametrize("status", [CampaignStatus.ACTIVE, CampaignStatus.PAUSED, CampaignStatus.COMPLETED])
async def test_what_is_not_over_closes_nobody(storage: Storage, status: CampaignStatus) -> None:
    """Only cancelled and expired campaigns are closed."""
    campaign = await given_active(storage, 2, status=status)
    assert not await storage.write(
        lambda tx: ledger.close_open_recipients(tx, THIS_WORKSPACE, campaign.id, now=NOW, limit=1)
    )
    assert (await recipient(storage, campaign)).status is RecipientStatus.PENDING


async def test_a_receipt_that_does_not_come_in_time_counts_as_done(storage: Storage) -> None:
    """An accepted SMS whose receipt may still come is in progress for 4 h, then completed.

    docs/delivery-contract.md#rule-13.
    """
    await given_settings(storage, retry_enabled=True)
    campaign = await given_active(storage)
    await settle(storage, await given_dispatch(storage, campaign), ACCEPTED)
    waiting = await recipient(storage, campaign)
    assert (waiting.status, waiting.due_at) == (RecipientStatus.IN_PROGRESS, NOW + timedelta(hours=4))
    early, late = NOW + timedelta(hours=4) - TICK, NOW + timedelta(hours=4)
    for moment, status in ((early, RecipientStatus.IN_PROGRESS), (late, RecipientStatus.COMPLETED)):
        await storage.write(
            lambda tx, moment=moment: ledger.expire_receipt_waits(tx, THIS_WORKSPACE, campaign.id, now=moment, limit=9)  # type: ignore[misc]
        )
        assert (await recipient(storage, campaign)).status is status
    after = await reread(storage, campaign)
    assert (after.status, after.counters.successful) == (CampaignStatus.COMPLETED, 1)


@pytest.mark.parametrize("status", [CampaignStatus.CANCELLED, CampaignStatus.EXPIRED])
async def test_what_is_over_waits_for_no_receipts(storage: Storage, status: CampaignStatus) -> None:
    """An accepted message of a campaign that is over is not retried: its true outcome is accepted, so it ends."""
    await given_settings(storage, retry_enabled=True)
    campaign = await given_active(storage, 3)
    for position in (0, 1, 2):
        await settle(storage, await given_dispatch(storage, campaign, position), ACCEPTED)
    over = attrs.evolve(await reread(storage, campaign), status=status, completed_at=NOW)
    await storage.write(lambda tx: tx.campaigns.update(over))
    while await storage.write(
        lambda tx: ledger.close_open_recipients(tx, THIS_WORKSPACE, campaign.id, now=NOW, limit=2)
    ):
        pass
    after = await reread(storage, campaign)
    assert (after.counters.open, after.counters.completed, after.counters.successful) == (0, 3, 3)
    assert (await recipient(storage, campaign)).status is RecipientStatus.COMPLETED


@pytest.mark.field(18)
async def test_campaigns_keep_paces_of_their_own(storage: Storage) -> None:
    """Field, test 18 (listmonk: its sliding window sleeps for all): slots are the campaign's own."""
    campaign, other = await given_active(storage), await given_active(storage)
    await storage.write(lambda tx: tx.runs.put(make_run(campaign_id=other.id, next_slot_at=NOW + timedelta(hours=1))))
    (dispatch,) = (await commit(storage, campaign)).dispatches
    assert dispatch.slot_at == NOW
