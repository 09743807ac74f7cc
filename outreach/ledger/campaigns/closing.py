"""What the engine stops: campaigns whose requests fail, and the open recipients of those that are over."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.ledger import provider_throttles
from outreach.ledger.campaigns.recipients import put_recipient
from outreach.ledger.campaigns.transitions import complete_if_done, move
from outreach.ledger.common import campaign_unit, provider_of
from outreach.models.campaign import Campaign, Counters, PauseReason
from outreach.models.dispatch import FAILURE_CLASSES, Dispatch
from outreach.models.recipient import Recipient
from outreach.models.states import CampaignAction, CampaignStatus
from outreach.models.trail import TrailRule
from outreach.rules.dispatch_history import JUDGED_DISPATCHES, counts_against_budget, is_spent
from outreach.rules.settlement import close_recipient, closing_status, expire_receipt_wait
from outreach.storage.unit_of_work import Transaction

_FAR_FUTURE: Final = timedelta(days=3650)
"""Later than anything is due."""


def close_open_recipients(tx: Transaction, workspace_id: str, campaign_id: str, *, now: datetime, limit: int) -> bool:
    """End a slice of a cancelled or expired campaign's open recipients; return whether more are left.

    An accepted message that waits for its receipt ends as completed; a later receipt still counts.
    """
    campaign = tx.campaigns.get(workspace_id, campaign_id)
    closing = closing_status(campaign.status) if campaign else None
    if campaign is None or closing is None:
        return False
    rows = tx.recipients.closable(workspace_id, campaign_id, limit=limit)
    change = Counters()
    for recipient in rows:
        after = close_recipient(recipient, closing, now)
        change += put_recipient(tx, workspace_id, recipient, after, rule=TrailRule.STOP, now=now)
    accepted: Sequence[Recipient] = ()
    if campaign.channel == "sms" and len(rows) < limit:
        accepted = tx.recipients.overdue_in_progress(
            workspace_id, campaign_id, now + _FAR_FUTURE, limit=limit - len(rows)
        )
    for recipient in accepted:
        after = expire_receipt_wait(recipient, now)
        change += put_recipient(tx, workspace_id, recipient, after, rule=TrailRule.RECEIPT_WAIT, now=now)
    if rows or accepted:
        tx.campaigns.add_counters(workspace_id, campaign_id, change)
    more = len(rows) + len(accepted) == limit
    work = tx.work.get(campaign_unit(campaign))
    if not more and work is not None and work.due_at is not None:
        # In flight recipients end by their outcomes, so that later starts need not check this campaign.
        tx.work.schedule(campaign_unit(campaign), None)
    return more


def next_receipt_deadline(tx: Transaction, workspace_id: str, campaign_id: str, *, now: datetime) -> datetime | None:
    """Return when the next wait for a receipt ends; None if there is none."""
    first = tx.recipients.overdue_in_progress(workspace_id, campaign_id, now + _FAR_FUTURE, limit=1)
    return first[0].due_at if first else None


def expire_receipt_waits(tx: Transaction, workspace_id: str, campaign_id: str, *, now: datetime, limit: int) -> bool:
    """Complete a slice of the recipients whose wait for a receipt has ended; return whether more are left."""
    campaign = tx.campaigns.get(workspace_id, campaign_id)
    if campaign is None:
        return False
    rows = tx.recipients.overdue_in_progress(workspace_id, campaign_id, now, limit=limit)
    change = Counters()
    for recipient in rows:
        after = expire_receipt_wait(recipient, now)
        change += put_recipient(tx, workspace_id, recipient, after, rule=TrailRule.RECEIPT_WAIT, now=now)
    if rows:
        counters = tx.campaigns.add_counters(workspace_id, campaign_id, change)
        complete_if_done(tx, attrs.evolve(campaign, counters=counters), now=now)
    return len(rows) == limit


def charge(tx: Transaction, dispatch: Dispatch, now: datetime) -> None:
    """Count a dispatch against its campaign's budget, and pause the campaigns that must stop.

    A failure of the account pauses its campaigns even if a single message or call had it.
    """
    if not counts_against_budget(dispatch):
        return
    traits = FAILURE_CLASSES.get(dispatch.reason or "")
    account = None if traits is None else traits.pauses
    if account is not None:
        if provider_throttles.has_old_credentials(tx, dispatch, now):
            # The operator has replaced them, and may have resumed the campaigns already.
            return
        # A scheduled campaign would start into the same failure.
        running = {CampaignStatus.ACTIVE, CampaignStatus.SCHEDULED}
        for other in tx.campaigns.in_status(running, workspace_id=dispatch.workspace_id):
            if other.channel == dispatch.channel and provider_of(tx, other) == dispatch.provider:
                _pause(tx, other, account, now)
        return
    campaign = tx.campaigns.get(dispatch.workspace_id, dispatch.campaign_id) if dispatch.campaign_id else None
    if campaign is None:
        return
    # A resume starts a new budget: the operator has seen the earlier failures. Requests from before a clock step may be
    # older than a resume, and must not hide the others.
    history = tx.dispatches.judged(
        dispatch.workspace_id, campaign.id, since=campaign.updated_at, until=now, limit=JUDGED_DISPATCHES
    )
    if campaign.status is CampaignStatus.ACTIVE and is_spent(history):
        _pause(tx, campaign, "error_budget", now)


def _pause(tx: Transaction, campaign: Campaign, reason: PauseReason, now: datetime) -> None:
    move(tx, campaign, CampaignAction.PAUSE, now=now, actor="engine", pause_reason=reason)
