"""What is in the way of a campaign's start, each with the command that takes it away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from outreach import Campaign, CannotStart, ErrorDetail

_UPDATES: Final = {
    "sms_message_body": "--message TEXT",
    "sms_flow_id": "--flow FLOW",
    "sms_from_number": "--from NUMBER",
    "sms_carrier": "--carrier NAME",
    "agent_id": "--agent AGENT",
}
"""The option of `campaigns update` that sets a field."""


def explain_start(error: CannotStart, campaign: Campaign) -> str:
    """Return why a campaign cannot start, and what to type."""
    lines = [f"Campaign {campaign.name!r} cannot start:"]
    for detail in error.details:
        lines.append(f"  {detail.message}")
        command = command_for(detail, campaign)
        if command is not None:
            lines.append(f"    outreach-server {command}")
    return "\n".join(lines)


def explain_draft(missing: Sequence[ErrorDetail], campaign: Campaign) -> str:
    """Return what a draft lacks, and what to type: one command for all that is the campaign's own."""
    options = [_UPDATES[detail.path] for detail in missing if detail.path in _UPDATES]
    others = [command_for(detail, campaign) for detail in missing if detail.path not in _UPDATES]
    commands = [f"campaigns update {campaign.id} {' '.join(options)}"] if options else []
    commands += [command for command in others if command is not None]
    lines = ["It is a draft: " + " ".join(detail.message for detail in missing)]
    return "\n".join([*lines, *(f"  outreach-server {command}" for command in commands)])


def command_for(detail: ErrorDetail, campaign: Campaign) -> str | None:
    """Return the command that takes an obstacle away; None where there is no single one."""
    kind, _, rest = detail.path.partition(".")
    match kind:
        case _ if detail.path in _UPDATES:
            return f"campaigns update {campaign.id} {_UPDATES[detail.path]}"
        case "account":
            return f"accounts connect {campaign.workspace_id} {rest}"
        case "agent" if rest == "is_active":
            return f"agents update {campaign.agent_id} --active"
        case "agent" if rest == "allow_outbound":
            return f"agents update {campaign.agent_id} --allow-outbound"
        case _:
            return None
