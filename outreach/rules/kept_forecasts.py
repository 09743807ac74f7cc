"""How a forecast is kept: its curve in a bounded number of steps, and when a campaign gets a new one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import attrs

from outreach.models.forecast import BindingRule, Forecast, ForecastHour, ForecastReason, KeptForecast

MAX_HOURS: Final = 720
"""Steps of a kept curve: an hour each for a month."""

MAX_KEPT: Final = 50
"""Forecasts of one campaign: the first, and the latest ones."""


def kept(
    forecast: Forecast, *, campaign_id: str, reason: ForecastReason, revision: int, sent_before: int = 0
) -> KeptForecast:
    """Return a forecast as it is kept; its first hour has the requests before it, which were sent since the start."""
    step, hours = shortened(forecast.hours)
    if hours:
        hours = [attrs.evolve(hours[0], requests=hours[0].requests + sent_before), *hours[1:]]
    return KeptForecast(
        campaign_id=campaign_id,
        at=forecast.at,
        reason=reason,
        revision=revision,
        starts_at=forecast.starts_at,
        ends_at=forecast.ends_at,
        contacts=forecast.contacts,
        requests=forecast.requests + (sent_before if hours else 0),
        unreached=forecast.unreached,
        held=forecast.held,
        expires=forecast.expires,
        step_hours=step,
        hours=hours,
    )


def shortened(hours: Sequence[ForecastHour]) -> tuple[int, Sequence[ForecastHour]]:
    """Return how many hours a step needs so that there are at most `MAX_HOURS`, and the curve in these steps."""
    step = -(-len(hours) // MAX_HOURS) or 1
    parts = (hours[begin : begin + step] for begin in range(0, len(hours), step))
    return step, [
        ForecastHour(at=part[0].at, requests=sum(one.requests for one in part), bound_by=_most_frequent(part))
        for part in parts
    ]


def _most_frequent(hours: Sequence[ForecastHour]) -> BindingRule:
    return Counter(one.bound_by for one in hours).most_common(1)[0][0]
