"""Recipients on their way through an automation flow."""

from __future__ import annotations

from datetime import datetime

from outreach.models.campaign import Campaign
from outreach.models.directory import FlowStep
from outreach.models.recipient import Recipient
from outreach.policy.flow_course import go_to
from outreach.protocols.storage import Transaction


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
    since = campaign.started_at or campaign.created_at

    def replied() -> bool:
        phone = recipient.phone
        return phone is not None and tx.inbound.replied_since(campaign.workspace_id, phone, since)

    return go_to(recipient, index, steps, replied=replied, now=now)
