"""When schedules run: their rules, days and moments, against a calendar that goes through every day."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from importlib import import_module
from itertools import islice, takewhile
from time import perf_counter
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from outreach import InvalidRequest
from outreach.core.clock import zone_names
from outreach.models import NewSchedule
from outreach.models.fields import Refused
from outreach.models.recurrence import read_recurrence
from outreach.rules.recurrence import days_of, is_day_of, runs_after, wall_clock

FIRST, LAST = date(2020, 1, 1), date(2029, 12, 31)

RULES = (
    "FREQ=DAILY",
    "FREQ=DAILY;INTERVAL=3",
    "FREQ=DAILY;BYMONTH=2,12;BYDAY=SA",
    "FREQ=WEEKLY",
    "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR",
    "FREQ=WEEKLY;BYDAY=SU;COUNT=100",
    "FREQ=MONTHLY",
    "FREQ=MONTHLY;BYMONTHDAY=31",
    "FREQ=MONTHLY;BYMONTHDAY=-1",
    "FREQ=MONTHLY;INTERVAL=2;BYDAY=1MO,-1FR",
    "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13",
    "FREQ=YEARLY",
    "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29",
    "FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3,10",
    "FREQ=YEARLY;BYDAY=20MO",
    "FREQ=DAILY;UNTIL=20230331",
)


def new_schedule(rule: str = "FREQ=DAILY", **fields: object) -> NewSchedule:
    """Return a schedule."""
    given = {"zone": "America/New_York", "starts_on": FIRST, "at": "09:00", "template_id": "t", "name": "n", **fields}
    return NewSchedule(rule=rule, **given)  # type: ignore[arg-type]


def days_by_dateutil(rule: str, starts_on: date) -> list[date]:
    """Return the days of a rule in ten years, as another library has them."""
    rrule: Any = import_module("dateutil.rrule")
    found = rrule.rrulestr(rule, dtstart=datetime.combine(starts_on, time()))
    return [one.date() for one in takewhile(lambda one: one.date() <= LAST, found)]


def days_by_calendar(rule: str) -> list[date]:
    """Return the days of a rule in ten years, by trying each day."""
    read = read_recurrence(rule)
    days = (FIRST + timedelta(days=number) for number in range((LAST - FIRST).days + 1))
    wanted = (day for day in days if is_day_of(read, FIRST, day) and not (read.until and day > read.until))
    return list(islice(wanted, read.count))


def moment_of(day: date, at: time, zone: ZoneInfo) -> datetime:
    """Return the first moment at which a wall clock has shown at least a time of a day, minute by minute.

    A time that the clocks skip is as much later as they skip.
    """
    local = datetime.combine(day, at)
    guess = local.replace(tzinfo=UTC) - timedelta(hours=26)
    offsets = sorted({(guess + timedelta(hours=hours)).astimezone(zone).utcoffset() for hours in range(0, 54, 13)})  # type: ignore[type-var]
    shown = [
        moment
        for offset in offsets
        if (moment := (local - offset).replace(tzinfo=UTC)).astimezone(zone).replace(tzinfo=None) == local  # type: ignore[operator]
    ]
    if shown:
        return min(shown)
    # The offset before the gap shows a time behind it.
    behind = [(local - offset).replace(tzinfo=UTC) for offset in offsets]  # type: ignore[operator]
    return next(one for one in sorted(behind) if one.astimezone(zone).replace(tzinfo=None) > local)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("starts_on", [date(2020, 1, 1), date(2020, 2, 29), date(2021, 8, 31)])
def test_days_are_those_that_dateutil_has(rule: str, starts_on: date) -> None:
    """From the first day on, or from a later one."""
    found = list(days_of(read_recurrence(rule), starts_on, starts_on, LAST))
    assert found == days_by_dateutil(rule, starts_on)
    later = date(2023, 3, 1)
    assert list(days_of(read_recurrence(rule), starts_on, later, LAST)) == [day for day in found if day >= later]


def zones_to_try(every: bool) -> Sequence[str]:
    """Return all zones, or a draw that has the odd ones."""
    known = sorted(zone_names())
    odd = ["Australia/Lord_Howe", "America/New_York", "Pacific/Apia", "Africa/Casablanca", "America/Nuuk"]
    return known if every else [*odd, *random.Random(7).sample(known, 12)]


def check_zones(zones: Sequence[str], rules: Sequence[str]) -> None:
    """Compare the runs of ten years in some zones with those of a calendar."""
    days = {rule: days_by_calendar(rule) for rule in rules}
    for index, name in enumerate(zones):
        rule, at = rules[index % len(rules)], time(*((2, 30), (0, 0), (9, 15), (23, 59))[index % 4])
        zone = ZoneInfo(name)
        expected = sorted({moment_of(day, at, zone) for day in days[rule]})
        schedule = new_schedule(rule, zone=name, at=at.strftime("%H:%M"), ends_on=LAST)
        found = [one.at for one in runs_after(schedule, datetime(2019, 1, 1, tzinfo=UTC))]
        assert found == expected, (name, rule, at)


def test_runs_of_ten_years_follow_the_wall_clocks_of_a_draw_of_zones() -> None:
    """Each time of the day in turn."""
    check_zones(zones_to_try(every=False), ("FREQ=DAILY", "FREQ=WEEKLY;BYDAY=SU"))


@pytest.mark.nightly("some 600 zones, each over ten years")
@pytest.mark.parametrize("rule", RULES)
def test_runs_of_ten_years_follow_the_wall_clocks_of_all_zones(rule: str) -> None:
    """The same for each rule."""
    check_zones(zones_to_try(every=True), (rule,))


def first_run(schedule: NewSchedule, after: datetime, closed: frozenset[date] = frozenset()) -> datetime:
    """Return the time of the first run after a moment."""
    return next(runs_after(schedule, after, closed)).at


def test_a_time_that_the_clocks_skip_is_as_much_later_as_they_skip() -> None:
    """In spring, 02:30 is 03:30."""
    schedule = new_schedule(at="02:30")
    assert first_run(schedule, datetime(2026, 3, 8, tzinfo=UTC) + timedelta(hours=5)) == datetime(
        2026, 3, 8, 7, 30, tzinfo=UTC
    )


def test_a_time_that_the_clocks_show_twice_is_the_first_and_only_one() -> None:
    """In autumn, 01:30 comes once."""
    schedule = new_schedule(at="01:30")
    found = list(islice(runs_after(schedule, datetime(2026, 11, 1, tzinfo=UTC)), 2))
    assert [one.at for one in found] == [
        datetime(2026, 11, 1, 5, 30, tzinfo=UTC),
        datetime(2026, 11, 2, 6, 30, tzinfo=UTC),
    ]


def test_a_day_that_a_zone_left_out_has_no_run_of_its_own() -> None:
    """Both days come to one moment, which has one run."""
    # Where the clocks skip a whole day, its run would be that of the next day.
    apia, seen = ZoneInfo("Pacific/Apia"), datetime(2011, 12, 30, 12)  # noqa: DTZ001 - a wall clock's time
    assert wall_clock(seen, apia) == wall_clock(seen + timedelta(days=1), apia)


def test_only_runs_after_a_moment_are_returned() -> None:
    """Never that at the moment itself."""
    schedule = new_schedule(zone="UTC")
    nine = datetime(2026, 5, 1, 9, tzinfo=UTC)
    assert first_run(schedule, nine - timedelta(seconds=1)) == nine
    assert first_run(schedule, nine) == nine + timedelta(days=1)


def test_exceptions_and_the_end_leave_days_out() -> None:
    """The last day still counts."""
    schedule = new_schedule(zone="UTC", except_dates=[date(2026, 5, 2)], ends_on=date(2026, 5, 3))
    found = runs_after(schedule, datetime(2026, 5, 1, tzinfo=UTC))
    assert [one.day.day for one in found] == [1, 3]


@pytest.mark.parametrize(
    ("policy", "days"), [("skip", [23, 27, 28]), ("next_day", [23, 26, 27, 28]), ("ignore", [23, 24, 25, 26, 27, 28])]
)
def test_runs_on_holidays_follow_the_policy(policy: str, days: list[int]) -> None:
    """One that moves to a day with a run of its own is that run."""
    closed = frozenset(date(2026, 12, number) for number in (24, 25, 26))
    if policy == "next_day":
        closed -= {date(2026, 12, 26)}
    schedule = new_schedule(zone="UTC", holidays=policy, ends_on=date(2026, 12, 28))
    found = list(runs_after(schedule, datetime(2026, 12, 23, tzinfo=UTC), closed))
    assert [one.day.day for one in found] == days
    if policy == "next_day":
        assert [one.moved_from for one in found if one.moved_from] == [date(2026, 12, 24)]


@pytest.mark.parametrize(("ends_on", "days"), [(date(2026, 12, 27), [23, 27]), (date(2026, 12, 26), [23, 26])])
def test_no_run_moves_to_an_exception_or_past_the_end(ends_on: date, days: list[int]) -> None:
    """The days without a run, and the last day, are those on which it takes place."""
    closed = frozenset({date(2026, 12, 24), date(2026, 12, 25)})
    excepted = [date(2026, 12, 26)] if 27 in days else []
    schedule = new_schedule(
        zone="UTC", rule="FREQ=DAILY;BYMONTHDAY=23,24", holidays="next_day", except_dates=excepted, ends_on=ends_on
    )
    begin = datetime(2026, 12, 1, tzinfo=UTC)
    assert [one.day.day for one in runs_after(schedule, begin, closed)] == days
    late = new_schedule(zone="UTC", rule="FREQ=DAILY;BYMONTHDAY=25", holidays="next_day", ends_on=date(2026, 12, 25))
    assert list(runs_after(late, begin, closed)) == []


def test_a_run_that_finds_no_open_day_within_a_month_is_left_out() -> None:
    """The one of the next year is not."""
    closed = frozenset(date(2026, 1, 1) + timedelta(days=number) for number in range(90))
    schedule = new_schedule("FREQ=YEARLY", zone="UTC", holidays="next_day", starts_on=date(2026, 1, 5))
    assert first_run(schedule, datetime(2026, 1, 1, tzinfo=UTC), closed).year == 2027


@pytest.mark.parametrize(
    "rule", ["FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", "FREQ=DAILY;INTERVAL=1000;BYMONTH=4;BYMONTHDAY=31"]
)
def test_a_rule_that_never_comes_ends_soon(rule: str) -> None:
    """No day has it, and nobody waits for it."""
    begin = perf_counter()
    assert not list(runs_after(new_schedule(rule), datetime(2026, 1, 1, tzinfo=UTC)))
    assert perf_counter() - begin < 5


@pytest.mark.parametrize(
    "rule",
    [
        "",
        "FREQ=HOURLY",
        "FREQ=DAILY;BYHOUR=3",
        "FREQ=DAILY;FREQ=DAILY",
        "INTERVAL=2",
        "FREQ=DAILY;INTERVAL=0",
        "FREQ=DAILY;INTERVAL=1001",
        "FREQ=DAILY;COUNT=2;UNTIL=20270101",
        "FREQ=DAILY;UNTIL=20270230",
        "FREQ=DAILY;UNTIL=20270101T090000Z",
        "FREQ=WEEKLY;BYDAY=1MO",
        "FREQ=WEEKLY;BYMONTHDAY=3",
        "FREQ=MONTHLY;BYDAY=6MO",
        "FREQ=MONTHLY;BYDAY=0MO",
        "FREQ=YEARLY;BYMONTH=3;BYDAY=20MO",
        "FREQ=MONTHLY;BYMONTHDAY=32",
        "FREQ=MONTHLY;BYMONTHDAY=0",
        "FREQ=MONTHLY;BYMONTH=-1",
        "FREQ=MONTHLY;BYDAY=XX",
        "FREQ=DAILY;X",
        "FREQ=DAILY;BYDAY=" + "MO," * 200 + "MO",
    ],
)
def test_rules_outside_the_subset_are_refused(rule: str) -> None:
    """By the reader and by the model."""
    with pytest.raises(Refused):
        read_recurrence(rule)
    with pytest.raises(InvalidRequest, match="rule"):
        new_schedule(rule)


def test_a_rule_is_read_in_any_case_and_with_its_name() -> None:
    """As calendars write it."""
    assert new_schedule(" rrule:freq=weekly;byday=mo; ").rule == "FREQ=WEEKLY;BYDAY=MO;"


@pytest.mark.parametrize(
    "fields",
    [
        {"zone": "Mars/Base"},
        {"at": "24:00"},
        {"at": "9:00"},
        {"starts_on": datetime(2026, 1, 1)},  # noqa: DTZ001 - what is refused
        {"starts_on": date(2019, 1, 1)},
        {"ends_on": date(2019, 12, 31)},
        {"ends_on": date(2020, 1, 1), "starts_on": date(2020, 1, 2)},
        {"holidays": "maybe"},
        {"late_hours": 0},
    ],
)
def test_schedules_that_are_wrong_are_refused(fields: dict[str, Any]) -> None:
    """Each field by itself."""
    with pytest.raises(InvalidRequest):
        new_schedule(**fields)
