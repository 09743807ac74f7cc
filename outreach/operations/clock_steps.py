"""What was noted by a clock that has been set back since: none of it is trusted farther than it can be true."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.models.account import PROVIDERS
from outreach.models.campaign import Campaign
from outreach.models.recipient import Recipient
from outreach.models.states import CampaignMove, CampaignStatus
from outreach.models.work import Run
from outreach.operations import account_holds
from outreach.operations.campaign_moves import due_time, move
from outreach.operations.common import call_settings_of, campaign_unit, settings_of
from outreach.operations.flows import steps_of
from outreach.operations.trail import ENGINE
from outreach.policy.call_settlement import DOUBLE_DIAL, RETRIED_OUTCOMES
from outreach.policy.settlement import PASSING_FAILURES
from outreach.protocols.storage import Transaction

UNTRUSTED: Final = "the clock was set back"
"""Written where a run says under which rules recipients wait: under none that stands."""

_AT_ONCE: Final = ("withdrawn", "operator_retry", "deferred", "flow", DOUBLE_DIAL)
"""What waits for a moment only; asked too early, a provider says so again."""

_LIVE: Final = frozenset({CampaignStatus.ACTIVE, CampaignStatus.PAUSED, CampaignStatus.SCHEDULED})


def was_set_back(tx: Transaction, now: datetime) -> bool:
    """Return whether the last heartbeat, or a change of a campaign that is not over, lies ahead of now."""
    lease = tx.leases.current()
    if lease is not None and lease.renewed_at > now:
        return True
    return any(campaign.updated_at > now for campaign in tx.campaigns.in_status(_LIVE))


def distrust(tx: Transaction, *, epoch: int, now: datetime) -> None:
    """Have everything looked at again that the time from before may hold up.

    Campaigns find out slice by slice who waits for too long (`retime`). The holds of providers last as long from now as
    they were meant to last at most. A campaign was started and changed before now: what it counts from then on, such
    as replies and failures, would be missed otherwise.
    """
    for campaign in tx.campaigns.in_status(_LIVE):
        _distrust_campaign(tx, campaign, epoch, now)
    correct_due_times(tx, now=now)
    for workspace in tx.workspaces.list():
        for provider in (*PROVIDERS, "simulator"):
            account_holds.restart(tx, workspace.id, provider, now)


def correct_due_times(tx: Transaction, *, now: datetime) -> None:
    """Have units looked at as soon as they would be if they were touched now: a look too early changes nothing."""
    for work in tx.work.due():
        if work.due_at is None or work.due_at <= now:
            continue
        unit = work.unit
        campaign = tx.campaigns.get(unit.workspace_id, unit.id) if unit.kind == "campaign" else None
        due = now if campaign is None else due_time(campaign, now)
        if due is not None and due < work.due_at:
            tx.work.touch(unit, due)


def _distrust_campaign(tx: Transaction, campaign: Campaign, epoch: int, now: datetime) -> None:
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
        paused = move(tx, known, CampaignMove.PAUSE, now=now, actor=ENGINE, detail=UNTRUSTED)
        known = move(tx, paused, CampaignMove.RESUME_SCHEDULE, now=now, actor=ENGINE, detail=UNTRUSTED)
    run = tx.runs.get(campaign.workspace_id, campaign.id) or Run(
        workspace_id=campaign.workspace_id, campaign_id=campaign.id, owner_epoch=epoch, next_slot_at=None
    )
    tx.runs.put(attrs.evolve(run, held_under=UNTRUSTED))
    tx.work.touch(campaign_unit(campaign), due_time(known, now))


def retime(
    tx: Transaction, campaign: Campaign, *, receipt: timedelta, now: datetime, limit: int
) -> Iterator[tuple[Recipient, Recipient]]:
    """Yield recipients that wait for longer than any wait that begins now, each with what it waits for from now on.

    Args:
        tx: The transaction.
        campaign: Whose recipients.
        receipt: How long a receipt is waited for.
        now: The present moment.
        limit: How many at the most.
    """
    left = limit
    for reason, longest in _waits(tx, campaign):
        for recipient in tx.recipients.put_off(campaign.workspace_id, campaign.id, reason, now + longest, limit=left):
            yield recipient, attrs.evolve(recipient, due_at=now + _own_wait(tx, campaign, recipient, longest))
            left -= 1
    for recipient in tx.recipients.in_progress_after(campaign.workspace_id, campaign.id, now + receipt, limit=left):
        yield recipient, attrs.evolve(recipient, due_at=now + receipt)


def _waits(tx: Transaction, campaign: Campaign) -> Iterator[tuple[str, timedelta]]:
    """Yield for what recipients wait, and for how long at the most."""
    for reason in _AT_ONCE:
        yield reason, timedelta()
    if campaign.channel == "call":
        again = timedelta(minutes=call_settings_of(tx, campaign.workspace_id).retry_delay_minutes)
        for outcome in sorted(RETRIED_OUTCOMES | PASSING_FAILURES):
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
