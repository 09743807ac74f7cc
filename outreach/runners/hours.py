"""When a campaign may reach anybody, by its business hours and holidays."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.models.business_hours import BusinessHours
from outreach.models.campaign import Campaign
from outreach.models.trail import Rule
from outreach.policy.holidays import closed_dates
from outreach.policy.opening import closes_at, is_open, next_open

_NO_OPENING: Final = timedelta(days=1)
"""When hours have no opening within a year, look again a day later: somebody may change the clock's rules."""


@attrs.frozen(kw_only=True)
class Hours:
    """When a campaign may reach anybody: now until a moment, or not before a moment.

    Attributes:
        rule: What keeps it closed; None while it is open.
    """

    open: bool
    until: datetime | None
    again_at: datetime
    rule: Rule | None = None


def hours_of(campaign: Campaign, now: datetime) -> Hours:
    """Return whether a campaign is open now, and when that changes."""
    if campaign.business_hours is None and campaign.holidays is None:
        return Hours(open=True, until=None, again_at=now)
    hours = campaign.business_hours or BusinessHours(
        enabled=False, timezone="UTC", schedule={}, batch_concurrency=campaign.batch_concurrency
    )
    dates = closed_dates(campaign.holidays) if campaign.holidays else frozenset()
    opening = next_open(hours, now, closed_dates=dates)
    if opening is None or opening > now:
        rule = Rule.HOLIDAYS if is_open(hours, now) else Rule.BUSINESS_HOURS
        return Hours(open=False, until=None, again_at=opening or now + _NO_OPENING, rule=rule)
    return Hours(open=True, until=closes_at(hours, now, closed_dates=dates), again_at=now)


def earliest(*moments: datetime | None) -> datetime | None:
    """Return the earliest of the moments that there are."""
    return min((moment for moment in moments if moment is not None), default=None)
