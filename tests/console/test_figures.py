"""The figures of a campaign, before a newer forecast has been worked out."""

from __future__ import annotations

from datetime import timedelta

import pytest

from outreach.models import CampaignNow, CampaignProgress, ProgressPoint
from outreach.models.forecast import ForecastHour
from outreach.testing.builders import NOW, make_kept_forecast
from outreach_server.console.clocks import Clocks
from outreach_server.console.drawing.curves import Point
from outreach_server.console.figures import what_is_left
from outreach_server.console.pages.campaign_progress import small_curve_of
from outreach_server.console.running import Activity

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


def test_the_small_curve_goes_on_where_the_requests_end() -> None:
    """With what is left of the newest forecast."""
    hours = [ForecastHour(at=NOW + number * HOUR, requests=60, bound_by="pace") for number in range(2)]
    now = CampaignNow(campaign_id="c", at=NOW, rule="pace", since=None, until=None, contacts=90, message="Sends.")
    kept = make_kept_forecast(at=NOW, ends_at=NOW + 2 * HOUR, step_hours=1, hours=hours, starts_at=NOW)
    point = ProgressPoint(at=NOW, requests=30)
    sent = CampaignProgress(campaign_id="c", at=NOW + HOUR / 2, step_seconds=60, points=[point])
    curve = small_curve_of(Activity(now=now, progress=sent, planned=kept), "sms", Clocks("UTC"), "30 of 120 done")
    assert [one.value for one in curve.real] == [0, 30, 30]
    assert (curve.ahead[0], curve.ahead[-1]) == (Point(NOW + HOUR / 2, 30), Point(NOW + 2 * HOUR, 120))
