"""`campaigns watch`: a live view of a campaign."""

from __future__ import annotations

import click

from outreach import Campaign, Outreach
from outreach.protocols import SystemClock
from outreach_server.cli import documents
from outreach_server.cli.base import Command, state, with_campaign
from outreach_server.cli.campaigns.panel import groups_table
from outreach_server.cli.campaigns.picture import Snapshot, message_counts, waiting_text
from outreach_server.cli.output import console, echo_json, note
from outreach_server.cli.progress import follow, view_for
from outreach_server.cli.values import CAMPAIGN


@click.command("watch", cls=Command)
@click.argument("campaign_id", type=CAMPAIGN)
def watch_(campaign_id: str) -> None:
    """Show a campaign while it runs, until it is completed, cancelled or expired."""
    as_json = state().as_json
    out = console()
    view, screen = view_for(out, silent=as_json)

    async def work(engine: Outreach, campaign: Campaign) -> Snapshot:
        waits_for = waiting_text(campaign, SystemClock().now())
        if as_json and waits_for is not None:
            note(waits_for)
        with screen:
            return await follow(engine, campaign.workspace_id, campaign_id, view)

    end = with_campaign(campaign_id, work)
    if as_json:
        messages = message_counts(end.campaign, end.sent)
        shown = {**documents.campaign(end.campaign), **documents.blockers(end.blockers)}
        echo_json({**shown, "groups": end.documents, "messages": messages})
    elif not out.is_terminal:
        out.print(groups_table(end.documents, end.campaign.timezone))
