"""When a person may be contacted: by the clocks of every place where the number may be (design, section 6).

The rule is that of 47 CFR 64.1200(c)(1): not before 8 in the morning and not after 9 in the evening, local time
at the called party's location. A number does not tell one location: all its time zones must be open.
"""

from __future__ import annotations

import functools
from collections.abc import Set as AbstractSet
from datetime import date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from outreach.models.business_hours import DAYS, BusinessHours, Window
from outreach.policy.opening import closes_at, next_open
from outreach.policy.zones import is_zone

FIRST_MINUTE: Final = 8 * 60
LAST_MINUTE: Final = 21 * 60
SEARCH: Final = timedelta(days=7)
"""A number whose zones, and the campaign, have no common open time within this is not contacted."""

_HOURS: Final = BusinessHours(
    enabled=True,
    timezone="UTC",
    schedule={day: (Window(start_minute=FIRST_MINUTE, end_minute=LAST_MINUTE),) for day in DAYS},
    batch_concurrency=1,
)


@functools.lru_cache(maxsize=65_536)
def zones_of(phone: str) -> tuple[str, ...]:
    """Return the time zones in which a number may be, sorted; empty when none is known.

    Args:
        phone: E.164.
    """
    # Loaded when it is first asked for: its tables are large.
    import phonenumbers
    from phonenumbers import timezone as phone_zones

    try:
        names = phone_zones.time_zones_for_number(phonenumbers.parse(phone))
    except phonenumbers.NumberParseException:
        return ()
    return tuple(sorted(names)) if all(is_zone(name) for name in names) else ()


# One wave asks for one moment and, of many numbers, for few sets of zones.
@functools.lru_cache(maxsize=4096)
def next_common_open(zones: tuple[str, ...], now: datetime) -> datetime | None:
    """Return the first moment from now on at which all zones are open; None when there is none within the search."""
    if not zones:
        return None
    moment = now
    while moment - now <= SEARCH:
        openings = [next_open(_HOURS, moment, ZoneInfo(zone)) for zone in zones]
        latest = max((opening for opening in openings if opening is not None), default=None)
        if latest is None:
            return None
        if latest == moment:
            return moment
        moment = latest
    return None


def next_open_for_both(
    zones: tuple[str, ...], now: datetime, hours: BusinessHours, closed_dates: AbstractSet[date]
) -> datetime | None:
    """Return the first moment from now on at which all zones and a campaign are open.

    Each turn leaves one opening of the zones behind, of which the search has about one a day.

    Args:
        zones: Where the number may be.
        now: Where to start, aware.
        hours: The campaign's hours.
        closed_dates: The campaign's holidays.

    Returns:
        None when there is none within the search.
    """
    opening = next_common_open(zones, now)
    while opening is not None and opening - now <= SEARCH:
        found = next_open(hours, opening, limit_days=SEARCH.days, closed_dates=closed_dates)
        if found is None or found == opening:
            return found
        opening = next_common_open(zones, found)
    return None


@functools.lru_cache(maxsize=4096)
def first_to_close(zones: tuple[str, ...], now: datetime) -> datetime | None:
    """Return when the first of the zones closes, from an open moment on."""
    closings = [closes_at(_HOURS, now, ZoneInfo(zone)) for zone in zones]
    return min((closing for closing in closings if closing is not None), default=None)
