"""Hours by the contact's own time, in every time zone in which it may be (docs/rules.md#contact-hours).

47 CFR 64.1200(c)(1) allows contact from 8 to 21 o'clock local time at the called party's location. A number does not
tell one location: all its time zones must be open (`outreach.rules.contact_places`).
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, datetime, timedelta
from hashlib import sha256
from typing import Final, Literal
from zoneinfo import ZoneInfo

import attrs

from outreach.core.clock import is_zone
from outreach.models.campaign import Campaign
from outreach.models.settings import (
    DAYS,
    FIRST_CONTACT_MINUTE,
    LAST_CONTACT_MINUTE,
    BusinessHours,
    PlaceHours,
    TimeWindow,
)
from outreach.rules.holidays import closed_dates
from outreach.rules.number_zones import number_zones
from outreach.rules.opening import closes_at, next_open

SEARCH_WINDOW: Final = timedelta(days=7)
"""A number without a common open time within this is not contacted."""


@attrs.frozen(eq=False)
class LocalHours:
    """Hours in each time zone of a number; the same object stands for the same hours, so that results are cached."""

    schedule: Mapping[str, tuple[TimeWindow, ...]]

    @functools.cached_property
    def hours(self) -> BusinessHours:
        """The hours, for any zone."""
        return BusinessHours(timezone="UTC", schedule=self.schedule)


_CONTACT_HOURS: Final = TimeWindow(start_minute=FIRST_CONTACT_MINUTE, end_minute=LAST_CONTACT_MINUTE)
EIGHT_TO_21: Final = LocalHours(dict.fromkeys(DAYS, (_CONTACT_HOURS,)))


def narrower_hours(places: Sequence[PlaceHours], regions: Collection[str]) -> Sequence[PlaceHours]:
    """Return those hours of places that count in these regions."""
    return [one for one in places if one.place in regions]


def hours_of_place(place: PlaceHours) -> LocalHours:
    """Return the hours of a place, the same object for the same windows."""
    return _hours_of_windows(tuple((day, tuple(windows)) for day, windows in sorted(place.schedule.items())))


def hours_key(places: Sequence[PlaceHours]) -> str:
    """Return the hours of places as one short text to compare: the places, and a digest of their windows."""
    windows = [
        f"{one.place} {day} {window.start_minute}-{window.end_minute}"
        for one in places
        for day, found in sorted(one.schedule.items())
        for window in found
    ]
    digest = sha256("\n".join(windows).encode()).hexdigest()
    return f"{','.join(one.place for one in places)}:{digest[:8]}"


@functools.lru_cache(maxsize=4096)
def _hours_of_windows(windows: tuple[tuple[str, tuple[TimeWindow, ...]], ...]) -> LocalHours:
    return LocalHours(dict(windows))


def time_zones_of_phone(phone: str) -> tuple[str, ...]:
    """Return the time zones in which an E.164 number may be, sorted; empty if none is known."""
    return _known_zones(number_zones(phone))


@functools.lru_cache(maxsize=4096)
def _known_zones(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(names)) if all(is_zone(name) for name in names) else ()


# The recipients of one wave share the time and a few sets of zones.
@functools.lru_cache(maxsize=4096)
def next_common_open(zones: tuple[str, ...], hours: tuple[LocalHours, ...], now: datetime) -> datetime | None:
    """Return the first time from now on at which all zones are open by all hours; None within the search window."""
    if not zones:
        return None
    if not hours:
        return now
    moment = now
    while moment - now <= SEARCH_WINDOW:
        openings = [next_open(one.hours, moment, ZoneInfo(zone)) for one in hours for zone in zones]
        known = [opening for opening in openings if opening is not None]
        if len(known) < len(openings):
            return None
        latest = max(known)
        if latest == moment:
            return moment
        moment = latest
    return None


def next_open_for_both(
    zones: tuple[str, ...],
    local_hours: tuple[LocalHours, ...],
    now: datetime,
    hours: BusinessHours,
    closed_dates: AbstractSet[date],
) -> datetime | None:
    """Return the first time from now on at which all zones and a campaign are open; None within the search window."""
    opening = next_common_open(zones, local_hours, now)
    while opening is not None and opening - now <= SEARCH_WINDOW:
        found = next_open(hours, opening, limit_days=SEARCH_WINDOW.days, closed_dates=closed_dates)
        if found is None or found == opening:
            return found
        opening = next_common_open(zones, local_hours, found)
    return None


@functools.lru_cache(maxsize=4096)
def earliest_closing(zones: tuple[str, ...], hours: tuple[LocalHours, ...], now: datetime) -> datetime | None:
    """Return when the first of the zones closes, from an open time on."""
    closings = [closes_at(one.hours, now, ZoneInfo(zone)) for one in hours for zone in zones]
    return min((closing for closing in closings if closing is not None), default=None)


def next_contact(
    campaign: Campaign, zones: tuple[str, ...], hours: tuple[LocalHours, ...], now: datetime
) -> datetime | None:
    """Return when a campaign that is open now may next contact numbers in these zones; None within the window."""
    opening = next_common_open(zones, hours, now)
    if opening is not None and opening > now:
        # The campaign may be closed when the contact's morning comes.
        return _open_for_both(_CacheKey(zones, hours, now, campaign.id, campaign.revision, campaign))
    return opening


UnreachableReason = Literal["timezone_unknown", "no_common_hours", "hours_never_fit"]


def unreachable_reason(zones: tuple[str, ...], hours: tuple[LocalHours, ...], now: datetime) -> UnreachableReason:
    """Return why a number with these zones can never be contacted, where `next_contact` is None.

    The number's zones are unknown; they are never open together; or never while the campaign is.
    """
    if not zones:
        return "timezone_unknown"
    return "no_common_hours" if next_common_open(zones, hours, now) is None else "hours_never_fit"


@attrs.frozen
class _CacheKey:
    """A cache key in which the revision stands for the campaign, whose hours cannot be hashed."""

    zones: tuple[str, ...]
    hours: tuple[LocalHours, ...]
    now: datetime
    campaign_id: str
    revision: int
    campaign: Campaign = attrs.field(eq=False)


# Many numbers of a wave share their zones, and a week of odd hours takes a millisecond.
@functools.lru_cache(maxsize=1024)
def _open_for_both(key: _CacheKey) -> datetime | None:
    zones, local_hours, now, campaign = key.zones, key.hours, key.now, key.campaign
    if campaign.business_hours is None and campaign.holidays is None:
        return next_common_open(zones, local_hours, now)
    hours = campaign.business_hours or BusinessHours(
        enabled=False, timezone="UTC", schedule={}, batch_concurrency=campaign.batch_concurrency
    )
    dates = closed_dates(campaign.holidays) if campaign.holidays is not None else frozenset[date]()
    return next_open_for_both(zones, local_hours, now, hours, dates)
