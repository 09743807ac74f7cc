"""When a schedule runs: its days by its rule, and the moments of these days in its zone."""

from __future__ import annotations

from calendar import isleap, monthrange
from collections.abc import Collection, Iterator
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice
from typing import Final
from zoneinfo import ZoneInfo

from outreach.models.recurrence import Recurrence, read_recurrence
from outreach.models.schedule import HolidayPolicy, NewSchedule, PlannedRun, Schedule

HORIZON_YEARS: Final = 10
"""A schedule ends when its rule has no day in the next ten years."""

MAX_SHIFT_DAYS: Final = 31
"""How far a run moves from a holiday; without a free day within them it is left out."""


def runs_after(
    schedule: Schedule | NewSchedule, after: datetime, closed: Collection[date] = frozenset()
) -> Iterator[PlannedRun]:
    """Iterate over the runs of a schedule after a moment, in order, each moment once.

    Args:
        schedule: The schedule; only its plan counts, not its state.
        after: An aware time.
        closed: The holidays.
    """
    zone, (hour, minute) = ZoneInfo(schedule.zone), map(int, schedule.at.split(":"))
    begins = max(schedule.starts_on, after.astimezone(zone).date())
    last = date(begins.year + HORIZON_YEARS, 12, 31)
    if schedule.ends_on is not None:
        last = min(last, schedule.ends_on)
    excepted, known = frozenset(schedule.except_dates), after
    unwanted = excepted.union(closed)
    # A run that was planned for so many days before may have moved to a later day.
    first = after.astimezone(zone).date() - timedelta(days=MAX_SHIFT_DAYS + 1)
    for day in days_of(read_recurrence(schedule.rule), schedule.starts_on, first, last):
        if day in excepted:
            continue
        moved = open_day(day, schedule.holidays, unwanted)
        if moved is None or (schedule.ends_on is not None and moved > schedule.ends_on):
            continue
        at = wall_clock(datetime.combine(moved, time(hour, minute)), zone)
        # Two days may come to one moment: moved from a holiday, or where a zone has left out a day.
        if at > known:
            known = at
            yield PlannedRun(at=at, day=moved, moved_from=None if moved == day else day)


def open_day(day: date, policy: HolidayPolicy, closed: Collection[date]) -> date | None:
    """Return the day on which what is planned for a day takes place; None if it is left out."""
    if policy == "ignore" or day not in closed:
        return day
    if policy == "skip":
        return None
    days = (day + timedelta(days=further) for further in range(1, MAX_SHIFT_DAYS + 1))
    return next((one for one in days if one not in closed), None)


def wall_clock(local: datetime, zone: ZoneInfo) -> datetime:
    """Return the moment, in UTC, of a local time without an offset.

    A time that the clocks skip is as much later as they are put forward (02:30 becomes 03:30); of a time that they
    show twice it is the first.
    """
    return local.replace(tzinfo=zone, fold=0).astimezone(UTC)


def days_of(rule: Recurrence, starts_on: date, first: date, last: date) -> Iterator[date]:
    """Iterate over the days of a rule from a first to a last one, both included.

    Each day is looked at by itself, so that also a rule that never comes takes milliseconds: dateutil, which tests
    compare this with, looks for such a day until the year 9999, for a minute.

    Args:
        rule: The rule.
        starts_on: The day from which it counts.
        first: The first day that is wanted.
        last: The last one.
    """
    until = last if rule.until is None else min(last, rule.until)
    # A count counts from the beginning.
    begin = starts_on if rule.count is not None else max(starts_on, first)
    days = (begin + timedelta(days=number) for number in range((until - begin).days + 1))
    found = islice((day for day in days if is_day_of(rule, starts_on, day)), rule.count)
    return (day for day in found if day >= first)


def is_day_of(rule: Recurrence, starts_on: date, day: date) -> bool:
    """Return whether a rule without its count has a day, which is not before the day from which it counts."""
    if _periods_between(rule, starts_on, day) % rule.interval or (rule.months and day.month not in rule.months):
        return False
    if not (rule.month_days or rule.weekdays):
        return _is_like(rule, starts_on, day)
    length = monthrange(day.year, day.month)[1]
    if rule.month_days and not {day.day, day.day - length - 1} & set(rule.month_days):
        return False
    if not rule.weekdays:
        # A day of the month alone is one of each month, also in a rule for years.
        return True
    if rule.frequency == "YEARLY" and not rule.months:
        number, size = day.timetuple().tm_yday, 365 + isleap(day.year)
    else:
        number, size = day.day, length
    places = (None, (number - 1) // 7 + 1, -((size - number) // 7 + 1))
    return any((place, day.weekday()) in rule.weekdays for place in places)


def _periods_between(rule: Recurrence, starts_on: date, day: date) -> int:
    match rule.frequency:
        case "DAILY":
            return (day - starts_on).days
        case "WEEKLY":
            # Weeks begin on Monday.
            return (day.toordinal() - day.weekday() - starts_on.toordinal() + starts_on.weekday()) // 7
        case "MONTHLY":
            return (day.year - starts_on.year) * 12 + day.month - starts_on.month
        case "YEARLY":
            return day.year - starts_on.year


def _is_like(rule: Recurrence, starts_on: date, day: date) -> bool:
    """Return whether a rule without `BYDAY` and `BYMONTHDAY` has a day: the place of its first day in a period."""
    match rule.frequency:
        case "DAILY":
            return True
        case "WEEKLY":
            return day.weekday() == starts_on.weekday()
        case "MONTHLY":
            return day.day == starts_on.day
        case "YEARLY":
            return day.day == starts_on.day and (bool(rule.months) or day.month == starts_on.month)
