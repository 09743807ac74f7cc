"""Whether a campaign can be started: the condition between draft and ready."""

from __future__ import annotations

from outreach.models.campaign import Campaign
from outreach.models.directory import Agent


def is_ready(campaign: Campaign, agent: Agent | None) -> bool:
    """Return whether a campaign's setup is complete.

    SMS: a message is composed (a text that is not blank, or a flow) and sending number and carrier are set
    (interface, section 3). Calls: the agent is active and may call out (design, section 3).
    """
    if campaign.channel == "call":
        return agent is not None and agent.is_active and agent.may_call_out
    if campaign.sms_message_source == "flow":
        composed = campaign.sms_flow_id is not None
    else:
        composed = bool(campaign.sms_message_body and campaign.sms_message_body.strip())
    return composed and bool(campaign.sms_from_number) and campaign.sms_carrier is not None
