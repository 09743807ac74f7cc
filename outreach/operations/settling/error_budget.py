"""Pausing campaigns whose requests fail for reasons other than their contacts."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from outreach.models.campaign import Campaign, PauseReason
from outreach.models.dispatch import Dispatch
from outreach.models.states import CampaignAction, CampaignStatus
from outreach.operations.campaigns.transitions import move
from outreach.operations.common import provider_of
from outreach.policy.dispatch_history import READ_DISPATCHES, counts_against_budget, is_spent
from outreach.working_set import Transaction

_ACCOUNT_FAILURES: Final[dict[str, PauseReason]] = {
    "provider_auth": "provider_auth",
    "provider_funds": "provider_funds",
}
"""Failures of the whole account, which every campaign of the account shares."""

_WIDER: Final = 1000


def charge(tx: Transaction, dispatch: Dispatch, now: datetime) -> None:
    """Count a dispatch against its campaign's budget, and pause the campaigns that must stop.

    A failure of the account pauses its campaigns even if a single message or call had it.
    """
    if not counts_against_budget(dispatch):
        return
    account = _ACCOUNT_FAILURES.get(dispatch.reason or "")
    if account is not None:
        # A scheduled campaign would start into the same failure.
        running = {CampaignStatus.ACTIVE, CampaignStatus.SCHEDULED}
        for other in tx.campaigns.in_status(running, workspace_id=dispatch.workspace_id):
            if other.channel == dispatch.channel and provider_of(tx, other) == dispatch.provider:
                _pause(tx, other, account, now)
        return
    campaign = tx.campaigns.get(dispatch.workspace_id, dispatch.campaign_id) if dispatch.campaign_id else None
    if campaign is None:
        return
    # A resume starts a new budget: the operator has seen the earlier failures.
    history = tx.dispatches.recent(dispatch.workspace_id, campaign.id, since=campaign.updated_at, limit=READ_DISPATCHES)
    if history and history[0].created_at > now:
        # Requests from before a clock step may be older than a resume, and must not hide the others.
        wider = tx.dispatches.recent(dispatch.workspace_id, campaign.id, since=campaign.updated_at, limit=_WIDER)
        history = [one for one in wider if one.created_at <= now][:READ_DISPATCHES]
    if campaign.status is CampaignStatus.ACTIVE and is_spent(history):
        _pause(tx, campaign, "error_budget", now)


def _pause(tx: Transaction, campaign: Campaign, reason: PauseReason, now: datetime) -> None:
    move(tx, campaign, CampaignAction.PAUSE, now=now, actor="engine", pause_reason=reason)
