"""Approvals that end, within one transaction: something that a campaign uses has changed before it begins."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

import attrs

from outreach.errors import Problem
from outreach.ledger.campaigns.transitions import move
from outreach.ledger.common import workspace_of
from outreach.ledger.schedules import record_withdrawn
from outreach.models.campaign import Campaign
from outreach.models.states import APPROVAL_ENDED, UNSTARTED_STATUSES, CampaignAction, CampaignStatus
from outreach.rules.readiness import approval_reason
from outreach.storage.unit_of_work import Transaction

_WAITING: Final = frozenset({CampaignStatus.SCHEDULED, CampaignStatus.PAUSED})
"""The statuses in which a campaign begins without another approval, unless it has begun before."""

_WHY: Final = Problem(code="awaits_approval", message="What was approved has changed: a second person has to approve.")


def take_approvals(
    tx: Transaction, workspace_id: str, uses: Callable[[Campaign], bool], *, now: datetime, actor: str
) -> None:
    """End the approvals of the campaigns that use what is changed, and have not begun.

    The change counts as one of each campaign that has not started, and of each that a schedule repeats, started or not.
    An approved start that lies ahead is taken back.

    Args:
        tx: The transaction.
        workspace_id: The workspace.
        uses: Returns whether the change alters what a campaign says, or from where.
        now: The current time.
        actor: Who changes it.
    """
    open_ones = tx.campaigns.in_status(UNSTARTED_STATUSES | _WAITING, workspace_id=workspace_id)
    templates = {one.template_id for one in tx.schedules.list_existing(workspace_id)}
    repeated = (tx.campaigns.get(workspace_id, one) for one in templates)
    found = {one.id: one for one in (*open_ones, *repeated) if one is not None and uses(one)}
    for campaign in found.values():
        if campaign.status in UNSTARTED_STATUSES or campaign.id in templates:
            campaign = attrs.evolve(campaign, revision=campaign.revision + 1, changed_by=actor)
            tx.campaigns.update(campaign)
        take_start_back(tx, campaign, now=now, actor=actor)


def take_start_back(tx: Transaction, campaign: Campaign, *, now: datetime, actor: str) -> None:
    """Make a campaign ready that was approved, has changed and has not begun: its start needs another approval.

    Args:
        tx: The transaction.
        campaign: The campaign after the change.
        now: The current time.
        actor: Who has changed it, or what it uses.
    """
    if campaign.status not in _WAITING or campaign.started_at is not None:
        return
    workspace = workspace_of(tx, campaign.workspace_id)
    if approval_reason(workspace, contacts=campaign.counters.total, amount=None) is None:
        return
    run = tx.occurrences.of_run(campaign.workspace_id, campaign.id)
    schedule = None if run is None else tx.schedules.get(campaign.workspace_id, run.schedule_id)
    # A run needs no approval of its own while that of its schedule covers it.
    is_covered = schedule is not None and schedule.approval is not None
    if not is_covered and not tx.approvals.has_any(campaign.workspace_id, campaign.id):
        return
    if run is not None:
        record_withdrawn(tx, run, state="blocked", why=_WHY, now=now)
    changed = attrs.evolve(campaign, changed_by=actor)
    move(tx, changed, CampaignAction.UNSCHEDULE, now=now, actor=actor, detail=APPROVAL_ENDED)
