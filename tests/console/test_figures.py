"""The figures of a campaign, before a newer forecast has been worked out."""

from __future__ import annotations

from datetime import timedelta

import pytest

from outreach.models.forecast import ForecastHour
from outreach.testing.builders import NOW, make_kept_forecast
from outreach_server.console.figures import what_is_left

HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("minutes", "left"),
    [(50, [40, 60, 20]), (55, [20, 60, 20]), (60, [60, 20]), (90, [30, 20]), (125, [10]), (130, [])],
)
def test_what_is_left_of_a_forecast_that_begins_and_ends_within_an_hour(minutes: int, left: list[int]) -> None:
    """Its requests are between its beginning, at 50 minutes, and its end, at 130."""
    hours = [
        ForecastHour(at=NOW + number * HOUR, requests=requests, bound_by="pace")
        for number, requests in enumerate((40, 60, 20))
    ]
    kept = make_kept_forecast(
        at=NOW + timedelta(minutes=50), ends_at=NOW + timedelta(minutes=130), step_hours=1, hours=hours
    )
    found = what_is_left(kept, "sms", NOW + timedelta(minutes=minutes))
    assert found is not None
    assert [one.requests for one in found.hours] == left
    assert found.requests == sum(left)
