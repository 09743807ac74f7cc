"""What is in the way of a campaign's start, with the command that mends it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click

from outreach import Campaign, CannotStart, ErrorDetail
from outreach_server.cli.output import note

_OF_CAMPAIGNS: Final = {
    "message_body": "--message TEXT",
    "sms_flow_id": "--flow FLOW_ID",
    "sms_from_number": "--from NUMBER",
    "sms_carrier": "--carrier NAME",
    "agent_id": "--agent AGENT_ID",
}
"""The options of `campaigns update`, by the field that lacks."""

_OF_AGENTS: Final = {"agent.is_active": "--active", "agent.allow_outbound": "--allow-outbound"}
"""Those of `agents update`."""


def refusal(campaign: Campaign, error: CannotStart) -> click.ClickException:
    """Return the error of a command that was to start a campaign, with what to do about each obstacle."""
    lines = ["The campaign cannot start:", *_lines(campaign, error.details)]
    return click.ClickException("\n".join(lines))


def tell_draft(campaign: Campaign, missing: Sequence[ErrorDetail]) -> None:
    """Tell people what a draft lacks, and the commands that give it that."""
    note("\n".join(["It is a draft:", *_lines(campaign, missing)]))


def _lines(campaign: Campaign, details: Sequence[ErrorDetail]) -> list[str]:
    sentences = [f"  {detail.message}" for detail in details]
    return sentences + [f"  {command}" for command in _commands(campaign, details)]


def _commands(campaign: Campaign, details: Sequence[ErrorDetail]) -> list[str]:
    """Return the commands that mend what a command can mend, one for each thing that is to be changed."""
    found = []
    paths = [detail.path for detail in details]
    options = [_OF_CAMPAIGNS[path] for path in paths if path in _OF_CAMPAIGNS]
    if options:
        found.append(f"outreach-server campaigns update {campaign.id} {' '.join(options)}")
    options = [_OF_AGENTS[path] for path in paths if path in _OF_AGENTS]
    if options:
        found.append(f"outreach-server agents update {campaign.agent_id} {' '.join(options)}")
    for path in paths:
        where, _, provider = path.partition(".")
        if where == "account":
            found.append(f"outreach-server accounts connect {campaign.workspace_id} {provider}")
    return found
