"""The parts of each live page, as HTML by the id of their element."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from outreach import Campaign
from outreach.server_support import JoinedReads
from outreach_server.console.context import Visit
from outreach_server.console.live.fan_out import Regions, Render
from outreach_server.console.pages.campaign_regions import CampaignView, view_of
from outreach_server.console.pages.overview import overview_view
from outreach_server.console.pages.set_up.every import NOUNS
from outreach_server.console.pages.set_up.pages import live_view

CAMPAIGN_REGIONS: Final = ("state", "now", "tiles", "curve", "funnel", "reasons", "events", "as-of")
"""The live parts of a campaign's page; each has a template, and its name is the id of its element."""


async def campaign_view(visit: Visit, campaign: Campaign, *, is_first: bool = False) -> CampaignView:
    """Return what the page of a campaign shows now.

    Args:
        visit: The request.
        campaign: The campaign as it was a moment ago.
        is_first: Whether it is the first paint, which must come soon.
    """
    figures = await visit.console.figures.read(visit.engine, campaign, is_first=is_first)

    def contacts_url(query: Mapping[str, object]) -> str:
        return visit.url("contacts", query, campaign=campaign.id)

    return view_of(figures, visit.clocks(figures.campaign.timezone), contacts_url)


OVERVIEW_REGIONS: Final = ("needs", "running", "as-of")
"""The live parts of the overview."""


def overview_renderer(visit: Visit) -> Render:
    """Return what renders the live parts of the overview."""

    async def render() -> Regions:
        async with JoinedReads() as reads:
            # One of its own, whose moment is that of this rendering.
            looked = reads.start(overview_view(attrs.evolve(visit)))
        view = looked.result()
        return {name: visit.part(f"overview/{name}", view=view) for name in OVERVIEW_REGIONS}

    return render


WEBHOOK_REGIONS: Final = ("facts", "rows", "as-of")
"""The live parts of a webhook's page."""


def webhook_renderer(visit: Visit, webhook_id: str) -> Render:
    """Return what renders the live parts of a webhook's page."""
    [noun] = [one for one in NOUNS if one.live == "webhook"]

    async def render() -> Regions:
        now = attrs.evolve(visit)
        one = await noun.get(now, webhook_id)
        async with JoinedReads() as reads:
            facts = reads.start(noun.facts(now, one))
            table = reads.start(noun.table(now, one, None))
        rows = table.result()
        values = {
            "facts": facts.result(),
            "table": rows,
            "view": live_view(now),
            "first_url": "",
            "next_url": now.url(f"{noun.name}-one", {"after": rows.next}, id=webhook_id) if rows and rows.next else "",
        }
        return {name: now.part(f"set_up/{name}", **values) for name in WEBHOOK_REGIONS}

    return render


def campaign_renderer(visit: Visit, campaign_id: str) -> Render:
    """Return what renders the live parts of a campaign's page."""

    async def render() -> Regions:
        campaign = await visit.engine.campaigns.get(visit.place.id, campaign_id)
        view = await campaign_view(visit, campaign)
        return {name: visit.part(f"campaign/{name}", view=view) for name in CAMPAIGN_REGIONS}

    return render
