"""The forecast of a new campaign as a curve, with its table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import attrs
from markupsafe import Markup

from outreach.models import Forecast
from outreach.reasons import LIMITS
from outreach_server.console.clocks import Clocks
from outreach_server.console.context import Visit
from outreach_server.console.drawing.curves import Curve, drawn
from outreach_server.console.pages.campaign_progress import bands_of, points_of

_MAX_ROWS: Final = 48


@attrs.frozen(kw_only=True)
class StretchRow:
    """A stretch of time in which one rule limits the campaign."""

    begins: str
    ends: str
    requests: int
    limit: str


@attrs.frozen(kw_only=True)
class ForecastView:
    """A forecast.

    Attributes:
        drawing: The curve; empty where there is nothing to draw.
        bands: What closes parts of it, in words.
    """

    drawing: Markup
    says: str
    bands: Sequence[str]
    rows: Sequence[StretchRow]


def forecast_view(visit: Visit, forecast: Forecast, clocks: Clocks, label: str) -> ForecastView:
    """Return the forecast of a campaign that has not started."""
    points = points_of(forecast.hours, timedelta(hours=1), forecast.starts_at or forecast.at, forecast.ends_at, 0)
    bands = list(bands_of(forecast, forecast.at))
    # The present is its left edge, or before: no line is drawn for it.
    before = forecast.at - timedelta(hours=1)
    curve = Curve(real=[], plan=[], ahead=points, bands=bands, now=before, clocks=clocks, label=label)
    return ForecastView(
        drawing=drawn(curve),
        says=label,
        bands=sorted({one.words for one in bands}),
        rows=[
            StretchRow(
                begins=clocks.moment(one.begins_at, visit.now),
                ends=clocks.moment(one.ends_at, visit.now),
                requests=one.requests,
                limit=LIMITS[one.bound_by],
            )
            for one in forecast.phases[:_MAX_ROWS]
        ],
    )
