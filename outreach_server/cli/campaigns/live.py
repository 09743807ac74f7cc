"""`campaigns now` and `campaigns progress`: what a campaign waits for, and its requests minute by minute."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import attrs
import click

from outreach import Campaign, Outreach
from outreach.http import document_of
from outreach.models import CampaignProgress
from outreach_server.cli.base import Command, state, with_campaign
from outreach_server.cli.campaigns.times import with_offset
from outreach_server.cli.durations import time_text
from outreach_server.cli.output import console, echo_json, listing, note, show_or_say
from outreach_server.cli.values import CAMPAIGN, MOMENT

_FIGURES: Final = ("requests", "accepted", "delivered", "undelivered", "refused", "uncertain", "not_sent", "in_flight")


@click.command("now", cls=Command)
@click.argument("campaign_id", type=CAMPAIGN)
def now_(campaign_id: str) -> None:
    """Say what a campaign does or waits for now, until when, and how many contacts that concerns."""
    found = with_campaign(campaign_id, lambda engine, one: engine.campaigns.now(one.workspace_id, one.id))
    show_or_say(document_of(found), found.message)


@click.command("progress", cls=Command)
@click.argument("campaign_id", type=CAMPAIGN)
@click.option("--since", type=MOMENT, help="Only from then on, such as 2026-11-30T09:00, by the campaign's clocks.")
def progress_(campaign_id: str, since: datetime | None) -> None:
    """Show a campaign's requests and what became of them, by the minute, or by longer steps of a long time."""

    async def work(engine: Outreach, campaign: Campaign) -> tuple[CampaignProgress, str]:
        begin = with_offset("--since", since, campaign.timezone)
        return await engine.campaigns.progress(campaign.workspace_id, campaign_id, since=begin), campaign.timezone

    found, zone = with_campaign(campaign_id, work)
    if state().as_json:
        echo_json(document_of(found))
        return
    rows = [{**attrs.asdict(one), "at": time_text(one.at, zone, seconds=False)} for one in found.points]
    if not rows:
        note("It has made no requests in this time.")
        return
    shown = [name for name in _FIGURES if any(row[name] for row in rows)]
    console().print(listing(rows, ("at", *shown), zone))
