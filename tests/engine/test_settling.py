from __future__ import annotations

from datetime import timedelta
from typing import Any, TypeAlias

import attrs
import pytest

from outreach.ledger.settling import ledger
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.plans import Ending
from outreach.models.states import CampaignStatus, DispatchState, MessageStatus, RecipientStatus, TrailRule
from outreach.models.work import WorkUnit
from outreach.protocols.storage import Storage
from outreach.testing.builders import NOW, new_id
from outreach.testing.storage_tables.base_contract import OTHER_WORKSPACE, THIS_WORKSPACE, TICK
from tests.engine.given import (
    ACCEPTED,
    BACKOFF,
    commit,
    given_active,
    given_dispatch,
    given_requested,
    given_settings,
    receipt,
    recipient,
    refused,
    report,
    reread,
    settle,
)

pytestmark = pytest.mark.virtual_time

D: TypeAlias = DispatchState
R: TypeAlias = RecipientStatus
C: TypeAlias = CampaignStatus
MS: TypeAlias = MessageStatus

AFTER: dict[DispatchState, tuple[RecipientStatus, str | None, int]] = {
    D.ACCEPTED: (R.COMPLETED, None, 1),
    D.REFUSED: (R.FAILED, "why", 1),
    D.NOT_SENT: (R.WAITING, "deferred", 0),
    D.DEFERRED: (R.WAITING, "deferred", 0),
    D.WITHDRAWN: (R.WAITING, "withdrawn", 0),
    D.UNKNOWN: (R.UNKNOWN, "why", 1),
}
"""docs/states.md#recipients: status, reason and attempts of a recipient after each outcome, without retries."""

TAKES = {
    D.DISPATCHING: {D.ACCEPTED, D.REFUSED, D.NOT_SENT, D.WITHDRAWN, D.DEFERRED, D.UNKNOWN},
    D.UNKNOWN: {D.ACCEPTED, D.REFUSED, D.NOT_SENT, D.WITHDRAWN, D.DEFERRED, D.UNCONFIRMED, D.GIVEN_UP},
    D.UNCONFIRMED: {D.ACCEPTED, D.REFUSED},
    D.GIVEN_UP: {D.ACCEPTED, D.REFUSED},
}
"""docs/states.md#dispatches: which outcome a dispatch takes in which state; all other pairs change nothing."""


def _outcome(state: DispatchState) -> DispatchOutcome:
    accepted = state is D.ACCEPTED
    return DispatchOutcome(state=state, provider_id="p1" if accepted else None, reason=None if accepted else "why")


@pytest.mark.parametrize("state", AFTER)
async def test_each_first_outcome_does_to_the_recipient_what_the_design_says(
    storage: Storage, state: DispatchState
) -> None:
    """Accepted and refused are outcomes, unknown stays unknown, deferral spends no attempt.

    docs/delivery-contract.md#rule-5.
    """
    campaign = await given_active(storage)
    dispatch = await settle(storage, await given_dispatch(storage, campaign), _outcome(state), now=NOW + TICK)
    after = await recipient(storage, campaign)
    assert (dispatch.state, dispatch.settled_at) == (state, NOW + TICK)
    assert (after.status, after.reason, after.attempts) == AFTER[state]
    assert (after.ended_at is None) == after.is_open
    stored = await reread(storage, campaign)
    assert stored.status is (C.ACTIVE if after.is_open else C.COMPLETED)
    assert stored.counters.successful == int(state is D.ACCEPTED)
    assert stored.counters.failed == int(state is D.REFUSED)


@pytest.mark.parametrize("first", D)
async def test_a_dispatch_takes_one_outcome_and_another_one_only_where_it_was_unknown(
    storage: Storage, first: DispatchState
) -> None:
    """Every outcome in every state: a late or second one changes nothing but where evidence ends a doubt."""
    for second in D:
        campaign, dispatch = await given_requested(storage, 2)
        by_unknown = first in {D.UNCONFIRMED, D.GIVEN_UP}
        path = [] if first is D.DISPATCHING else [D.UNKNOWN, first] if by_unknown else [first]
        for state in path:
            dispatch = await settle(storage, dispatch, _outcome(state))
        before = await recipient(storage, campaign)
        settled = await settle(storage, dispatch, attrs.evolve(_outcome(second), provider_id=None))
        if second in TAKES.get(first, set()):
            assert settled.state is second
        else:
            assert settled == dispatch
            assert await recipient(storage, campaign) == before
        await reread(storage, campaign)


@pytest.mark.parametrize("state", [D.NOT_SENT, D.DEFERRED, D.WITHDRAWN])
async def test_a_worker_that_was_taken_for_lost_may_say_that_nobody_was_asked(
    storage: Storage, state: DispatchState
) -> None:
    """The report of any worker is merged; the contact has its turn, and nothing is in doubt.

    docs/delivery-contract.md#rule-8.
    """
    campaign = await given_active(storage)
    dispatch = await settle(
        storage, await given_dispatch(storage, campaign), DispatchOutcome(state=D.UNKNOWN, reason="worker_lost")
    )
    await settle(storage, dispatch, _outcome(state), now=NOW + TICK)
    after = await recipient(storage, campaign)
    assert (after.status, after.reason, after.attempts) == AFTER[state]
    assert (await reread(storage, campaign)).status is C.ACTIVE


async def test_a_dispatch_that_the_ledger_lacks_changes_nothing(storage: Storage) -> None:
    """An outcome of nothing, or of another workspace's dispatch, is no error and touches nobody."""
    campaign, dispatch = await given_requested(storage)
    for workspace_id, dispatch_id in ((THIS_WORKSPACE, new_id()), (OTHER_WORKSPACE, dispatch.id)):
        assert (
            await storage.write(
                lambda tx, w=workspace_id, d=dispatch_id: ledger.settle(  # type: ignore[misc]
                    tx, w, d, ACCEPTED, backoff=BACKOFF, now=NOW
                )
            )
            is None
        )
    assert (await recipient(storage, campaign)).status is R.DISPATCHING


@pytest.mark.field(7)
@pytest.mark.parametrize(
    ("tries", "retry_after", "seconds"),
    [
        (1, None, 1),
        (2, None, 2),
        (5, None, 16),
        (12, None, 300),
        (1, 60.0, 60),
        (6, 2.0, 32),
        (1, -5.0, 1),
        (1, 1e12, 86_400),
    ],
)
async def test_a_deferral_backs_off_and_honours_retry_after(
    storage: Storage, tries: int, retry_after: float | None, seconds: int
) -> None:
    """Field, test 7 (Dograh marks as failed who waited a second for the rate): put off, and no attempt is spent.

    The next try backs off, doubling, and honours Retry-After.

    docs/delivery-contract.md#rule-7.
    """
    campaign = await given_active(storage)
    now = NOW
    for number in range(tries):
        outcome = DispatchOutcome(state=D.DEFERRED, retry_after_seconds=retry_after if number == tries - 1 else None)
        await settle(storage, await given_dispatch(storage, campaign, now=now), outcome, now=now)
        now = NOW + timedelta(hours=number + 1)
    after = await recipient(storage, campaign)
    moved = now - timedelta(hours=1)
    assert (after.attempts, after.tries) == (0, tries)
    assert after.due_at == moved + timedelta(seconds=seconds)
    tried = await storage.read(lambda tx: tx.dispatches.of_recipient(THIS_WORKSPACE, campaign.id, 0))
    assert [(one.attempt, one.try_number) for one in tried] == [(1, n + 1) for n in range(tries)]
    assert (await reread(storage, campaign)).counters.pending == 1


async def test_what_waits_makes_its_campaign_due(storage: Storage) -> None:
    """docs/rules.md#due-work: what makes work due writes it, in its own transaction."""
    campaign = await given_active(storage)
    await settle(
        storage, await given_dispatch(storage, campaign), DispatchOutcome(state=D.WITHDRAWN, reason="too_late")
    )
    work = await storage.read(lambda tx: tx.work.get(WorkUnit("campaign", THIS_WORKSPACE, campaign.id)))
    assert work is not None
    assert work.due_at == NOW


@pytest.mark.parametrize(
    ("reason", "retried"),
    [
        ("temporary", True),
        ("unreachable", True),
        ("rate_limited", True),
        ("invalid_number", False),
        ("opted_out", False),
        ("filtered", False),
        ("rejected", False),
    ],
)
@pytest.mark.parametrize("enabled", [True, False])
async def test_only_failures_that_may_pass_are_retried_and_only_where_retry_is_on(
    storage: Storage, reason: str, retried: bool, enabled: bool
) -> None:
    """docs/rules.md#retry: only failures that may pass; docs/interface.md#2.4: retry_enabled."""
    await given_settings(storage, retry_enabled=enabled, retry_delay_minutes=7)
    campaign = await given_active(storage)
    await settle(storage, await given_dispatch(storage, campaign), refused(reason))
    after = await recipient(storage, campaign)
    if retried and enabled:
        assert (after.status, after.reason, after.due_at) == (R.WAITING, "retry", NOW + timedelta(minutes=7))
    else:
        assert (after.status, after.reason) == (R.FAILED, reason)
    await reread(storage, campaign)


@pytest.mark.parametrize("attempts", [1, 2, 3])
async def test_the_attempts_of_the_settings_include_the_first(storage: Storage, attempts: int) -> None:
    """docs/interface.md#2.4: retry_max_attempts are total attempts per recipient, including the first."""
    await given_settings(storage, retry_enabled=True, retry_max_attempts=attempts)
    campaign = await given_active(storage)
    for number in range(1, attempts + 1):
        assert (await recipient(storage, campaign)).is_open
        now = NOW + number * timedelta(hours=1)
        dispatch = await given_dispatch(storage, campaign, now=now)
        assert (dispatch.attempt, dispatch.try_number) == (number, 1)
        await settle(storage, dispatch, refused("temporary"), now=now)
    after = await reread(storage, campaign)
    assert (await recipient(storage, campaign)).status is R.FAILED
    assert (after.status, after.counters.failed, after.counters.completed) == (C.COMPLETED, 1, 1)


@pytest.mark.parametrize("status", [C.CANCELLED, C.EXPIRED])
@pytest.mark.parametrize(
    ("outcome", "wanted"),
    [
        (ACCEPTED, (R.COMPLETED, None)),
        (refused("temporary"), (R.FAILED, "temporary")),
        (DispatchOutcome(state=D.UNKNOWN, reason="timeout"), (R.UNKNOWN, "timeout")),
        (DispatchOutcome(state=D.DEFERRED), ("closed", None)),
        (DispatchOutcome(state=D.NOT_SENT), ("closed", None)),
        (DispatchOutcome(state=D.WITHDRAWN), ("closed", None)),
    ],
)
async def test_what_is_in_flight_when_a_campaign_ends_keeps_its_true_outcome_and_is_not_retried(
    storage: Storage, status: CampaignStatus, outcome: DispatchOutcome, wanted: tuple[Any, Any]
) -> None:
    """docs/states.md#recipients: what is in flight keeps its true outcome and is not retried; the unsent ones close."""
    await given_settings(storage, retry_enabled=True)
    campaign, dispatch = await given_requested(storage)
    over = attrs.evolve(await reread(storage, campaign), status=status, completed_at=NOW)
    await storage.write(lambda tx: tx.campaigns.update(over))
    await settle(storage, dispatch, outcome)
    after = await recipient(storage, campaign)
    closed = R.CANCELED if status is C.CANCELLED else R.EXPIRED
    assert (after.status, after.reason) == (closed if wanted[0] == "closed" else wanted[0], wanted[1])
    assert (await reread(storage, campaign)).status is status


async def test_an_outcome_under_a_pause_is_merged_and_the_campaign_stays_paused(storage: Storage) -> None:
    """docs/delivery-contract.md#rule-8: outcomes are merged whatever happened; a paused campaign does not complete."""
    campaign, dispatch = await given_requested(storage)
    paused = attrs.evolve(await reread(storage, campaign), status=C.PAUSED)
    await storage.write(lambda tx: tx.campaigns.update(paused))
    await settle(storage, dispatch, ACCEPTED)
    after = await reread(storage, campaign)
    assert (after.status, after.counters.open, after.counters.completed) == (C.PAUSED, 0, 1)


async def test_an_unknown_dispatch_keeps_the_campaign_from_completing(storage: Storage) -> None:
    """docs/states.md#campaigns: completed means nothing pending, waiting, in flight or unknown."""
    campaign = await given_active(storage)
    dispatch = await settle(storage, await given_dispatch(storage, campaign), DispatchOutcome(state=D.UNKNOWN))
    assert (await reread(storage, campaign)).status is C.ACTIVE
    assert (await commit(storage, campaign)).dispatches == ()
    await settle(storage, dispatch, DispatchOutcome(state=D.UNCONFIRMED))
    after = await reread(storage, campaign)
    assert (after.status, (await recipient(storage, campaign)).status) == (C.COMPLETED, R.UNCONFIRMED)


@pytest.mark.parametrize("reason", ["provider_auth", "provider_funds"])
@pytest.mark.parametrize("count", [1, 2])
async def test_what_has_ended_in_doubt_is_not_opened_by_a_refusal_of_the_account(
    storage: Storage, reason: str, count: int
) -> None:
    """docs/delivery-contract.md#rule-6: never sent again, in a campaign that goes on or in one that is over."""
    campaign, dispatch = await given_requested(storage, count)
    for state in (D.UNKNOWN, D.UNCONFIRMED):
        dispatch = await settle(storage, dispatch, _outcome(state))
    await settle(storage, dispatch, refused(reason), now=NOW + TICK)
    after = await recipient(storage, campaign)
    assert (after.status, after.reason, after.attempts, after.due_at) == (R.FAILED, reason, 1, None)
    stored = await reread(storage, campaign)
    assert (stored.counters.open, stored.counters.failed) == (count - 1, 1)


async def test_who_was_put_aside_meanwhile_stays_so(storage: Storage) -> None:
    """A refusal of the account that comes late changes nothing of another end."""
    campaign, dispatch = await given_requested(storage, 2)
    for state in (D.UNKNOWN, D.GIVEN_UP):
        dispatch = await settle(storage, dispatch, _outcome(state))
    ending = Ending(
        recipient=await recipient(storage, campaign), status=R.SKIPPED, reason="opted_out", rule=TrailRule.REGISTER
    )
    await commit(storage, campaign, 1, endings=[ending])
    await settle(storage, dispatch, refused("provider_auth"))
    after = await recipient(storage, campaign)
    assert (after.status, after.reason) == (R.SKIPPED, "opted_out")
    await reread(storage, campaign)


@pytest.mark.field(11)
@pytest.mark.parametrize("named", [{}, {"dispatch_id": None}], ids=["by our identifier", "by the provider's"])
async def test_receipts_move_up_only(storage: Storage, named: dict[str, Any]) -> None:
    """Field, test 11 (twilio-csharp #633: a late `sent` overwrites `delivered`): the rank only goes up."""
    campaign = await given_active(storage)
    dispatch = await settle(storage, await given_dispatch(storage, campaign), ACCEPTED)
    heard = [await _report(storage, dispatch, status, **named) for status in (MS.SENT, MS.SENT, MS.DELIVERED, MS.SENT)]
    assert heard == [True, False, True, False]
    assert (await _stored(storage, dispatch)).report is MS.DELIVERED


async def test_a_failed_receipt_is_retried_like_a_refusal(storage: Storage) -> None:
    """docs/rules.md#retry: failures that may pass, also those reported by a receipt."""
    await given_settings(storage, retry_enabled=True, retry_max_attempts=2)
    campaign = await given_active(storage)
    dispatch = await settle(storage, await given_dispatch(storage, campaign), ACCEPTED)
    assert (await recipient(storage, campaign)).status is R.IN_PROGRESS
    await _report(storage, dispatch, MS.FAILED, reason="unreachable")
    after = await recipient(storage, campaign)
    assert (after.status, after.reason, after.successful) == (R.WAITING, "retry", False)
    later = NOW + timedelta(hours=1)
    second = await given_dispatch(storage, campaign, now=later)
    assert second.attempt == 2
    await settle(storage, second, ACCEPTED, now=later)
    await _report(storage, second, MS.FAILED, reason="unreachable")
    assert (await recipient(storage, campaign)).status is R.FAILED
    await reread(storage, campaign)


async def test_delivered_after_failed_ends_the_wait_for_a_retry(storage: Storage) -> None:
    """docs/delivery-contract.md#rule-6: evidence that arrives before the second dispatch cancels it."""
    await given_settings(storage, retry_enabled=True)
    campaign = await given_active(storage)
    dispatch = await settle(storage, await given_dispatch(storage, campaign), ACCEPTED)
    await _report(storage, dispatch, MS.FAILED, reason="unreachable")
    await _report(storage, dispatch, MS.DELIVERED)
    after = await recipient(storage, campaign)
    assert (after.status, after.due_at, after.successful) == (R.COMPLETED, None, True)
    assert (await reread(storage, campaign)).status is C.COMPLETED


@pytest.mark.parametrize(
    "ends",
    [
        [DispatchOutcome(state=D.DEFERRED, reason="rate_limited")],
        [DispatchOutcome(state=D.WITHDRAWN, reason="paused")],
        [DispatchOutcome(state=D.UNKNOWN, reason="timeout"), DispatchOutcome(state=D.NOT_SENT, reason="not_found")],
        [refused("temporary")],
        [refused("filtered")],
    ],
    ids=lambda ends: str(ends[-1].state),
)
async def test_who_turns_out_to_have_been_reached_is_not_sent_to_again_when_the_next_attempt_reaches_nobody(
    storage: Storage, ends: list[DispatchOutcome]
) -> None:
    """Delivered outranks failed, also where it is told while the next attempt is under way.

    docs/delivery-contract.md#rule-12.
    """
    await given_settings(storage, retry_enabled=True)
    campaign = await given_active(storage)
    first = await given_dispatch(storage, campaign)
    await settle(storage, first, ACCEPTED)
    await _report(storage, first, MS.FAILED, reason="temporary")
    later = (await recipient(storage, campaign)).due_at or NOW
    second = await given_dispatch(storage, campaign, now=later)
    await _report(storage, first, MS.DELIVERED)
    for outcome in ends:
        await settle(storage, second, outcome, now=later)
    one = await recipient(storage, campaign)
    assert (one.status, one.reason, one.successful, one.attempts) == (R.COMPLETED, None, True, 2)
    assert (await reread(storage, campaign)).status is C.COMPLETED


async def test_a_receipt_of_an_earlier_attempt_does_not_speak_for_a_later_one(storage: Storage) -> None:
    """A failure of the first message, told late, does not fail the second; it is kept with its own dispatch."""
    await given_settings(storage, retry_enabled=True)
    campaign = await given_active(storage)
    first = await settle(storage, await given_dispatch(storage, campaign), ACCEPTED)
    await _report(storage, first, MS.FAILED, reason="unreachable")
    later = NOW + timedelta(hours=1)
    await settle(storage, await given_dispatch(storage, campaign, now=later), ACCEPTED, now=later)
    before = await recipient(storage, campaign)
    await _report(storage, first, MS.DELIVERED)
    assert await recipient(storage, campaign) == before
    assert (await _stored(storage, first)).report is MS.DELIVERED


@pytest.mark.parametrize("state", [D.DISPATCHING, D.UNKNOWN])
@pytest.mark.parametrize("status", [MS.SENT, MS.DELIVERED, MS.FAILED])
async def test_a_callback_with_our_id_is_evidence_that_the_provider_has_it(
    storage: Storage, state: DispatchState, status: MessageStatus
) -> None:
    """Field, test 11: a callback before the answer; docs/delivery-contract.md#rule-6: evidence ends the unknown."""
    campaign, dispatch = await given_requested(storage)
    if state is D.UNKNOWN:
        dispatch = await settle(storage, dispatch, DispatchOutcome(state=D.UNKNOWN))
    assert await _report(storage, dispatch, status, provider_id="p9")
    stored = await _stored(storage, dispatch)
    assert (stored.state, stored.report, stored.provider_id) == (D.ACCEPTED, status, "p9")
    wanted = R.FAILED if status is MS.FAILED else R.COMPLETED
    assert (await recipient(storage, campaign)).status is wanted
    late = await settle(storage, stored, DispatchOutcome(state=D.UNKNOWN, reason="timeout"))
    assert late.state is D.ACCEPTED
    await reread(storage, campaign)


async def test_a_report_of_nothing_known_or_of_another_workspace_changes_nothing(storage: Storage) -> None:
    """A report is found within its workspace only, by our id or by the provider's id of that provider."""
    campaign = await given_active(storage)
    dispatch = await settle(storage, await given_dispatch(storage, campaign), ACCEPTED)
    before = await _stored(storage, dispatch)
    for changes in (
        {"workspace_id": OTHER_WORKSPACE},
        {"dispatch_id": new_id(), "provider_id": "p2"},
        {"dispatch_id": None, "provider_id": None},
        {"dispatch_id": None, "provider_id": "p1", "provider": "telnyx"},
    ):
        assert not await _report(storage, dispatch, MS.DELIVERED, **changes)
    assert await _stored(storage, dispatch) == before


async def test_a_second_answer_that_brings_the_provider_id_is_kept(storage: Storage) -> None:
    """A callback may come before the answer; the answer's identifier is learnt all the same."""
    _, dispatch = await given_requested(storage)
    await _report(storage, dispatch, MS.SENT, provider_id=None)
    settled = await settle(storage, dispatch, ACCEPTED)
    assert (settled.provider_id, settled.report) == ("p1", MS.SENT)


async def test_abandoned_intents_of_an_earlier_worker_become_unknown_in_slices(storage: Storage) -> None:
    """docs/delivery-contract.md#rule-5: after a crash a `dispatching` row without an outcome is unknown."""
    campaign = await given_active(storage, 5)
    dispatches = (await commit(storage, campaign, 0, 1, 2, 3)).dispatches
    await settle(storage, dispatches[3], ACCEPTED)
    counts = [await _abandon(storage)]
    await storage.write(lambda tx: tx.workers.delete(1))
    counts += [await _abandon(storage) for _ in range(3)]
    assert counts == [0, 2, 1, 0]
    assert [(await _stored(storage, one)).state for one in dispatches] == [D.UNKNOWN] * 3 + [D.ACCEPTED]
    after = await recipient(storage, campaign)
    assert (after.status, after.reason) == (R.UNKNOWN, "worker_lost")
    await reread(storage, campaign)


async def _abandon(storage: Storage) -> int:
    return await storage.write(lambda tx: ledger.mark_abandoned(tx, backoff=BACKOFF, now=NOW, limit=2))


async def _report(storage: Storage, dispatch: Dispatch, status: MessageStatus, **changes: Any) -> bool:
    return await report(storage, receipt(dispatch, status, **changes))


async def _stored(storage: Storage, dispatch: Dispatch) -> Dispatch:
    found = await storage.read(lambda tx: tx.dispatches.get(dispatch.workspace_id, dispatch.id))
    assert found is not None
    return found


@pytest.mark.parametrize("said", [DispatchOutcome(state=D.DEFERRED, reason="rate_limited"), refused("temporary")])
@pytest.mark.parametrize("status", [MS.SENT, MS.DELIVERED])
async def test_a_report_on_what_the_provider_had_said_no_to_cancels_the_next_try(
    storage: Storage, said: DispatchOutcome, status: MessageStatus
) -> None:
    """docs/delivery-contract.md#rule-2 and #rule-8: it has taken it after all, and the contact is not sent it again."""
    await given_settings(storage, retry_enabled=True, retry_max_attempts=2)
    campaign, dispatch = await given_requested(storage)
    await settle(storage, dispatch, said)
    assert (await recipient(storage, campaign)).status is R.WAITING
    assert await _report(storage, dispatch, status)
    after = await recipient(storage, campaign)
    assert (after.status, after.attempts) == (R.COMPLETED if status is MS.DELIVERED else R.IN_PROGRESS, 1)
    stored = await storage.read(lambda tx: tx.dispatches.get(THIS_WORKSPACE, dispatch.id))
    assert stored is not None
    assert (stored.state, stored.report) == (D.ACCEPTED, status)
    assert (await reread(storage, campaign)).counters.successful == 1


async def test_a_failure_of_what_was_refused_says_nothing_new(storage: Storage) -> None:
    """A carrier that has taken a message, and says at once and once more that it failed."""
    campaign, dispatch = await given_requested(storage)
    await settle(storage, dispatch, refused())
    before = await recipient(storage, campaign)
    assert not await _report(storage, dispatch, MS.FAILED, reason="invalid_number")
    assert await recipient(storage, campaign) == before
    stored = await storage.read(lambda tx: tx.dispatches.get(THIS_WORKSPACE, dispatch.id))
    assert stored is not None
    assert stored.state is D.REFUSED
