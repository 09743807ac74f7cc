"""Times and days in each style of dates."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from outreach_server.console.clocks import Clocks, DateStyle

NOW = datetime(2026, 11, 28, 17, 30, tzinfo=UTC)
"""A Saturday; half past twelve in New York."""


@pytest.mark.parametrize(
    ("at", "day_first", "us", "iso"),
    [
        ((2026, 11, 28, 19, 5, 9), "14:05", "2:05 PM", "14:05"),
        ((2026, 11, 28, 17, 5, 9), "12:05", "12:05 PM", "12:05"),
        ((2026, 11, 28, 5, 5, 9), "00:05", "12:05 AM", "00:05"),
        ((2026, 11, 28, 4, 59, 9), "yesterday 23:59", "yesterday 11:59 PM", "yesterday 23:59"),
        ((2026, 11, 29, 14, 0, 9), "tomorrow 09:00", "tomorrow 9:00 AM", "tomorrow 09:00"),
        ((2026, 12, 4, 14, 0, 9), "Friday 09:00", "Friday 9:00 AM", "Friday 09:00"),
        ((2026, 12, 5, 14, 0, 9), "5 Dec 09:00", "Dec 5, 9:00 AM", "2026-12-05 09:00"),
        ((2026, 11, 26, 19, 5, 9), "26 Nov 14:05", "Nov 26, 2:05 PM", "2026-11-26 14:05"),
        ((2025, 11, 8, 19, 5, 9), "8 Nov 2025 14:05", "Nov 8, 2025, 2:05 PM", "2025-11-08 14:05"),
    ],
)
def test_a_moment_is_in_its_style(at: tuple[int, ...], day_first: str, us: str, iso: str) -> None:
    """By the clocks of the zone, with and without seconds."""
    moment = datetime(*at, tzinfo=UTC)  # type: ignore[misc,arg-type]
    for style, said in zip(DateStyle, (day_first, us, iso), strict=True):
        clocks = Clocks("America/New_York", style)
        assert clocks.moment(moment, NOW) == said
        assert clocks.moment(moment, NOW, seconds=True) == re.sub(r":\d\d", r"\g<0>:09", said)


def test_a_day_within_a_week_needs_no_year() -> None:
    """Also where the year ends meanwhile."""
    now = datetime(2026, 12, 29, 12, tzinfo=UTC)
    assert Clocks("UTC").moment(datetime(2027, 1, 1, 9, tzinfo=UTC), now) == "Friday 09:00"


@pytest.mark.parametrize(
    ("style", "weekday", "hours"),
    [
        (DateStyle.DAY_FIRST, "Saturday 28 November 2026", ["12", "00"]),
        (DateStyle.US, "Saturday, November 28, 2026", ["12 PM", "12 AM"]),
        (DateStyle.ISO, "Saturday 2026-11-28", ["12", "00"]),
    ],
)
def test_a_day_and_an_hour_are_in_their_style(style: DateStyle, weekday: str, hours: list[str]) -> None:
    """The day is that of the zone."""
    clocks = Clocks("America/New_York", style)
    assert clocks.weekday(datetime(2026, 11, 29, 4, tzinfo=UTC)) == weekday
    assert [style.hour(datetime(2026, 11, 28, hour, tzinfo=UTC)) for hour in (12, 0)] == hours


def test_a_zone_that_is_not_known_is_utc() -> None:
    """And is named so."""
    assert Clocks("Nowhere/Town").name == "UTC"
    assert Clocks("Nowhere/Town").local(NOW) == NOW.replace(tzinfo=UTC)
    assert Clocks("America/New_York").name == "New York time"
