"""Opening hours and pace in the slow and obvious way, without the engine's own rules."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from outreach.models.campaign import Campaign

ZONE_OF: Final = {
    "+1415": "America/Los_Angeles",
    "+1787": "America/Puerto_Rico",
    "+81": "Asia/Tokyo",
    "+44": "Europe/London",
}
"""Where the simulated people are, by how their numbers begin."""

_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MINUTE: Final = timedelta(seconds=60)


def campaign_is_open(campaign: Campaign, now: datetime) -> bool:
    """Return whether a campaign may reach anybody, by its windows (none of them overnight) and its holidays."""
    hours = campaign.business_hours
    if hours is None:
        return True
    local = now.astimezone(ZoneInfo(hours.timezone))
    closed = campaign.holidays.holidays if campaign.holidays is not None else ()
    if any(holiday.enabled and holiday.date == local.date() for holiday in closed):
        return False
    if not hours.enabled:
        return True
    minute = local.hour * 60 + local.minute
    return any(window.start_minute <= minute < window.end_minute for window in hours.schedule[_DAYS[local.weekday()]])


def person_is_awake(phone: str, now: datetime) -> bool:
    """Return whether it is between 8 in the morning and 9 in the evening where a simulated person is."""
    [zone] = [zone for prefix, zone in ZONE_OF.items() if phone.startswith(prefix)]
    return 8 <= now.astimezone(ZoneInfo(zone)).hour < 21


def most_in_a_minute(moments: Sequence[datetime]) -> int:
    """Return how many of the moments, oldest first, lie in the half-open minute that ends with the last."""
    return sum(1 for moment in moments if moments[-1] - moment < _MINUTE)
