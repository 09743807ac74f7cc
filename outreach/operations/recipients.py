"""Writing recipients, the counters with them."""

from __future__ import annotations

from datetime import datetime

import attrs

from outreach.models.campaign import Campaign, Counters, contribution
from outreach.models.recipient import Recipient
from outreach.models.states import RecipientStatus
from outreach.operations.common import call_settings_of
from outreach.operations.flows import go_on, steps_of
from outreach.operations.wave import Hold, Move
from outreach.policy.call_settlement import drop_second_leg
from outreach.policy.settlement import waiting
from outreach.protocols.storage import Transaction


def put_recipient(tx: Transaction, workspace_id: str, before: Recipient, after: Recipient) -> Counters:
    """Write a recipient's new state and return what that changes in the counters."""
    tx.recipients.put(workspace_id, after)
    return counted(after) - counted(before)


def counted(recipient: Recipient) -> Counters:
    """Return what a recipient adds to its campaign's counters."""
    return contribution(
        recipient.status,
        attempts=recipient.attempts,
        dispatched=recipient.dispatched,
        successful=recipient.successful,
    )


def untouched(tx: Transaction, workspace_id: str, recipient: Recipient) -> Recipient | None:
    """Return a recipient as it is when nothing has happened to it since the decision; None otherwise."""
    current = tx.recipients.get(workspace_id, recipient.campaign_id, recipient.position)
    if current is None or current.status not in {RecipientStatus.PENDING, RecipientStatus.WAITING}:
        return None
    same = (current.step, current.attempts, current.tries) == (recipient.step, recipient.attempts, recipient.tries)
    return current if same else None


def end(
    tx: Transaction, workspace_id: str, recipient: Recipient, status: RecipientStatus, reason: str, now: datetime
) -> Counters:
    """End a recipient that is not contacted; return what that changes in the counters."""
    current = untouched(tx, workspace_id, recipient)
    if current is None:
        return Counters()
    ended = attrs.evolve(current, status=status, reason=reason, due_at=None, ended_at=now)
    return put_recipient(tx, workspace_id, current, ended)


def hold(tx: Transaction, workspace_id: str, held: Hold) -> Counters:
    """Let a recipient wait; return what that changes in the counters."""
    current = untouched(tx, workspace_id, held.recipient)
    if current is None:
        return Counters()
    return put_recipient(tx, workspace_id, current, waiting(current, held.reason, held.due_at))


def go_on_without_request(tx: Transaction, campaign: Campaign, going: Move, now: datetime) -> Counters:
    """Let a recipient go on to the next thing; return what that changes in the counters."""
    current = untouched(tx, campaign.workspace_id, going.recipient)
    if current is None:
        return Counters()
    if going.kind == "next_step":
        after = go_on(tx, campaign, current, current.step, steps_of(tx, campaign) or (), now)
    else:
        settings = call_settings_of(tx, campaign.workspace_id)
        after = drop_second_leg(current, campaign=campaign.status, settings=settings, now=now)
    return put_recipient(tx, campaign.workspace_id, current, after)
