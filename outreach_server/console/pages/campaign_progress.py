"""The progress of a campaign: what happened, what the forecast of its start had, and what the forecast has now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Final

import attrs

from outreach.models import BindingRule, CampaignProgress, Channel, Forecast, ForecastHour, KeptForecast
from outreach.reasons import CLOSING_RULES, LIMITS
from outreach_server.console import words
from outreach_server.console.clocks import Clocks
from outreach_server.console.drawing.curves import Band, Curve, Point
from outreach_server.console.figures import Figures, what_is_left
from outreach_server.console.pages.campaign_views import MomentView, moment_of
from outreach_server.console.running import Activity

_MAX_ROWS: Final = 48
_MAX_POINTS: Final = 200


@attrs.frozen(kw_only=True)
class HourRow:
    """A row of the table beside the curve."""

    at: MomentView
    real: str
    plan: str
    ahead: str
    bound_by: str


@attrs.frozen(kw_only=True)
class ProgressView:
    """A curve with its table.

    Attributes:
        behind: How many requests it is behind the forecast of its start; negative if it is ahead.
    """

    curve: Curve
    rows: Sequence[HourRow]
    behind: int


def progress_view(figures: Figures, clocks: Clocks) -> ProgressView:
    """Return the progress of a campaign, with times by some clocks."""
    at = figures.report.at
    campaign = figures.campaign
    real = _real(figures.progress, at, campaign.started_at, is_over=campaign.is_terminal)
    done = real[-1].value if real else 0
    first = figures.planned[0] if figures.planned else None
    plan = _planned(first) if first is not None else []
    ahead = _ahead(figures.forecast, real, at) if figures.forecast is not None and figures.forecast.hours else []
    expected = _value_at(plan, at)
    says = _says(figures, clocks)
    if plan and not figures.campaign.is_terminal:
        noun = "call" if figures.campaign.channel == "call" else "message"
        says += f" The forecast of the start had {words.plural(expected, noun)} by now."
    curve = Curve(
        real=real, plan=plan, ahead=ahead, bands=list(_bands(figures, first)), now=at, clocks=clocks, label=says
    )
    return ProgressView(curve=curve, rows=_rows(figures, first, clocks), behind=expected - done if plan else 0)


def small_curve_of(activity: Activity, channel: Channel, clocks: Clocks, label: str) -> Curve:
    """Return the curve of a campaign that sends: what it sent, and what is left of its newest forecast."""
    at, kept = activity.progress.at, activity.planned
    real = _real(activity.progress, at, None, is_over=False)
    forecast = None if kept is None else what_is_left(kept, channel, at)
    return Curve(
        real=real,
        plan=(),
        ahead=_ahead(forecast, real, at) if forecast is not None and forecast.hours else (),
        bands=list(bands_of(forecast, at)) if forecast is not None else (),
        now=at,
        clocks=clocks,
        label=label,
    )


def _says(figures: Figures, clocks: Clocks) -> str:
    """Return how far it is, by the report alone: other figures are read at other moments, and would not add up."""
    report = figures.report
    at, ended = report.at, report.contacts - report.still_open
    says = f"{ended:,} of {words.plural(report.contacts, 'contact')} had ended at {clocks.moment(at, at)}"
    if not report.still_open:
        return f"{says}."
    ends = None if figures.forecast is None else figures.forecast.ends_at
    done_at = "" if ends is None else f", by the forecast until {clocks.moment(ends, at)}"
    return f"{says} ({clocks.name}); {report.still_open:,} are to come{done_at}."


def _real(progress: CampaignProgress, at: datetime, started_at: datetime | None, *, is_over: bool) -> list[Point]:
    """Return how many requests there were by then."""
    step = timedelta(seconds=progress.step_seconds)
    points: list[Point] = []
    total = 0
    for one in progress.points:
        if not points or points[-1].at < one.at:
            points.append(Point(max(one.at, started_at or one.at), total))
        total += one.requests
        points.append(Point(min(one.at + step, at), total))
    if points and not is_over and points[-1].at < at:
        points.append(Point(at, total))
    stride = -(-len(points) // _MAX_POINTS)
    return points if stride < 2 else [*points[:-1:stride], points[-1]]


def _planned(kept: KeptForecast) -> list[Point]:
    step = timedelta(hours=kept.step_hours)
    return points_of(kept.hours, step, kept.at, kept.ends_at, 0)


def _ahead(forecast: Forecast, real: Sequence[Point], now: datetime) -> list[Point]:
    """Return the forecast from now on; it may have been worked out before, when there were fewer requests."""
    done = real[-1].value if real else 0
    before = min(done, _value_at(real, forecast.at))
    points = points_of(forecast.hours, timedelta(hours=1), forecast.at, forecast.ends_at, before)
    if real:
        points = [Point(now, done), *(Point(one.at, max(done, one.value)) for one in points if one.at > now)]
    return points


def points_of(
    hours: Sequence[ForecastHour], step: timedelta, at: datetime, ends_at: datetime | None, done: int
) -> list[Point]:
    """Return how many requests there are at the end of each hour; the last one ends with the forecast."""
    if not hours:
        return []
    points = [Point(max(at, hours[0].at), done)]
    totals = accumulate((one.requests for one in hours), initial=done)
    next(totals)
    for one, total in zip(hours, totals, strict=True):
        end = one.at + step if ends_at is None else min(one.at + step, max(ends_at, one.at))
        points.append(Point(max(end, points[-1].at), total))
    return points


def _value_at(points: Sequence[Point], at: datetime) -> int:
    """Return what a curve has at a moment."""
    before = [one for one in points if one.at <= at]
    if not before:
        return 0
    last = before[-1]
    following = next((one for one in points if one.at > at), None)
    if following is None:
        return last.value
    share = (at - last.at) / (following.at - last.at)
    return last.value + round(share * (following.value - last.value))


def _bands(figures: Figures, first: KeptForecast | None) -> Iterator[Band]:
    """Return when nothing goes out: until now by the forecast of the start, then by the newest."""
    now = figures.report.at
    if first is not None:
        step = timedelta(hours=first.step_hours)
        for one in first.hours:
            if one.bound_by in CLOSING_RULES and not one.requests and one.at < now:
                yield _band(one.at, min(one.at + step, now), one.bound_by)
    if figures.forecast is not None:
        yield from bands_of(figures.forecast, now)


def bands_of(forecast: Forecast, now: datetime) -> Iterator[Band]:
    """Return when nothing goes out from now on, by a forecast."""
    for phase in forecast.phases:
        if phase.bound_by in CLOSING_RULES:
            yield _band(max(phase.begins_at, now), phase.ends_at, phase.bound_by)


def _band(begins_at: datetime, ends_at: datetime, rule: BindingRule) -> Band:
    return Band(begins_at=begins_at, ends_at=ends_at, words=f"closed: {LIMITS[rule]}")


def _rows(figures: Figures, first: KeptForecast | None, clocks: Clocks) -> Sequence[HourRow]:
    """Return the same by the hour, or by longer steps of a long time."""
    hours = max(1, figures.progress.step_seconds // 3600, first.step_hours if first is not None else 1)
    step = timedelta(hours=hours)
    real: dict[datetime, int] = {}
    plan: dict[datetime, int] = {}
    ahead: dict[datetime, int] = {}
    bound: dict[datetime, str] = {}

    def begin(at: datetime) -> datetime:
        seconds = int(at.timestamp())
        return at - timedelta(seconds=seconds % int(step.total_seconds()), microseconds=at.microsecond)

    for point in figures.progress.points:
        real[begin(point.at)] = real.get(begin(point.at), 0) + point.requests
    for one in first.hours if first is not None else ():
        plan[begin(one.at)] = plan.get(begin(one.at), 0) + one.requests
        bound[begin(one.at)] = LIMITS[one.bound_by]
    for one in figures.forecast.hours if figures.forecast is not None else ():
        ahead[begin(one.at)] = ahead.get(begin(one.at), 0) + one.requests
        bound[begin(one.at)] = LIMITS[one.bound_by]
    return [
        HourRow(
            at=moment_of(at, figures.report.at, clocks),
            real=f"{real[at]:,}" if at in real else "",
            plan=f"{plan[at]:,}" if at in plan else "",
            ahead=f"{ahead[at]:,}" if at in ahead else "",
            bound_by=bound.get(at, ""),
        )
        for at in sorted({*real, *plan, *ahead})
    ][:_MAX_ROWS]
