"""`campaigns list`: the campaigns of a workspace."""

from __future__ import annotations

from typing import Any

import click

from outreach import Campaign, CampaignStatus, Outreach
from outreach_server.cli import documents
from outreach_server.cli.base import Command, state, with_engine
from outreach_server.cli.collecting import collect
from outreach_server.cli.output import show_list
from outreach_server.cli.values import BY_EXTERNAL_ID, BY_METADATA, WORKSPACE, OneOf

_COLUMNS = ("id", "name", "channel", "effective_status", "recipients", "pending", "completed")


@click.command("list", cls=Command)
@click.argument("workspace_id", type=WORKSPACE)
@click.option("--channel", type=OneOf(["sms", "call"]), help="Only this channel.")
@click.option("--status", type=OneOf(list(CampaignStatus), case_sensitive=False), help="Only this stored status.")
@click.option("--search", metavar="TEXT", help="Part of the name, in any case.")
@BY_EXTERNAL_ID
@BY_METADATA
@click.option("--archived", is_flag=True, help="Only archived campaigns, which are hidden otherwise.")
@click.option("--limit", type=click.IntRange(1), help="Only the newest so many.")
def list_(workspace_id: str, limit: int | None, **wanted: Any) -> None:
    """List a workspace's campaigns, newest first."""

    async def work(engine: Outreach) -> list[Campaign]:
        await engine.workspaces.get(workspace_id)
        return await collect(engine.campaigns.iter_all(workspace_id, **wanted), limit)

    found = [documents.campaign(item) for item in with_engine(work)]
    show_list(
        found if state().as_json else [documents.in_words(one) for one in found],
        _COLUMNS,
        empty="No campaigns match. Load one with: outreach-server campaigns import WORKSPACE_ID FILE …",
    )
