"""When business hours are open, by the local wall clock.

A time is open if its local time lies in a window of its weekday, or in the part of the previous day's overnight window
that runs into it, and its local date is not closed. An hour that the clocks repeat therefore counts twice, one that
they skip does not count, and a closed date closes its whole day and nothing of the next.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

import attrs

from outreach.core.clock import is_zone
from outreach.models.campaign import Campaign
from outreach.models.settings import DAYS, MINUTES_A_DAY, BusinessHours
from outreach.models.states import TrailRule
from outreach.rules.holidays import closed_dates

DEFAULT_LIMIT_DAYS: Final = 366

_DAY: Final = timedelta(days=1)
_SECOND: Final = timedelta(seconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NO_DATES: Final[frozenset[date]] = frozenset()
_ANY_DAY: Final = date(2024, 1, 1)


def is_open(
    hours: BusinessHours, now: datetime, zone: tzinfo | None = None, *, closed_dates: AbstractSet[date] = _NO_DATES
) -> bool:
    """Return whether a time is open; none is if this machine does not know the zone.

    Args:
        hours: The hours; if they are not enabled, only closed dates close.
        now: The time, aware.
        zone: The time zone; None for that of the hours.
        closed_dates: Closed dates in that zone.
    """
    return _is_in_known_zone(hours, zone) and _is_open_at(hours, now.astimezone(_zone(hours, now, zone)), closed_dates)


def next_open(
    hours: BusinessHours,
    now: datetime,
    zone: tzinfo | None = None,
    *,
    limit_days: int = DEFAULT_LIMIT_DAYS,
    closed_dates: AbstractSet[date] = _NO_DATES,
) -> datetime | None:
    """Return the first open time from `now` on, in UTC, or None within `limit_days`; arguments as in `is_open`."""
    if hours.enabled and not any(hours.schedule.values()):
        return None
    if not _is_in_known_zone(hours, zone):
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
    """Return the first closed time from `now` on, in UTC, or None within `limit_days`; arguments as in `is_open`."""
    if not _is_open_all_week(hours):
        return _first(hours, now, zone, limit_days, closed_dates, wanted=False)
    local = _zone(hours, now, zone)
    start, today = now.astimezone(UTC), now.astimezone(local).date()
    end = start + timedelta(days=limit_days)
    # Only closed dates can close, and no zone is a day or more from UTC. Past dates, the bulk of an old calendar, are
    # skipped.
    for day in sorted(day for day in closed_dates if today - _DAY <= day <= end.date() + _DAY):
        midnight = datetime.combine(day, datetime.min.time(), UTC)
        begin, finish = max(start, midnight - _DAY), min(end, midnight + 2 * _DAY)
        closing = _first_between(hours, local, begin, finish, closed_dates, wanted=False)
        if closing is not None:
            return closing
    return None


def _is_open_all_week(hours: BusinessHours) -> bool:
    """Return whether only closed dates ever close these hours."""
    if not hours.enabled:
        return True
    start = datetime.combine(_ANY_DAY, datetime.min.time())
    return all(_is_open_at(hours, edge, _NO_DATES) for edge in _change_points(hours, start, start + 7 * _DAY))


def _is_in_known_zone(hours: BusinessHours, zone: tzinfo | None) -> bool:
    """Return whether hours can be computed here: another machine may have stored them, with newer time zone rules."""
    return zone is not None or is_zone(hours.timezone)


def _zone(hours: BusinessHours, now: datetime, zone: tzinfo | None) -> tzinfo:
    """Return the zone that counts, or raise `ValueError` for a naive time."""
    if now.tzinfo is None:
        raise ValueError("The moment must be aware.")
    return zone if zone is not None else load_zone(hours.timezone)


def _is_open_at(hours: BusinessHours, wall: datetime, closed_dates: AbstractSet[date]) -> bool:
    """Return whether a wall-clock time is open; its zone does not matter."""
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
    """Return the first open, or closed, time from `now` on."""
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
    """Return the first open, or closed, time in [start, end), both in UTC."""
    for begin, finish in _steady_stretches(local, start, end):
        offset = _offset(local, begin)
        wall, wall_end = (begin + offset).replace(tzinfo=None), (finish + offset).replace(tzinfo=None)
        for edge in _change_points(hours, wall, wall_end):
            if _is_open_at(hours, edge, closed_dates) is wanted:
                return begin + (edge - wall)
    return None


def _steady_stretches(zone: tzinfo, start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Yield stretches of at most a day in which the zone keeps its offset; no zone changes twice within a day."""
    while start < end:
        finish = min(start + _DAY, end)
        change = _change_of_offset(zone, start, finish)
        if change is not None:
            yield start, change
            start = change
        yield start, finish
        start = finish


def _change_of_offset(zone: tzinfo, start: datetime, end: datetime) -> datetime | None:
    """Return the time in (start, end) at which the zone changes to the offset of `end`, to the second."""
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


def _change_points(hours: BusinessHours, start: datetime, end: datetime) -> Iterator[datetime]:
    """Yield the wall-clock times in [start, end) at which opening may change, the start first."""
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
"""Hours without an opening within a year are checked again after a day, because time zone rules may change."""


@attrs.frozen(kw_only=True)
class OpeningState:
    """Whether a campaign is open, and when that changes.

    Attributes:
        open: Whether it is open now.
        until: When it closes; None for never, or if it is closed.
        reopens_at: When it opens next; now if it is open.
        rule: The rule that closes it; None while it is open.
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
    """Return the earliest of the given times; None if all are None."""
    return min((moment for moment in moments if moment is not None), default=None)


def local_text(moment: datetime, zone: str) -> str:
    """Return a time for people by the clocks of a zone, which is named; by UTC where this machine lacks it."""
    zone = zone if is_zone(zone) else "UTC"
    return f"{moment.astimezone(load_zone(zone)):%Y-%m-%d %H:%M} {zone}"


@functools.lru_cache(maxsize=1024)
def load_zone(name: str) -> ZoneInfo:
    """Return a time zone checked by `is_zone`; `ZoneInfoNotFoundError` if this machine's database lacks it."""
    return ZoneInfo(name)
