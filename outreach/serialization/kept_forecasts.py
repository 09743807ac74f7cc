"""Kept forecasts as compact JSON, at most 10 kB: the curve is a list of numbers, and one character for each rule."""

from __future__ import annotations

import json
import string
from datetime import timedelta
from typing import Any, Final

from outreach.core.clock import format_timestamp, parse_timestamp
from outreach.models.forecast import BindingRule, ForecastHour, KeptForecast
from outreach.serialization.documents import json_text

_SIGNS: Final = string.ascii_lowercase
"""One for each rule, in the order in which they first bind; there are fewer rules."""

_PLAIN: Final = (*("reason", "revision", "contacts", "requests", "unreached", "held", "expires", "step_hours"),)
_MOMENTS: Final = ("at", "starts_at", "ends_at")


def forecast_text(forecast: KeptForecast) -> str:
    """Return a kept forecast as JSON, without its campaign."""
    rules = list(dict.fromkeys(hour.bound_by for hour in forecast.hours))
    moments = ((name, getattr(forecast, name)) for name in _MOMENTS)
    return json_text(
        {
            **{name: getattr(forecast, name) for name in _PLAIN},
            **{name: None if moment is None else format_timestamp(moment) for name, moment in moments},
            "begins_at": format_timestamp(forecast.hours[0].at) if forecast.hours else None,
            "curve": [hour.requests for hour in forecast.hours],
            "rules": rules,
            "bound_by": "".join(_SIGNS[rules.index(hour.bound_by)] for hour in forecast.hours),
        }
    )


def read_forecast_text(text: str, *, campaign_id: str) -> KeptForecast:
    """Return the forecast that `forecast_text` wrote."""
    given: dict[str, Any] = json.loads(text)
    rules: list[BindingRule] = given["rules"]
    step = timedelta(hours=given["step_hours"])
    begins = given["begins_at"]
    hours = [
        ForecastHour(at=parse_timestamp(begins) + number * step, requests=requests, bound_by=rules[_SIGNS.index(sign)])
        for number, (requests, sign) in enumerate(zip(given["curve"], given["bound_by"], strict=True))
    ]
    moments: dict[str, Any] = {name: None if given[name] is None else parse_timestamp(given[name]) for name in _MOMENTS}
    return KeptForecast(campaign_id=campaign_id, hours=hours, **{name: given[name] for name in _PLAIN}, **moments)
