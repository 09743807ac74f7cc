from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import get_args

import attrs
import pytest

from outreach.dispatch.forecast_keeper import LEAST_THROTTLE, basis_of
from outreach.models.account import ProviderThrottle
from outreach.models.forecast import BindingRule, ForecastHour, KeptForecast
from outreach.rules.kept_forecasts import MAX_HOURS, shortened
from outreach.serialization.kept_forecasts import forecast_text, read_forecast_text

NOW = datetime(2026, 11, 20, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)


def rules() -> list[BindingRule]:
    """Return every rule that may bind."""
    found: list[BindingRule] = []
    for one in get_args(BindingRule):
        found += get_args(one) or [one]
    return found


def curve(count: int, *, requests: int = 7) -> list[ForecastHour]:
    """Return a curve in which another rule binds in each hour."""
    every = rules()
    return [
        ForecastHour(at=NOW + number * HOUR, requests=requests, bound_by=every[number % len(every)])
        for number in range(count)
    ]


def forecast(hours: list[ForecastHour], step: int = 1) -> KeptForecast:
    """Return a forecast with a curve."""
    return KeptForecast(
        campaign_id="c",
        at=NOW,
        reason="start",
        revision=2**63 - 1,
        starts_at=NOW,
        ends_at=None,
        contacts=10**9,
        requests=10**9,
        unreached=10**9,
        held=0,
        expires=True,
        step_hours=step,
        hours=hours,
    )


@pytest.mark.parametrize(("count", "step"), [(0, 1), (1, 1), (MAX_HOURS, 1), (MAX_HOURS + 1, 2), (10_000, 14)])
def test_a_curve_has_at_most_so_many_steps_and_loses_no_request(count: int, step: int) -> None:
    """A long one has longer steps."""
    found, hours = shortened(curve(count))
    assert found == step
    assert len(hours) <= MAX_HOURS
    assert sum(one.requests for one in hours) == 7 * count
    assert [one.at for one in hours] == [NOW + number * step * HOUR for number in range(len(hours))]


def test_a_step_is_bound_by_what_binds_for_most_of_it() -> None:
    """Not by what binds first."""
    hours = [attrs.evolve(one, bound_by="holidays" if at % 3 else "pace") for at, one in enumerate(curve(1443))]
    assert {one.bound_by for one in shortened(hours)[1]} == {"holidays"}


@pytest.mark.parametrize("count", [0, 1, MAX_HOURS])
def test_a_kept_forecast_is_read_as_it_was_written_and_has_at_most_10_kb(count: int) -> None:
    """With millions of requests in each step, and every rule."""
    made = forecast(curve(count, requests=9_999_999), step=3)
    made = attrs.evolve(made, hours=[attrs.evolve(one, at=NOW + at * 3 * HOUR) for at, one in enumerate(made.hours)])
    text = forecast_text(made)
    assert len(text.encode()) <= 10_000
    assert read_forecast_text(text, campaign_id="c") == made


def test_a_throttle_makes_a_forecast_another_one_if_it_is_long() -> None:
    """Whenever it ends: it may be extended."""
    throttle = ProviderThrottle(workspace_id="w", provider="twilio", since=NOW, until=NOW + LEAST_THROTTLE, refusals=1)
    assert basis_of(3, None).key == "3"
    assert (
        basis_of(3, throttle).key
        == basis_of(3, attrs.evolve(throttle, until=NOW + HOUR)).key
        == ("3/2026-11-20T10:00:00.000000Z")
    )
    assert basis_of(3, attrs.evolve(throttle, until=NOW + LEAST_THROTTLE / 2)).key == "3"
