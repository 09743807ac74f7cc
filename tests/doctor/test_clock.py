"""The clock against the `Date` of answers, which has whole seconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import httpx
import pytest

from outreach.insight.diagnosis.clock import ClockSample, DateWatch, ahead_of, of_clock
from outreach.testing.clock import ManualClock

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)


def seconds(count: float) -> timedelta:
    """Return a time."""
    return timedelta(seconds=count)


@pytest.mark.parametrize(
    ("sent", "received", "ahead"),
    [
        (0.0, 0.5, 0.0),
        (0.9, 3.0, 0.0),  # written within the second after the date
        (-4.0, 0.0, 0.0),  # a slow answer says nothing
        (8.0, 9.0, 7.0),
        (-9.0, -8.0, -8.0),
    ],
)
def test_a_clock_is_wrong_by_what_no_delay_explains(sent: float, received: float, ahead: float) -> None:
    """The date was written between the two moments."""
    assert ahead_of(NOON, sent=NOON + seconds(sent), received=NOON + seconds(received)) == seconds(ahead)


@pytest.mark.parametrize(
    ("offsets", "severity"),
    [
        ([], None),
        ([0.0, 90.0], None),  # one provider's clock is wrong
        ([5.0, -5.0], None),
        ([6.0, 7.0], "warning"),
        ([-299.0], "warning"),
        ([-300.0], "critical"),
    ],
)
def test_the_nearest_provider_counts(offsets: list[float], severity: str | None) -> None:
    """A few seconds are nothing; minutes are refused callbacks."""
    found = of_clock([ClockSample("api.example.com", seconds(offset)) for offset in offsets])
    assert [one.severity for one in found] == ([] if severity is None else [severity])


@pytest.mark.parametrize(
    ("headers", "samples"),
    [
        ({"date": "Wed, 18 Nov 2026 12:00:00 GMT"}, 1),
        ({"date": "Wed, 18 Nov 2026 11:00:00 GMT", "age": "3600"}, 0),
        ({"date": "yesterday"}, 0),
        ({}, 0),
    ],
)
def test_only_a_date_of_now_counts(headers: dict[str, str], samples: int) -> None:
    """What comes from a cache was written earlier."""
    watch = DateWatch(ManualClock(NOON))
    request = httpx.Request("GET", "https://api.example.com/")
    watch(request, None)
    watch(request, httpx.Response(200, headers=headers, request=request))
    assert watch.samples == [ClockSample("api.example.com", seconds(0))] * samples
