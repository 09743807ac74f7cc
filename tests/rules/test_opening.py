"""Opening hours through the week, through the night, and through changes of the clocks."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import attrs
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from outreach.models.settings import DAYS, BusinessHours, TimeWindow
from outreach.rules.opening import closes_at, is_open, next_open
from tests.rules.wall_clock import CHANGES, SCHEDULES, slowly

_MINUTE = timedelta(minutes=1)
_NEW_YORK = "America/New_York"


def _minute(text: str) -> int:
    hour, minute = text.split(":")
    return int(hour) * 60 + int(minute)


def _hours(zone: str = "UTC", *, enabled: bool = True, **days: str) -> BusinessHours:
    """Return hours from `monday="09:00-12:00 13:00-17:00"`."""
    schedule = {
        day: tuple(
            TimeWindow(start_minute=_minute(text.split("-")[0]), end_minute=_minute(text.split("-")[1]))
            for text in windows.split()
        )
        for day, windows in days.items()
    }
    return BusinessHours(enabled=enabled, timezone=zone, schedule=schedule, batch_concurrency=10)


def _every_day(windows: str, zone: str = "UTC") -> BusinessHours:
    return attrs.evolve(_hours(zone), schedule=dict.fromkeys(DAYS, _hours(monday=windows).schedule["monday"]))


def _at(text: str, zone: str = "UTC") -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))


@pytest.mark.parametrize(("zone", "moment"), CHANGES)
def test_the_clocks_change_where_the_reference_says_so(zone: str, moment: datetime) -> None:
    """A property over changes of the clocks that are none would prove nothing."""
    before, after = (at.astimezone(ZoneInfo(zone)).utcoffset() for at in (moment - _MINUTE, moment))
    assert (before == after) is (zone == "Asia/Kathmandu")


@settings(max_examples=120)
@given(
    change=st.sampled_from(CHANGES),
    schedule=SCHEDULES,
    enabled=st.sampled_from([True, True, True, False]),
    before=st.integers(0, 3 * 1440),
    seconds=st.integers(0, 59),
    closed=st.sets(st.integers(-3, 3), max_size=2),
)
def test_open_and_closed_are_as_the_wall_clock_says_minute_by_minute(
    change: tuple[str, datetime],
    schedule: dict[str, tuple[TimeWindow, ...]],
    enabled: bool,
    before: int,
    seconds: int,
    closed: set[int],
) -> None:
    """Around every change of the clocks the next opening and closing are those of a search minute by minute."""
    zone, moment = change
    hours = BusinessHours(enabled=enabled, timezone=zone, schedule=schedule, batch_concurrency=10)
    dates = frozenset(moment.astimezone(ZoneInfo(zone)).date() + timedelta(days=days) for days in closed)
    start = moment - before * _MINUTE
    now = start + timedelta(seconds=seconds)
    limit_days = 2
    moments = [now, *(start + index * _MINUTE for index in range(1, limit_days * 1440 + 1))]
    moments = [each for each in moments if each < now + timedelta(days=limit_days)]
    expected = slowly(hours, moments, dates)

    assert [is_open(hours, each, closed_dates=dates) for each in moments[::17]] == expected[::17]
    first_open = next((each for each, is_it in zip(moments, expected, strict=True) if is_it), None)
    first_closed = next((each for each, is_it in zip(moments, expected, strict=True) if not is_it), None)
    assert next_open(hours, now, limit_days=limit_days, closed_dates=dates) == first_open
    assert closes_at(hours, now, limit_days=limit_days, closed_dates=dates) == first_closed


@given(schedule=SCHEDULES, change=st.sampled_from(CHANGES), minutes=st.integers(-5000, 5000))
@example(schedule={"sunday": (TimeWindow(start_minute=150, end_minute=151),)}, change=CHANGES[0], minutes=-60)
def test_the_next_opening_and_closing_are_edges(
    schedule: dict[str, tuple[TimeWindow, ...]], change: tuple[str, datetime], minutes: int
) -> None:
    """A moment before the next opening it is closed, and a moment before the closing it is open."""
    zone, moment = change
    now = moment + minutes * _MINUTE
    hours = BusinessHours(enabled=True, timezone=zone, schedule=schedule, batch_concurrency=10)
    opening = next_open(hours, now)
    assume(opening is not None)
    assert opening is not None
    instant = timedelta(microseconds=1)
    assert is_open(hours, opening)
    assert opening == now or not is_open(hours, opening - instant)
    closing = closes_at(hours, opening, limit_days=9)
    if closing is not None:
        assert not is_open(hours, closing)
        assert is_open(hours, closing - instant)


def _new_york(text: str) -> datetime:
    return _at(text, _NEW_YORK)


_EDGES = {
    "a window opens at its start and closes at its end": (
        (_hours(monday="09:00-17:00"), _at("2026-11-23T08:59:59.999999")),
        (_at("2026-11-23T09:00"), _at("2026-11-23T17:00")),
    ),
    "a day without windows is closed": (
        (_hours(monday="09:00-17:00"), _at("2026-11-23T17:00")),
        (_at("2026-11-30T09:00"), _at("2026-11-30T17:00")),
    ),
    "24:00 meets the next day": (
        (_hours(monday="00:00-24:00", tuesday="00:00-10:00"), _at("2026-11-23T12:00")),
        (_at("2026-11-23T12:00"), _at("2026-11-24T10:00")),
    ),
    "a window through the night belongs to the day on which it starts": (
        (_hours(monday="22:00-06:00"), _at("2026-11-23T05:00")),
        (_at("2026-11-23T22:00"), _at("2026-11-24T06:00")),
    ),
    "Sunday night runs into Monday": (
        (_hours(sunday="22:00-06:00"), _at("2026-11-23T01:00")),
        (_at("2026-11-23T01:00"), _at("2026-11-23T06:00")),
    ),
    "00:00 as an end is 24:00": (
        (_hours(monday="22:00-00:00"), _at("2026-11-23T22:00")),
        (_at("2026-11-23T22:00"), _at("2026-11-24T00:00")),
    ),
    "a window in a skipped hour does not open": (
        (_hours(_NEW_YORK, sunday="02:15-02:45"), _new_york("2026-03-08T00:00")),
        (_new_york("2026-03-15T02:15"), _new_york("2026-03-15T02:45")),
    ),
    "one that starts in a skipped hour opens when the clocks change": (
        (_hours(_NEW_YORK, sunday="02:30-05:00"), _new_york("2026-03-08T00:00")),
        (_new_york("2026-03-08T03:00"), _new_york("2026-03-08T05:00")),
    ),
    "one that ends in a skipped hour closes when 02:00 would have been": (
        (_hours(_NEW_YORK, sunday="01:00-02:30"), _new_york("2026-03-08T01:00")),
        (_new_york("2026-03-08T01:00"), _at("2026-03-08T07:00")),
    ),
    "a window in a repeated hour opens in summer time": (
        (_hours(_NEW_YORK, sunday="01:15-01:45"), _new_york("2026-11-01T00:00")),
        (_at("2026-11-01T05:15"), _at("2026-11-01T05:45")),
    ),
    "and again in winter time": (
        (_hours(_NEW_YORK, sunday="01:15-01:45"), _at("2026-11-01T05:45")),
        (_at("2026-11-01T06:15"), _at("2026-11-01T06:45")),
    ),
    "a window around a repeated hour is an hour longer": (
        (_hours(_NEW_YORK, sunday="00:00-05:00"), _new_york("2026-11-01T00:00")),
        (_at("2026-11-01T04:00"), _at("2026-11-01T10:00")),
    ),
    "round the clock never closes": (
        (_every_day("00:00-24:00", _NEW_YORK), _at("2026-11-23T03:00")),
        (_at("2026-11-23T03:00"), None),
    ),
}
"""By the rule: hours and a moment, and when they open next and close then."""


@pytest.mark.parametrize(("asked", "edges"), _EDGES.values(), ids=_EDGES)
def test_hours_open_and_close_at_their_edges(
    asked: tuple[BusinessHours, datetime], edges: tuple[datetime, datetime | None]
) -> None:
    """The reference that draws hours would not show that it reads them as people mean them."""
    opening = next_open(*asked)
    assert opening is not None
    assert (opening, closes_at(asked[0], opening)) == edges


def test_hours_that_are_not_enabled_are_always_open() -> None:
    """Only a closed date closes."""
    hours = _hours(enabled=False)
    now = _at("2026-11-23T03:00")
    holiday = frozenset({date(2026, 11, 24)})
    assert is_open(hours, now)
    assert next_open(hours, now) == now
    assert closes_at(hours, now) is None
    assert closes_at(hours, now, closed_dates=holiday) == _at("2026-11-24T00:00")
    assert next_open(hours, _at("2026-11-24T05:00"), closed_dates=holiday) == _at("2026-11-25T00:00")


def test_an_empty_schedule_never_opens() -> None:
    """There is nothing to wait for."""
    assert next_open(_hours(), _at("2026-11-23T03:00")) is None
    assert closes_at(_hours(), _at("2026-11-23T03:00")) == _at("2026-11-23T03:00")


class CountedZone(tzinfo):
    """A zone that counts how often its clock is looked at."""

    def __init__(self, name: str) -> None:
        self.looks = 0
        self._zone = ZoneInfo(name)

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        """Return how far ahead of UTC it is."""
        return self._zone.utcoffset(moment)

    def dst(self, moment: datetime | None) -> timedelta | None:
        """Return how much of that is summer time."""
        return self._zone.dst(moment)

    def tzname(self, moment: datetime | None) -> str | None:
        """Return its short name."""
        return self._zone.tzname(moment)

    def fromutc(self, moment: datetime) -> datetime:
        """Return what its clock shows, and count it."""
        self.looks += 1
        return self._zone.fromutc(moment.replace(tzinfo=self._zone)).replace(tzinfo=self)


_PAST = frozenset(date(2020, 1, 1) + timedelta(days=97 * index) for index in range(25))


@pytest.mark.parametrize(
    ("closed_dates", "closing"),
    [
        (frozenset(), None),
        (_PAST, None),
        (_PAST | {date(2027, 6, 1), date(9999, 12, 31)}, datetime(2027, 6, 1, 4, tzinfo=UTC)),
        (frozenset({date(2026, 11, 22), date(2026, 12, 25)}), datetime(2026, 12, 25, 5, tzinfo=UTC)),
        (frozenset({date(2028, 1, 1)}), None),
    ],
)
@pytest.mark.parametrize("windows", [None, "00:00-24:00", "00:00-12:00 12:00-24:00", "22:00-10:00 09:00-23:00"])
def test_hours_that_only_a_date_closes_are_not_searched_day_by_day(
    windows: str | None, closed_dates: frozenset[date], closing: datetime | None
) -> None:
    """Every wave asks, and the answer may be a year off: only the days around a closed date are looked at."""
    hours = _hours(enabled=False) if windows is None else _every_day(windows)
    zone = CountedZone(_NEW_YORK)
    now = _at("2026-11-23T15:00")
    assert next_open(hours, now, zone, closed_dates=closed_dates) == now
    assert closes_at(hours, now, zone, closed_dates=closed_dates) == closing
    assert 0 < zone.looks < 30


def test_a_closed_date_closes_its_day_and_no_other() -> None:
    """The night before ends at midnight; the night of the holiday goes on after it."""
    hours = _every_day("22:00-06:00")
    dates = frozenset({date(2026, 12, 25)})
    assert closes_at(hours, _at("2026-12-24T23:00"), closed_dates=dates) == _at("2026-12-25T00:00")
    assert not is_open(hours, _at("2026-12-25T23:00"), closed_dates=dates)
    assert next_open(hours, _at("2026-12-25T01:00"), closed_dates=dates) == _at("2026-12-26T00:00")


def test_a_closed_date_is_a_date_in_the_zone() -> None:
    """Christmas in New York begins five hours after Christmas in UTC."""
    hours = _every_day("00:00-24:00", _NEW_YORK)
    dates = frozenset({date(2026, 12, 25)})
    assert closes_at(hours, _at("2026-12-25T01:00"), closed_dates=dates) == _at("2026-12-25T05:00")


def test_another_zone_may_decide() -> None:
    """The recipient's wall clock instead of the campaign's."""
    hours = _every_day("09:00-17:00", _NEW_YORK)
    tokyo = ZoneInfo("Asia/Tokyo")
    now = _at("2026-11-23T00:00")
    assert not is_open(hours, now)
    assert is_open(hours, now, tokyo)
    assert next_open(hours, _at("2026-11-23T10:00"), tokyo) == _at("2026-11-24T00:00")
    assert closes_at(hours, now, tokyo) == _at("2026-11-23T08:00")


def test_hours_of_a_zone_that_is_not_known_here_are_closed() -> None:
    """A database may come from a machine that knows more zones; another zone still decides."""
    hours, now = _every_day("00:00-24:00", "Mars/Olympus"), _at("2026-07-01T12:00")
    assert not is_open(hours, now)
    assert next_open(hours, now) is None
    assert next_open(hours, now, ZoneInfo(_NEW_YORK)) == now


def test_the_search_ends_at_its_limit() -> None:
    """The limit itself is not looked at."""
    hours = _hours(monday="09:00-17:00")
    tuesday = _at("2026-11-24T09:00")
    assert next_open(hours, tuesday, limit_days=6) is None
    assert next_open(hours, tuesday, limit_days=7) == _at("2026-11-30T09:00")


def test_the_answer_is_in_utc() -> None:
    """Whatever zone the question came in."""
    opening = next_open(_every_day("09:00-17:00", _NEW_YORK), _at("2026-11-23T03:00", "Asia/Tokyo"))
    assert opening is not None
    assert opening.tzinfo is UTC


def test_a_naive_moment_is_refused() -> None:
    """The system's own zone must not decide."""
    naive = datetime(2026, 11, 23, 12)  # noqa: DTZ001 - the point of the test
    for ask in (is_open, next_open, closes_at):
        with pytest.raises(ValueError, match="aware"):
            ask(_every_day("09:00-17:00"), naive)
