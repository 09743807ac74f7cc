"""The present activity of the campaigns that send, and the forecasts of their ends."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

import attrs

from outreach import EngineStatus, Outreach
from outreach.models import CampaignNow, CampaignProgress, KeptForecast
from outreach_server.console.figures import FigureReader

MAX_SHOWN: Final = 8
"""The most campaigns with such a line: each takes some look-ups."""


@attrs.frozen(kw_only=True)
class Activity:
    """The present activity of a campaign that sends.

    Attributes:
        now: What it does, or the reason why it waits.
        progress: Its requests by time.
        planned: The newest forecast that is kept with it; None if there is none.
    """

    now: CampaignNow
    progress: CampaignProgress
    planned: KeptForecast | None


async def activities_of(
    engine: Outreach, figures: FigureReader, status: EngineStatus, workspace_id: str
) -> Mapping[str, Activity]:
    """Return the activity of the first campaigns of a status, by their ids."""
    campaigns = [one.id for one in status.running[:MAX_SHOWN]]
    found = await asyncio.gather(*(_activity(engine, figures, workspace_id, one) for one in campaigns))
    return dict(zip(campaigns, found, strict=True))


async def _activity(engine: Outreach, figures: FigureReader, workspace_id: str, campaign_id: str) -> Activity:
    now, progress, kept = await asyncio.gather(
        engine.campaigns.now(workspace_id, campaign_id),
        figures.progress(engine, workspace_id, campaign_id),
        engine.campaigns.forecasts(workspace_id, campaign_id),
    )
    return Activity(now=now, progress=progress, planned=kept[-1] if kept else None)
