"""`campaigns approval` and `campaigns approve`: the approval of a start by a second person."""

from __future__ import annotations

from typing import Final

import click

from outreach.http import document_of, to_json
from outreach.models import Approval
from outreach_server.cli.base import Command, actor, state, with_campaign
from outreach_server.cli.output import echo_json, plural, show_or_say
from outreach_server.cli.values import CAMPAIGN

_REASONS: Final = {
    "contacts": "it has more contacts than people may start alone",
    "amount": "it costs more than people may start alone",
    "amount_unknown": "not all of its cost is known",
}


@click.command("approval", cls=Command)
@click.argument("campaign_id", type=CAMPAIGN)
def approval_(campaign_id: str) -> None:
    """Show whether people at the console need approval to start a campaign, and the approval that it has."""
    found = with_campaign(campaign_id, lambda engine, one: engine.campaigns.approval(one.workspace_id, one.id))
    if state().as_json:
        echo_json(document_of(found))
        return
    if found.reason is not None:
        click.echo(f"People need approval to start it: {_REASONS[found.reason]}.")
    else:
        click.echo("It needs no approval.")
    click.echo(f"Last changed by: {found.changed_by or 'unknown'}")
    if found.approval is not None:
        click.echo(_sentence(found.approval))


@click.command("approve", cls=Command)
@click.argument("campaign_id", type=CAMPAIGN)
def approve_(campaign_id: str) -> None:
    """Approve the start of a campaign as it is now; a change takes the approval away."""
    approved = with_campaign(
        campaign_id,
        lambda engine, one: engine.campaigns.approve(one.workspace_id, one.id, revision=one.revision, actor=actor()),
    )
    show_or_say(to_json(approved), _sentence(approved))


def _sentence(found: Approval) -> str:
    figures = found.figures
    cost = "" if figures.amount is None else f", {figures.amount} {figures.currency}"
    what = plural(figures.messages, "message") if figures.messages else plural(figures.contacted, "contact")
    return f"Approved by {found.approved_by}: revision {found.revision}, {what}{cost}."
