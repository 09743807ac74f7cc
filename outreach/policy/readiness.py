"""Whether a campaign can be started: the condition between draft and ready."""

from __future__ import annotations

from collections.abc import Sequence

from outreach.errors import ErrorDetail
from outreach.models.campaign import Campaign
from outreach.models.directory import Agent


def missing(campaign: Campaign, agent: Agent | None) -> Sequence[ErrorDetail]:
    """Return what a campaign's setup lacks: each field with a sentence; empty for one that is ready.

    SMS: a message is composed (a text that is not blank, or a flow) and sending number and carrier are set
    (interface, section 3). Calls: the agent is active and may call out (design, section 3).
    """
    if campaign.channel == "call":
        return calling_obstacles(agent)
    lacks = []
    if campaign.sms_message_source == "flow":
        if campaign.sms_flow_id is None:
            lacks.append(ErrorDetail("sms_flow_id", "It has no flow (sms_flow_id)."))
    elif not (campaign.sms_message_body and campaign.sms_message_body.strip()):
        lacks.append(ErrorDetail("sms_message_body", "It has no text (sms_message_body)."))
    if not campaign.sms_from_number:
        lacks.append(ErrorDetail("sms_from_number", "It has no sending number (sms_from_number)."))
    if campaign.sms_carrier is None:
        lacks.append(ErrorDetail("sms_carrier", "It has no carrier (sms_carrier)."))
    return lacks


def calling_obstacles(agent: Agent | None) -> Sequence[ErrorDetail]:
    """Return what keeps a calling campaign with this agent from calling."""
    if agent is None:
        return [ErrorDetail("agent_id", "It has no agent.")]
    obstacles = []
    if not agent.is_active:
        obstacles.append(ErrorDetail("agent.is_active", f"Its agent {agent.name!r} is inactive."))
    if not agent.may_call_out:
        message = f"Its agent {agent.name!r} is inbound and may not call out."
        obstacles.append(ErrorDetail("agent.allow_outbound", message))
    return obstacles


def is_ready(campaign: Campaign, agent: Agent | None) -> bool:
    """Return whether a campaign's setup is complete."""
    return not missing(campaign, agent)
