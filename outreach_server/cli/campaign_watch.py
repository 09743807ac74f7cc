"""`campaigns watch`: a campaign on the screen until it has ended."""

from __future__ import annotations

import click

from outreach import Outreach
from outreach_server.cli import documents
from outreach_server.cli.base import Command, state, with_engine
from outreach_server.cli.output import console, echo_json, note
from outreach_server.cli.progress import Snapshot, follow, groups_table, view_for, what_it_waits_for
from outreach_server.cli.values import CAMPAIGN


@click.command("watch", cls=Command)
@click.argument("campaign_id", type=CAMPAIGN)
def watch_(campaign_id: str) -> None:
    """Show a campaign while it runs, until it is completed, cancelled or expired."""
    as_json = state().as_json
    out = console()
    view, screen = view_for(out, silent=as_json)

    async def work(engine: Outreach) -> Snapshot:
        campaign = await engine.campaigns.find(campaign_id)
        waits_for = what_it_waits_for(campaign)
        if as_json and waits_for is not None:
            note(waits_for)
        with screen:
            return await follow(engine, campaign.workspace_id, campaign_id, view)

    end = with_engine(work)
    groups = [documents.group(group) for group in end.groups]
    if as_json:
        echo_json({**documents.campaign(end.campaign), "held_by": end.held_by, "groups": groups})
    elif not out.is_terminal:
        out.print(groups_table(groups, end.campaign.channel))
