"""Schedules and webhooks by a part of what people call them, any way it is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from outreach.models import Schedule, Webhook
from outreach_server.console.context import Visit

MOST_SEARCHED: Final = 1000
"""The most of them that are read for a search."""


async def schedules_named(visit: Visit, text: str) -> Sequence[Schedule]:
    """Return the schedules whose names have a text."""
    page = await visit.engine.schedules.list(visit.place.id, limit=MOST_SEARCHED)
    return [one for one in page.items if text.casefold() in one.name.casefold()]


async def webhooks_named(visit: Visit, text: str) -> Sequence[Webhook]:
    """Return the webhooks whose URLs or descriptions have a text."""
    page = await visit.engine.webhooks.list(visit.place.id, limit=MOST_SEARCHED)
    return [one for one in page.items if text.casefold() in f"{one.url}\n{one.description or ''}".casefold()]
