"""When business hours are open: a moment's wall clock decides, through every change of the clocks.

A moment is open when its local wall-clock time lies in a window of its local weekday, or in the part of the
previous weekday's overnight window that runs into its day; and when its local date is not a closed one. So an
hour that the clocks repeat counts twice, an hour that they leave out counts not at all, and a closed date
closes its whole day and nothing of the next.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

import attrs

from outreach.models.campaign import Campaign
from outreach.models.hours import DAYS, MINUTES_A_DAY, BusinessHours
from outreach.models.trail import TrailRule
from outreach.policy.holidays import closed_dates

DEFAULT_LIMIT_DAYS: Final = 366

_DAY: Final = timedelta(days=1)
_SECOND: Final = timedelta(seconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NO_DATES: Final[frozenset[date]] = frozenset()
_ANY_DAY: Final = date(2024, 1, 1)


def is_open(
    hours: BusinessHours, now: datetime, zone: tzinfo | None = None, *, closed_dates: AbstractSet[date] = _NO_DATES
) -> bool:
    """Return whether a moment is open.

    Args:
        hours: The hours; when they are not enabled, only closed dates close.
        now: The moment, aware.
        zone: Whose wall clock counts, when it is not that of the hours.
        closed_dates: Dates in that zone that are closed.
    """
    return _is_open_at(hours, now.astimezone(_zone(hours, now, zone)), closed_dates)


def next_open(
    hours: BusinessHours,
    now: datetime,
    zone: tzinfo | None = None,
    *,
    limit_days: int = DEFAULT_LIMIT_DAYS,
    closed_dates: AbstractSet[date] = _NO_DATES,
) -> datetime | None:
    """Return the first open moment that is not before `now`, in UTC, or None when the limit has none.

    Args:
        hours: The hours.
        now: Where to start, aware.
        zone: Whose wall clock counts, when it is not that of the hours.
        limit_days: How far to look.
        closed_dates: Dates in that zone that are closed.
    """
    if hours.enabled and not any(hours.schedule.values()):
        return None
    return _first(hours, now, zone, limit_days, closed_dates, wanted=True)


def closes_at(
    hours: BusinessHours,
    now: datetime,
    zone: tzinfo | None = None,
    *,
    limit_days: int = DEFAULT_LIMIT_DAYS,
    closed_dates: AbstractSet[date] = _NO_DATES,
) -> datetime | None:
    """Return the first closed moment that is not before `now`, in UTC, or None when the limit has none.

    For a moment that is closed itself this is that moment: nothing may start before it.

    Args:
        hours: The hours.
        now: Where to start, aware.
        zone: Whose wall clock counts, when it is not that of the hours.
        limit_days: How far to look.
        closed_dates: Dates in that zone that are closed.
    """
    if not _is_open_all_week(hours):
        return _first(hours, now, zone, limit_days, closed_dates, wanted=False)
    local = _zone(hours, now, zone)
    start, today = now.astimezone(UTC), now.astimezone(local).date()
    end = start + timedelta(days=limit_days)
    # Only a closed date can close, and no clock is a day or more from UTC. Those that are past, which are most of a
    # calendar that goes back for years, are passed over without a look at the clock.
    for day in sorted(day for day in closed_dates if today - _DAY <= day <= end.date() + _DAY):
        midnight = datetime.combine(day, datetime.min.time(), UTC)
        begin, finish = max(start, midnight - _DAY), min(end, midnight + 2 * _DAY)
        closing = _first_between(hours, local, begin, finish, closed_dates, wanted=False)
        if closing is not None:
            return closing
    return None


def _is_open_all_week(hours: BusinessHours) -> bool:
    """Return whether nothing but a closed date ever closes these hours."""
    if not hours.enabled:
        return True
    start = datetime.combine(_ANY_DAY, datetime.min.time())
    return all(_is_open_at(hours, edge, _NO_DATES) for edge in _edges(hours, start, start + 7 * _DAY))


def _zone(hours: BusinessHours, now: datetime, zone: tzinfo | None) -> tzinfo:
    """Return the zone that counts, and refuse a moment that names no instant.

    Raises:
        ValueError: The moment is naive; the system's own zone must not decide.
    """
    if now.tzinfo is None:
        raise ValueError("The moment must be aware.")
    return zone if zone is not None else load_zone(hours.timezone)


def _is_open_at(hours: BusinessHours, wall: datetime, closed_dates: AbstractSet[date]) -> bool:
    """Return whether a wall-clock time is open; only its own fields count."""
    if wall.date() in closed_dates:
        return False
    if not hours.enabled:
        return True
    minute = wall.hour * 60 + wall.minute
    weekday = wall.weekday()
    for window in hours.schedule.get(DAYS[weekday], ()):
        if window.start_minute <= minute and (window.is_overnight or minute < window.end_minute):
            return True
    return any(
        window.is_overnight and minute < window.end_minute for window in hours.schedule.get(DAYS[weekday - 1], ())
    )


def _first(
    hours: BusinessHours,
    now: datetime,
    zone: tzinfo | None,
    limit_days: int,
    closed_dates: AbstractSet[date],
    *,
    wanted: bool,
) -> datetime | None:
    """Return the first moment from `now` on that is open, or closed, as wanted."""
    start = now.astimezone(UTC)
    end = start + timedelta(days=limit_days)
    return _first_between(hours, _zone(hours, now, zone), start, end, closed_dates, wanted=wanted)


def _first_between(
    hours: BusinessHours,
    local: tzinfo,
    start: datetime,
    end: datetime,
    closed_dates: AbstractSet[date],
    *,
    wanted: bool,
) -> datetime | None:
    """Return the first moment in [start, end), both in UTC, that is open, or closed, as wanted."""
    for begin, finish in _steady_stretches(local, start, end):
        offset = _offset(local, begin)
        wall, wall_end = (begin + offset).replace(tzinfo=None), (finish + offset).replace(tzinfo=None)
        for edge in _edges(hours, wall, wall_end):
            if _is_open_at(hours, edge, closed_dates) is wanted:
                return begin + (edge - wall)
    return None


def _steady_stretches(zone: tzinfo, start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Yield stretches from `start` to `end` in which the zone keeps its offset, each a day at the most.

    No zone changes twice within a day.
    """
    while start < end:
        finish = min(start + _DAY, end)
        change = _change_of_offset(zone, start, finish)
        if change is not None:
            yield start, change
            start = change
        yield start, finish
        start = finish


def _change_of_offset(zone: tzinfo, start: datetime, end: datetime) -> datetime | None:
    """Return the moment in (start, end) at which the zone takes the offset of `end`, to the second."""
    before, after = _offset(zone, start), _offset(zone, end)
    if before == after:
        return None
    # Clocks change at whole seconds.
    low, high = (start - _EPOCH) // _SECOND, -((_EPOCH - end) // _SECOND)
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(zone, _EPOCH + middle * _SECOND) == before:
            low = middle
        else:
            high = middle
    change = _EPOCH + high * _SECOND
    return change if change < end else None


def _offset(zone: tzinfo, moment: datetime) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta()


def _edges(hours: BusinessHours, start: datetime, end: datetime) -> Iterator[datetime]:
    """Yield the wall-clock times in [start, end) at which open and closed may change, the start first."""
    yield start
    midnight = datetime.combine(start.date(), datetime.min.time())
    while midnight < end:
        weekday = midnight.weekday()
        minutes = {0}
        for window in hours.schedule.get(DAYS[weekday], ()):
            minutes |= {window.start_minute} if window.is_overnight else {window.start_minute, window.end_minute}
        minutes |= {w.end_minute for w in hours.schedule.get(DAYS[weekday - 1], ()) if w.is_overnight}
        for minute in sorted(minutes - {MINUTES_A_DAY}):
            edge = midnight + timedelta(minutes=minute)
            if start < edge < end:
                yield edge
        midnight += _DAY


_NO_OPENING: Final = timedelta(days=1)
"""When hours have no opening within a year, look again a day later: somebody may change the clock's rules."""


@attrs.frozen(kw_only=True)
class OpeningState:
    """When a campaign may reach anybody: now until a moment, or not before a moment.

    Attributes:
        rule: What keeps it closed; None while it is open.
    """

    open: bool
    until: datetime | None
    reopens_at: datetime
    rule: TrailRule | None = None


def opening_state(campaign: Campaign, now: datetime) -> OpeningState:
    """Return whether a campaign is open now, and when that changes."""
    if campaign.business_hours is None and campaign.holidays is None:
        return OpeningState(open=True, until=None, reopens_at=now)
    hours = campaign.business_hours or BusinessHours(
        enabled=False, timezone="UTC", schedule={}, batch_concurrency=campaign.batch_concurrency
    )
    dates = closed_dates(campaign.holidays) if campaign.holidays else frozenset()
    opening = next_open(hours, now, closed_dates=dates)
    if opening is None or opening > now:
        rule = TrailRule.HOLIDAYS if is_open(hours, now) else TrailRule.BUSINESS_HOURS
        return OpeningState(open=False, until=None, reopens_at=opening or now + _NO_OPENING, rule=rule)
    return OpeningState(open=True, until=closes_at(hours, now, closed_dates=dates), reopens_at=now)


def earliest(*moments: datetime | None) -> datetime | None:
    """Return the earliest of the moments that there are."""
    return min((moment for moment in moments if moment is not None), default=None)


_NOT_ZONES: Final = frozenset({"localtime", "Factory", "posixrules"})
"""Files that some systems keep among the zones, and that name no place."""


@functools.cache
def zone_names() -> frozenset[str]:
    """Return the names of all zones, as spelled in the time zone database."""
    return frozenset(available_timezones()) - _NOT_ZONES


def is_zone(name: str) -> bool:
    """Return whether a zone exists.

    The name is looked up in a list and never reaches the file system, so that `../x` and, where file names
    ignore case, `europe/berlin` are no zones anywhere.
    """
    return name in zone_names()


@functools.lru_cache(maxsize=1024)
def load_zone(name: str) -> ZoneInfo:
    """Return a zone whose name has been checked by `is_zone`.

    Raises:
        zoneinfo.ZoneInfoNotFoundError: The time zone database of this machine has no such zone.
    """
    return ZoneInfo(name)
