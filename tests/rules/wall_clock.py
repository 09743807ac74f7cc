"""Opening hours the slow and obvious way: the week written out minute by minute, and the wall clock of a zone."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import Final
from zoneinfo import ZoneInfo

from hypothesis import strategies as st

from outreach.models.settings import DAYS, BusinessHours, TimeWindow

CHANGES: Final = [
    ("America/New_York", datetime(2026, 3, 8, 7, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 11, 1, 6, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 3, 29, 1, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 10, 25, 1, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 15, tzinfo=UTC)),  # half an hour
    ("Australia/Lord_Howe", datetime(2026, 10, 3, 15, 30, tzinfo=UTC)),
    ("Asia/Kathmandu", datetime(2026, 6, 1, tzinfo=UTC)),  # 5:45 ahead
    ("Pacific/Chatham", datetime(2026, 4, 4, 14, tzinfo=UTC)),  # 12:45 ahead, at 3:45
    ("Pacific/Chatham", datetime(2026, 9, 26, 14, tzinfo=UTC)),
    ("Antarctica/Troll", datetime(2026, 3, 29, 1, tzinfo=UTC)),  # two hours
    ("Antarctica/Troll", datetime(2026, 10, 25, 1, tzinfo=UTC)),
    ("America/Havana", datetime(2026, 3, 8, 5, tzinfo=UTC)),  # a day that has no midnight
    ("America/Havana", datetime(2026, 11, 1, 5, tzinfo=UTC)),  # and one that has two
    ("Pacific/Apia", datetime(2011, 12, 30, 10, tzinfo=UTC)),  # a date that was left out
    ("America/Sao_Paulo", datetime(2018, 11, 4, 3, tzinfo=UTC)),
    ("Africa/Casablanca", datetime(2026, 2, 15, 2, tzinfo=UTC)),  # for Ramadan
    ("Africa/Casablanca", datetime(2026, 3, 22, 2, tzinfo=UTC)),
    ("America/Santiago", datetime(2026, 4, 5, 3, tzinfo=UTC)),
]
"""Zones, each with a moment at which its clocks change (except Kathmandu's, which keeps its odd offset for good)."""

_TIMES = st.one_of(st.integers(0, 1439), st.integers(0, 47).map(lambda half_hours: half_hours * 30))
_WINDOWS = (
    st.tuples(_TIMES, st.one_of(_TIMES, st.just(1440)))
    .filter(lambda pair: pair[0] != pair[1])
    .map(lambda pair: TimeWindow(start_minute=pair[0], end_minute=pair[1]))
)
_NEVER_CLOSED: Final = st.sampled_from([((0, 1440),), ((0, 720), (720, 1440)), ((1320, 360), (300, 1380))]).map(
    lambda pairs: dict.fromkeys(DAYS, tuple(TimeWindow(start_minute=start, end_minute=end) for start, end in pairs))
)
SCHEDULES: Final = st.one_of(
    st.dictionaries(st.sampled_from(DAYS), st.lists(_WINDOWS, max_size=3).map(tuple)), _NEVER_CLOSED
)


def open_minutes(hours: BusinessHours) -> frozenset[tuple[int, int]]:
    """Return every (weekday, minute) of the week that is open: the rule, written out."""
    minutes: set[tuple[int, int]] = set()
    for weekday, day in enumerate(DAYS):
        for window in hours.schedule.get(day, ()):
            if window.start_minute < window.end_minute:
                minutes |= {(weekday, minute) for minute in range(window.start_minute, window.end_minute)}
            else:
                minutes |= {(weekday, minute) for minute in range(window.start_minute, 1440)}
                minutes |= {((weekday + 1) % 7, minute) for minute in range(window.end_minute)}
    return frozenset(minutes)


def slowly(hours: BusinessHours, moments: Iterable[datetime], closed_dates: frozenset[date]) -> list[bool]:
    """Return whether each moment is open, by looking it up in the written-out week."""
    minutes = open_minutes(hours)
    walls = (moment.astimezone(ZoneInfo(hours.timezone)) for moment in moments)
    return [
        wall.date() not in closed_dates
        and (not hours.enabled or (wall.weekday(), wall.hour * 60 + wall.minute) in minutes)
        for wall in walls
    ]
