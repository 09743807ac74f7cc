"""Whether a campaign can be started: the condition between draft and ready, and what it lacks."""

from __future__ import annotations

from outreach.errors import ErrorDetail
from outreach.models.campaign import Campaign
from outreach.models.directory import Agent


def is_ready(campaign: Campaign, agent: Agent | None) -> bool:
    """Return whether a campaign's setup is complete.

    SMS: a message is composed (a text that is not blank, or a flow) and sending number and carrier are set
    (interface, section 3). Calls: the agent is active and may call out (design, section 3).
    """
    return not missing(campaign, agent)


def missing(campaign: Campaign, agent: Agent | None) -> tuple[ErrorDetail, ...]:
    """Return what a campaign lacks to be ready: the field that says it, and a sentence; nothing when it is ready."""
    return tuple(_of_calls(agent) if campaign.channel == "call" else _of_messages(campaign))


def _of_messages(campaign: Campaign) -> list[ErrorDetail]:
    found = []
    if campaign.sms_message_source == "flow":
        if campaign.sms_flow_id is None:
            found.append(ErrorDetail("sms_flow_id", "It has no sms_flow_id: the flow that drives it."))
    elif not (campaign.sms_message_body and campaign.sms_message_body.strip()):
        found.append(ErrorDetail("message_body", "It has no message_body: the text to send."))
    if not campaign.sms_from_number:
        found.append(ErrorDetail("sms_from_number", "It has no sms_from_number: the number to send from."))
    if campaign.sms_carrier is None:
        found.append(ErrorDetail("sms_carrier", "It has no sms_carrier: the carrier that sends."))
    return found


def _of_calls(agent: Agent | None) -> list[ErrorDetail]:
    if agent is None:
        return [ErrorDetail("agent_id", "It has no agent.")]
    found = []
    if not agent.is_active:
        found.append(ErrorDetail("agent.is_active", f"Its agent {agent.name!r} is inactive."))
    if not agent.may_call_out:
        sentence = f"Its agent {agent.name!r} is inbound and may not call out."
        found.append(ErrorDetail("agent.allow_outbound", sentence))
    return found
