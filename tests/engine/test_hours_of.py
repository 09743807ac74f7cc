from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outreach.models.settings import BusinessHours, Holiday, HolidayCalendar, TimeWindow
from outreach.rules.opening import opening_state
from outreach.testing.builders import NOW, make_campaign
from tests.rules.wall_clock import CHANGES, SCHEDULES, slowly

MINUTE = timedelta(minutes=1)
LOOKED_AT = timedelta(days=2)


@settings(max_examples=80)
@given(
    change=st.sampled_from(CHANGES),
    schedule=SCHEDULES,
    enabled=st.sampled_from([True, True, False]),
    before=st.integers(0, 3 * 1440),
    seconds=st.integers(0, 59),
    holidays=st.lists(st.tuples(st.integers(-3, 3), st.booleans()), max_size=4),
)
def test_a_campaign_is_open_as_the_wall_clock_and_its_calendar_say_minute_by_minute(
    change: tuple[str, datetime],
    schedule: dict[str, tuple[TimeWindow, ...]],
    enabled: bool,
    before: int,
    seconds: int,
    holidays: list[tuple[int, bool]],
) -> None:
    """docs/rules.md#hours: windows, holidays that are observed and those that are not, over every change."""
    zone, moment = change
    hours = BusinessHours(enabled=enabled, timezone=zone, schedule=schedule, batch_concurrency=10)
    day = moment.astimezone(ZoneInfo(zone)).date()
    calendar = HolidayCalendar(
        country=None,
        holidays=tuple(
            Holiday(date=day + timedelta(days=offset), name="", enabled=observed) for offset, observed in holidays
        ),
    )
    closed = frozenset(one.date for one in calendar.holidays if one.enabled)
    start = moment - before * MINUTE
    now = start + timedelta(seconds=seconds)
    moments = [now, *(start + index * MINUTE for index in range(1, LOOKED_AT // MINUTE))]
    moments = [each for each in moments if each >= now]
    expected = slowly(hours, moments, closed)

    found = opening_state(make_campaign(business_hours=hours, holidays=calendar), now)
    assert found.open is expected[0]
    change_at = next((each for each, is_it in zip(moments, expected, strict=True) if is_it is not found.open), None)
    told = found.until if found.open else found.reopens_at
    if change_at is not None:
        assert told == change_at
    else:
        assert told is None or told > moments[-1] or not found.open


@pytest.mark.parametrize("calendar", [None, HolidayCalendar(country=None, holidays=())])
def test_a_campaign_without_hours_is_always_open(calendar: HolidayCalendar | None) -> None:
    """There is no end of which a request would have to be told."""
    found = opening_state(make_campaign(business_hours=None, holidays=calendar), NOW)
    assert (found.open, found.until) == (True, None)
