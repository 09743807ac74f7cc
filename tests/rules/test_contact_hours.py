from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outreach.models.settings import DAYS, BusinessHours, TimeWindow
from outreach.rules.contact_hours import (
    EIGHT_TO_21,
    SEARCH_WINDOW,
    earliest_closing,
    next_common_open,
    next_open_for_both,
    time_zones_of_phone,
)

MINUTE = timedelta(minutes=1)

NEW_YORK = "+12125552368"
JUNEAU = "+19072742525"
HONOLULU = "+18089231811"
DELHI = "+919876543210"
TOLL_FREE = "+18002255288"

CHANGES = (
    datetime(2026, 3, 8, 10, tzinfo=UTC),  # forward in the United States
    datetime(2026, 11, 1, 9, tzinfo=UTC),  # back
    datetime(2026, 3, 29, 1, tzinfo=UTC),  # forward in Europe
    datetime(2026, 4, 4, 15, tzinfo=UTC),  # back on Lord Howe Island, by half an hour
    datetime(2026, 9, 26, 14, tzinfo=UTC),  # forward on the Chatham Islands, at 2:45
    datetime(2026, 3, 8, 5, tzinfo=UTC),  # forward in Havana, at midnight
    datetime(2026, 7, 15, 12, tzinfo=UTC),  # nowhere
)
zones = st.sampled_from(
    [
        *(time_zones_of_phone(phone) for phone in (NEW_YORK, JUNEAU, HONOLULU, DELHI, TOLL_FREE)),
        ("Europe/Berlin",),
        ("Australia/Lord_Howe",),
        ("Pacific/Chatham",),
        ("America/Havana", "Antarctica/Troll"),
        ("Asia/Kathmandu", "Africa/Casablanca"),
        ("America/Adak", "America/Anchorage"),
        ("America/Los_Angeles", "America/New_York"),
        ("Europe/London", "Pacific/Auckland"),
        ("Asia/Kolkata", "Pacific/Kiritimati", "Pacific/Pago_Pago"),
    ]
)
moments = st.builds(
    lambda change, minutes: change + timedelta(minutes=minutes), st.sampled_from(CHANGES), st.integers(-2000, 2000)
)


def all_open(zones: tuple[str, ...], moment: datetime) -> bool:
    """Tell the slow and obvious way: every wall clock shows between 8 in the morning and 9 in the evening."""
    return all(8 <= moment.astimezone(ZoneInfo(zone)).hour < 21 for zone in zones)


@settings(max_examples=30)
@given(zones, moments)
def test_the_opening_is_the_first_minute_at_which_every_clock_is_open(zones: tuple[str, ...], now: datetime) -> None:
    """Minute by minute over changes of the clocks, for one zone and for many."""
    found = next_common_open(zones, (EIGHT_TO_21,), now)
    horizon = min(found, now + timedelta(days=2)) if found is not None else now + timedelta(days=2)
    moment = now
    while moment < horizon:
        assert not all_open(zones, moment)
        moment += MINUTE
    assert found is None or all_open(zones, found)


@settings(max_examples=30)
@given(zones, moments, st.integers(0, 20), st.integers(1, 3), st.booleans())
def test_a_campaign_and_a_number_open_at_the_first_minute_at_which_both_are_open(
    zones: tuple[str, ...], now: datetime, first_hour: int, length: int, holiday: bool
) -> None:
    """Minute by minute: every wall clock of the number, and that of the campaign on a day that is no holiday."""
    window = TimeWindow(start_minute=first_hour * 60, end_minute=(first_hour + length) * 60)
    hours = BusinessHours(
        enabled=True, timezone="America/New_York", schedule=dict.fromkeys(DAYS, (window,)), batch_concurrency=1
    )
    closed = {now.astimezone(ZoneInfo("America/New_York")).date()} if holiday else set[date]()
    found = next_open_for_both(zones, (EIGHT_TO_21,), now, hours, closed)

    def both(moment: datetime) -> bool:
        wall = moment.astimezone(ZoneInfo("America/New_York"))
        ours = wall.date() not in closed and first_hour <= wall.hour < first_hour + length
        return ours and all_open(zones, moment)

    horizon = min(found or datetime.max.replace(tzinfo=UTC), now + timedelta(days=2))
    moment = now
    while moment < horizon:
        assert not both(moment)
        moment += MINUTE
    assert found is None or both(found)


@settings(max_examples=30)
@given(zones, moments)
def test_the_closing_is_the_first_minute_at_which_a_clock_is_closed(zones: tuple[str, ...], now: datetime) -> None:
    """From an open moment on; a moment that is closed closes at once."""
    closing = earliest_closing(zones, (EIGHT_TO_21,), now)
    assert closing is not None
    moment = now
    while moment < closing:
        assert all_open(zones, moment)
        moment += MINUTE
    assert not all_open(zones, closing)


@pytest.mark.parametrize(
    ("phone", "opening"),
    [
        # Asked an hour into 2026-03-07 in New York, the day before the clocks change there.
        (NEW_YORK, datetime(2026, 3, 7, 13, tzinfo=UTC)),
        (JUNEAU, datetime(2026, 3, 7, 17, tzinfo=UTC)),
        (HONOLULU, datetime(2026, 3, 7, 6, tzinfo=UTC)),
        (DELHI, datetime(2026, 3, 7, 6, tzinfo=UTC)),
        # Guam opens at 22:00 UTC, when Newfoundland has closed at 00:30 UTC and not yet again.
        (TOLL_FREE, datetime(2026, 3, 7, 22, tzinfo=UTC)),
    ],
)
def test_a_number_opens_by_its_own_clocks(phone: str, opening: datetime) -> None:
    """Local eight o'clock, wherever that is: in Hawaii and India it is day when it is night in New York."""
    assert next_common_open(time_zones_of_phone(phone), (EIGHT_TO_21,), datetime(2026, 3, 7, 6, tzinfo=UTC)) == opening


def test_the_clocks_change_the_opening() -> None:
    """Eight in the morning comes an hour earlier by UTC from the day on which the clocks go forward."""
    night = datetime(2026, 3, 8, 5, tzinfo=UTC)
    assert next_common_open(time_zones_of_phone(NEW_YORK), (EIGHT_TO_21,), night) == datetime(
        2026, 3, 8, 12, tzinfo=UTC
    )


def test_nine_in_the_evening_is_closed() -> None:
    """The window is half-open: 20:59:59.999999 is in, 21:00 is not, 8:00 is."""
    zone = time_zones_of_phone(NEW_YORK)
    evening = datetime(2026, 7, 2, 1, tzinfo=UTC)
    just_before = evening - timedelta(microseconds=1)
    assert next_common_open(zone, (EIGHT_TO_21,), just_before) == just_before
    assert earliest_closing(zone, (EIGHT_TO_21,), just_before) == evening
    assert next_common_open(zone, (EIGHT_TO_21,), evening) == evening + timedelta(hours=11)


@pytest.mark.parametrize("phone", ["+999123456", "+88213123456", "", "nonsense", "+1"])
def test_a_number_of_nowhere_has_no_zone_and_never_opens(phone: str) -> None:
    """Field, test 9: what nobody knows is not guessed."""
    assert time_zones_of_phone(phone) == ()
    assert next_common_open((), (EIGHT_TO_21,), CHANGES[0]) is None


def test_zones_without_a_common_hour_never_open() -> None:
    """Clocks that are 13 hours or more apart in every direction share no window; the search ends."""
    apart = ("America/New_York", "Asia/Tokyo", "Europe/London", "Pacific/Honolulu")
    assert next_common_open(apart, (EIGHT_TO_21,), CHANGES[-1]) is None
    assert timedelta(days=7) == SEARCH_WINDOW


def test_a_toll_free_number_may_be_anywhere() -> None:
    """Every zone of its country counts, from Guam to Newfoundland."""
    assert {"America/New_York", "America/St_Johns", "Pacific/Guam", "Pacific/Honolulu"} <= set(
        time_zones_of_phone(TOLL_FREE)
    )
