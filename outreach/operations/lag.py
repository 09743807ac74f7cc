"""How long what is due has waited for a process that sends it."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from outreach.models.campaign import Campaign
from outreach.models.states import WorkspaceStatus
from outreach.models.work import WorkUnit
from outreach.operations.common import campaign_unit, workspace_of
from outreach.operations.waves.provider_throttles import throttle_of_campaign
from outreach.policy.opening import opening_state
from outreach.working_set import Transaction

NONE: Final = 0.0


def lag_of_campaign(tx: Transaction, campaign: Campaign, now: datetime) -> float:
    """Return for how many seconds an active campaign could have begun its next contact; 0 while it has to wait."""
    workspace_id = campaign.workspace_id
    if workspace_of(tx, workspace_id).status is not WorkspaceStatus.ACTIVE or not opening_state(campaign, now).open:
        return NONE
    if throttle_of_campaign(tx, campaign, now) is not None:
        return NONE
    if campaign.channel == "call" and tx.recipients.in_flight(workspace_id, campaign.id) >= campaign.batch_concurrency:
        return NONE
    since = _due_since(tx, campaign, now)
    if since is None:
        return NONE
    run = tx.runs.get(workspace_id, campaign.id)
    work = tx.work.get(WorkUnit(*campaign_unit(campaign)))
    latest = tx.dispatches.recent(workspace_id, campaign.id, since=campaign.created_at, limit=1)
    moments = [
        since,
        run.next_slot_at if run is not None else None,
        work.due_at if work is not None else None,
        latest[0].created_at if latest else None,
        # Campaigns with one sending number take turns.
        tx.runs.sender_slot(workspace_id, campaign.from_number) if campaign.from_number is not None else None,
    ]
    return max((now - max(moment for moment in moments if moment is not None)).total_seconds(), NONE)


def lag_of_singles(tx: Transaction, workspace_id: str | None, now: datetime) -> float:
    """Return for how many seconds the oldest single message or call that is due has waited."""
    due_at = tx.work.oldest_single(workspace_id, now)
    return NONE if due_at is None else max((now - due_at).total_seconds(), NONE)


def _due_since(tx: Transaction, campaign: Campaign, now: datetime) -> datetime | None:
    """Return since when at the latest a contact could be begun; None if none can."""
    if campaign.counters.pending:
        return campaign.started_at or campaign.created_at
    due_at = tx.recipients.next_due(campaign.workspace_id, campaign.id)
    return due_at if due_at is not None and due_at <= now else None
