"""A person leaves one contact out of a campaign."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from outreach.errors import Conflict
from outreach.ledger.campaigns.recipients import put_recipient
from outreach.ledger.campaigns.transitions import complete_if_done
from outreach.ledger.common import campaign_of, recipient_of, record_audit
from outreach.models.campaign import Recipient
from outreach.models.states import IN_FLIGHT_RECIPIENT_STATUSES, RecipientStatus, TrailRule
from outreach.rules.settlement import ended_recipient
from outreach.storage.unit_of_work import Transaction

BY_OPERATOR: Final = "by_operator"
"""Reason of a contact that a person left out."""


def skip_recipient(
    tx: Transaction,
    workspace_id: str,
    campaign_id: str,
    position: int,
    *,
    note: str | None,
    now: datetime,
    actor: str,
) -> Recipient:
    """End a contact that waits for its turn as skipped, and return it; one that was left out before stays as it is.

    Raises:
        NotFound: The workspace has no such campaign, or the campaign no such recipient.
        Conflict: A request to it may reach it, it has ended, or its campaign has.
    """
    campaign = campaign_of(tx, workspace_id, campaign_id)
    recipient = recipient_of(tx, campaign, position)
    if (recipient.status, recipient.reason) == (RecipientStatus.SKIPPED, BY_OPERATOR):
        return recipient
    if recipient.status in IN_FLIGHT_RECIPIENT_STATUSES:
        raise Conflict(
            f"This contact is {recipient.status}: a request to it has begun, and its outcome is not final. Try again "
            "once it waits for its next turn; if it ends instead, nothing more is sent to it."
        )
    if not recipient.is_open:
        raise Conflict(f"This contact has ended as {recipient.status}: its campaign sends nothing more to it.")
    if campaign.is_terminal:
        raise Conflict(f"This campaign is {campaign.status}: it sends nothing more to this contact.")
    skipped = ended_recipient(recipient, RecipientStatus.SKIPPED, BY_OPERATOR, now)
    change = put_recipient(tx, workspace_id, recipient, skipped, rule=TrailRule.OPERATOR, now=now, actor=actor)
    tx.campaigns.add_counters(workspace_id, campaign_id, change)
    record_audit(tx, workspace_id, "recipient.skip", f"{campaign_id}/{position}", actor=actor, now=now, detail=note)
    complete_if_done(tx, campaign_of(tx, workspace_id, campaign_id), now=now)
    return skipped
