"""Recipients on their way through an automation flow."""

from __future__ import annotations

from datetime import datetime

from outreach.models.campaign import Campaign
from outreach.models.directory import FlowStep
from outreach.models.recipient import Recipient
from outreach.models.states import RecipientStatus
from outreach.policy.flow_course import go_to
from outreach.policy.settlement import ended
from outreach.working_set import Transaction


def steps_of(tx: Transaction, campaign: Campaign) -> tuple[FlowStep, ...] | None:
    """Return the steps that drive a campaign; None when no flow does."""
    if campaign.sms_message_source != "flow" or campaign.sms_flow_id is None:
        return None
    flow = tx.flows.get(campaign.workspace_id, campaign.sms_flow_id)
    return flow.steps if flow is not None else ()


def go_on(
    tx: Transaction,
    campaign: Campaign,
    recipient: Recipient,
    index: int,
    steps: tuple[FlowStep, ...],
    now: datetime,
) -> Recipient:
    """Return a recipient after it has come to a step."""
    after = go_to(recipient, index, steps, replied=lambda: _replied(tx, campaign, recipient), now=now)
    phone = recipient.phone
    goes_on = after.is_open or after.reason == "replied"
    if goes_on and phone is not None and tx.register.stopped(campaign.workspace_id, campaign.channel, {phone}):
        # Otherwise it would wait for its next step, perhaps for weeks, only to be skipped then. An opt-out is a reply
        # too, and is told as what it is.
        return ended(recipient, RecipientStatus.SKIPPED, "opted_out", now)
    return after


def reply_stops(tx: Transaction, campaign: Campaign, recipient: Recipient, steps: tuple[FlowStep, ...]) -> bool:
    """Return whether a reply stops a recipient that is about to be sent the step after a `stop_if_replied`.

    It has been asked before, when the recipient came to that step; but then it may have waited for its hours, its
    slot or another attempt, and have written meanwhile.
    """
    before = recipient.step - 1
    return 0 <= before < len(steps) and steps[before].kind == "stop_if_replied" and _replied(tx, campaign, recipient)


def _replied(tx: Transaction, campaign: Campaign, recipient: Recipient) -> bool:
    since = campaign.started_at or campaign.created_at
    phone = recipient.phone
    return phone is not None and tx.inbound.replied_since(campaign.workspace_id, phone, since)
