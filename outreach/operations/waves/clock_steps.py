"""What was noted by a clock that has been set back since: none of it is trusted farther than it can be true."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.models.account import PROVIDERS
from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch
from outreach.models.recipient import Recipient
from outreach.models.states import CampaignAction, CampaignStatus
from outreach.models.work import CampaignRunState
from outreach.operations.campaigns.recipients import steps_of
from outreach.operations.campaigns.trail import ENGINE
from outreach.operations.campaigns.transitions import due_time, move
from outreach.operations.common import call_settings_of, campaign_unit, settings_of
from outreach.operations.waves import provider_throttles
from outreach.policy.call_settlement import DOUBLE_DIAL, RETRYABLE_OUTCOMES
from outreach.policy.settlement import TRANSIENT_FAILURES
from outreach.working_set import Transaction

_SET_BACK: Final = "the clock was set back"
"""Written, with how far, where a run says under which rules recipients wait: under none that stands."""

_MAX_ROWS: Final = 200

_BEFORE: Final = timedelta(microseconds=1)
"""What was made before a step lies before all that was made since, in the order in which requests went wrong too."""

_AT_ONCE: Final = ("withdrawn", "operator_retry", "deferred", "flow", DOUBLE_DIAL)
"""What waits for a moment only; asked too early, a provider says so again."""

_LIVE: Final = frozenset({CampaignStatus.ACTIVE, CampaignStatus.PAUSED, CampaignStatus.SCHEDULED})


def measure_setback(tx: Transaction, now: datetime) -> timedelta | None:
    """Return by how much the clock was set back at the least since the last heartbeat; None when it was not.

    Nothing where only a campaign that is not over was changed ahead of now, by whoever does not dispatch.
    """
    lease = tx.leases.current()
    if lease is not None and (until := lease.steady_until or lease.renewed_at) > now:
        return until - now
    return timedelta() if any(campaign.updated_at > now for campaign in tx.campaigns.in_status(_LIVE)) else None


def repair_after_clock_step(tx: Transaction, back: timedelta, *, epoch: int, now: datetime) -> None:
    """Have everything looked at again that the time from before may hold up.

    Campaigns find out slice by slice who waits for too long (`shorten_waits`). The holds of providers last as long
    from now as they were meant to last at most. A campaign was started and changed before now: what it counts from
    then on, such as replies and failures, would be missed otherwise. So was what is unknown committed before now.

    Args:
        tx: The transaction.
        back: By how much the clock was set back; nothing where that is not known.
        epoch: Of whoever dispatches.
        now: The present moment.
    """
    for campaign in tx.campaigns.in_status(_LIVE):
        _distrust_campaign(tx, campaign, back, epoch, now)
    _correct_unknown(tx, now)
    correct_due_times(tx, now=now)
    for workspace in tx.workspaces.list():
        for provider in (*PROVIDERS, "simulator"):
            provider_throttles.restart_throttle(tx, workspace.id, provider, now)


def correct_due_times(tx: Transaction, *, now: datetime) -> None:
    """Have units looked at as soon as they would be if they were touched now: a look too early changes nothing."""
    for work in tx.work.due():
        if work.due_at is None or work.due_at <= now:
            continue
        unit = work.unit
        campaign = tx.campaigns.get(unit.workspace_id, unit.id) if unit.kind == "campaign" else None
        due = now if campaign is None else due_time(campaign, now)
        if due is not None and due < work.due_at:
            tx.work.schedule(unit, due)


def corrected_created_at(tx: Transaction, dispatch: Dispatch, now: datetime) -> datetime:
    """Return when a dispatch was made, as far as it is known: before the step, where that was noted by another time.

    By a commit that lies ahead of now it would count as on its way until that time comes again.
    """
    lease = tx.leases.current()
    # Where the last heartbeat lies ahead as well nobody has noticed yet: `repair_after_clock_step` comes to it.
    noticed = lease is not None and lease.steady_until is not None and lease.steady_until <= now
    if dispatch.created_at <= now or lease is None or lease.steady_since is None or not noticed:
        return dispatch.created_at
    return lease.steady_since - _BEFORE


def _correct_unknown(tx: Transaction, now: datetime) -> None:
    after: Dispatch | None = None
    while found := tx.dispatches.unknown(None, limit=_MAX_ROWS, after=after):
        after = found[-1]
        for dispatch in found:
            if dispatch.created_at > now:
                tx.dispatches.update(attrs.evolve(dispatch, created_at=now - _BEFORE))


def _distrust_campaign(tx: Transaction, campaign: Campaign, back: timedelta, epoch: int, now: datetime) -> None:
    started = campaign.started_at
    # A new revision: what was decided by the time from before is decided again.
    known = attrs.evolve(
        campaign,
        updated_at=min(campaign.updated_at, now),
        started_at=None if started is None else min(started, now),
        revision=campaign.revision + 1,
    )
    tx.campaigns.update(known)
    if (
        known.status is CampaignStatus.ACTIVE
        and known.scheduled_start_at is not None
        and known.scheduled_start_at > now
    ):
        # It was started by the time from before, and starts again by the present one.
        paused = move(tx, known, CampaignAction.PAUSE, now=now, actor=ENGINE, detail=_SET_BACK)
        known = move(tx, paused, CampaignAction.RESUME_SCHEDULE, now=now, actor=ENGINE, detail=_SET_BACK)
    run = tx.runs.get(campaign.workspace_id, campaign.id) or CampaignRunState(
        workspace_id=campaign.workspace_id, campaign_id=campaign.id, owner_epoch=epoch, next_slot_at=None
    )
    tx.runs.put(attrs.evolve(run, held_under=f"{_SET_BACK} by {back.total_seconds()} s"))
    tx.work.schedule(campaign_unit(campaign), due_time(known, now))


def recorded_setback(run: CampaignRunState) -> timedelta | None:
    """Return by how much the clock was set back since the recipients of a run were put off; None when it was not."""
    if run.held_under is None or not run.held_under.startswith(_SET_BACK):
        return None
    return timedelta(seconds=float(run.held_under.split()[-2]))


def shorten_waits(
    tx: Transaction, campaign: Campaign, back: timedelta, *, receipt: timedelta, now: datetime, limit: int
) -> Iterator[tuple[Recipient, Recipient]]:
    """Yield recipients that wait for longer than any wait that begins now, each with what it waits for from now on.

    That is as long as it had left before the step, and never longer than a wait that begins now: who waits until a
    moment that may have been noted by the right time keeps it.

    Args:
        tx: The transaction.
        campaign: Whose recipients.
        back: By how much the clock was set back; nothing where that is not known.
        receipt: How long a receipt is waited for.
        now: The present moment.
        limit: How many at the most.
    """
    left = limit
    for reason, longest in _waits(tx, campaign):
        for recipient in tx.recipients.postponed(campaign.workspace_id, campaign.id, reason, now + longest, limit=left):
            latest = now + _own_wait(tx, campaign, recipient, longest)
            yield recipient, attrs.evolve(recipient, due_at=_sooner(recipient, back, latest))
            left -= 1
    for recipient in tx.recipients.in_progress_after(campaign.workspace_id, campaign.id, now + receipt, limit=left):
        yield recipient, attrs.evolve(recipient, due_at=_sooner(recipient, back, now + receipt))


def _sooner(recipient: Recipient, back: timedelta, latest: datetime) -> datetime:
    return latest if recipient.due_at is None else min(recipient.due_at - back, latest)


def _waits(tx: Transaction, campaign: Campaign) -> Iterator[tuple[str, timedelta]]:
    """Yield for what recipients wait, and for how long at the most."""
    for reason in _AT_ONCE:
        yield reason, timedelta()
    if campaign.channel == "call":
        again = timedelta(minutes=call_settings_of(tx, campaign.workspace_id).retry_delay_minutes)
        for outcome in sorted(RETRYABLE_OUTCOMES | TRANSIENT_FAILURES):
            yield f"retry_{outcome}", again
        return
    yield "retry", timedelta(minutes=settings_of(tx, campaign.workspace_id).retry_delay_minutes)
    waits = [step.wait_minutes or 0 for step in steps_of(tx, campaign) or ()]
    yield "flow_wait", timedelta(minutes=max(waits, default=0))


def _own_wait(tx: Transaction, campaign: Campaign, recipient: Recipient, longest: timedelta) -> timedelta:
    """Return how long a recipient waits from now on; each step of a flow has a wait of its own."""
    steps = steps_of(tx, campaign) or () if recipient.reason == "flow_wait" else ()
    if not 0 < recipient.step <= len(steps):
        return longest
    return timedelta(minutes=steps[recipient.step - 1].wait_minutes or 0)
