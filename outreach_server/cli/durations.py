"""Times for people: how long, and until when."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from outreach_server.words import duration

UTC_NAME: Final = "UTC"
"""The zone of times that belong to no campaign."""


def time_text(moment: datetime, zone: str = UTC_NAME, *, seconds: bool = True) -> str:
    """Return a time by the clocks of a zone, which is named; by UTC where this machine does not know the zone."""
    clocks = _clocks(zone)
    local = moment.astimezone(clocks or UTC).replace(tzinfo=None)
    return f"{local.isoformat(' ', 'seconds' if seconds else 'minutes')} {zone if clocks else UTC_NAME}"


def _clocks(zone: str) -> tzinfo | None:
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        return None


def until_text(moment: datetime, now: datetime, zone: str = UTC_NAME, *, brief: bool = False) -> str:
    """Return a moment that is waited for, with how far it is ahead; a brief one is only how far."""
    ahead = (moment - now).total_seconds()
    away = f"in {duration(ahead)}" if ahead > 0 else "now"
    return away if brief else f"{time_text(moment, zone)}, {away}"
