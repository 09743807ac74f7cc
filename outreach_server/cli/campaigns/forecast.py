"""`campaigns forecast`: when a campaign will be done, and its forecast in a line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import click

from outreach import Campaign, Outreach
from outreach.http import document_of
from outreach.models import BindingRule, Forecast, ForecastAssumptions, ForecastHour, KeptForecast
from outreach.reasons import LIMITS
from outreach_server.cli import documents
from outreach_server.cli.base import Command, state, with_campaign
from outreach_server.cli.durations import time_text
from outreach_server.cli.output import console, echo_json, listing, note, plural
from outreach_server.cli.values import CAMPAIGN

_ASSUMED: Final = {
    "answer_rate": "{:.0%} of calls are answered",
    "call_seconds": "an answered call takes {:.0f} s",
    "ring_seconds": "another one {:.0f} s",
    "failure_rate": "{:.0%} of messages fail for now",
}
_OF_CALLS: Final = ("answer_rate", "call_seconds", "ring_seconds")
_BAR: Final = 30
_SHORT_BAR: Final = 10
_WIDE: Final = 110
"""From this many columns on there is room for the longer bars."""

_MAX_ROWS: Final = 48


@click.command("forecast", cls=Command)
@click.argument("campaign_id", type=CAMPAIGN)
@click.option("--answer-rate", type=click.FloatRange(0, 1), help="Calls: the share that is answered.")
@click.option("--call-seconds", type=click.FloatRange(0, 86_400), help="Calls: how long an answered one takes.")
@click.option("--ring-seconds", type=click.FloatRange(0, 86_400), help="Calls: how long one takes that nobody answers.")
@click.option("--failure-rate", type=click.FloatRange(0, 1), help="Messages: the share that fails for now.")
def forecast_(campaign_id: str, **given: float | None) -> None:
    """Show when a campaign will be done, hour by hour, and what limits it.

    Of a campaign that has started, what is left; its own figures take the place of what is assumed.
    """
    assumed = ForecastAssumptions(**{name: value for name, value in given.items() if value is not None})

    async def work(engine: Outreach, campaign: Campaign) -> tuple[Forecast, str]:
        made = await engine.campaigns.forecast(campaign.workspace_id, campaign_id, assumptions=assumed)
        return made, campaign.timezone

    found, zone = with_campaign(campaign_id, work)
    if state().as_json:
        echo_json(document_of(found))
        return
    out = console()
    for line in (*forecast_lines(found, zone), _assumptions(found)):
        out.print(line)
    if found.shared_with:
        out.print(f"It takes turns at its sending number with {plural(found.shared_with, 'other campaign')}.")
    rows = _rows(found, zone, _BAR if out.width >= _WIDE else _SHORT_BAR)
    if rows:
        out.print(listing(rows, ("from", "to", "requests", "", "limited by"), zone))


@click.command("forecasts", cls=Command)
@click.argument("campaign_id", type=CAMPAIGN)
def forecasts_(campaign_id: str) -> None:
    """List the forecasts that were kept at a campaign's start and after each change, oldest first."""

    async def work(engine: Outreach, campaign: Campaign) -> tuple[Sequence[KeptForecast], str]:
        return await engine.campaigns.forecasts(campaign.workspace_id, campaign_id), campaign.timezone

    found, zone = with_campaign(campaign_id, work)
    rows = [
        {
            "at": time_text(one.at, zone, seconds=False),
            "reason": one.reason,
            "contacts": one.contacts,
            "requests": one.requests,
            "starts_at": one.starts_at and time_text(one.starts_at, zone, seconds=False),
            "ends_at": one.ends_at and time_text(one.ends_at, zone, seconds=False),
            "limited by": LIMITS[_most_frequent(one.hours)] if one.hours else None,
        }
        for one in found
    ]
    if state().as_json:
        echo_json([document_of(one) for one in found])
    elif rows:
        console().print(listing(rows, tuple(rows[0]), zone))
    else:
        note("No forecast was kept yet: a process that dispatches makes one when the campaign becomes active.")


def forecast_lines(forecast: Forecast, zone: str) -> list[str]:
    """Return a forecast in a line or two, with times of a zone; none of a campaign that has ended."""
    if not forecast.held:
        return _main_lines(forecast, zone)
    verb = "waits" if forecast.held == 1 else "wait"
    held = f"{plural(forecast.held, 'contact')} {verb} for a decision (`unsubscribes held`)"
    if forecast.contacts:
        return [*_main_lines(forecast, zone), f"{held}, and the campaign ends after it."]
    at = None if forecast.ends_at is None else time_text(forecast.ends_at, zone, seconds=False)
    return [
        f"Forecast: {held}, and nobody else is left; {'it ends after that' if at is None else f'it expires at {at}'}."
    ]


def _main_lines(forecast: Forecast, zone: str) -> list[str]:
    what = "calls" if forecast.channel == "call" else "messages"
    if not forecast.contacts:
        if forecast.ends_at is None or forecast.ends_at <= forecast.at:
            return []
        ends = f"{'expires' if forecast.expires else 'is done'} at {time_text(forecast.ends_at, zone, seconds=False)}"
        return [f"Forecast: no {what} to go, because every contact is left out; it {ends}."]
    if forecast.starts_at is None and forecast.ends_at is not None and not forecast.expires:
        return [f"Forecast: no {what} to go; it is done when its last contacts have ended."]
    if forecast.starts_at is None:
        return [f"Forecast: no {what} {_until(forecast)}."]
    later = forecast.starts_at - forecast.at > timedelta(minutes=1)
    begun = f"from {time_text(forecast.starts_at, zone, seconds=False)} on, " if later else ""
    at = None if forecast.ends_at is None else time_text(forecast.ends_at, zone, seconds=False)
    ends = "not done within 400 days" if at is None else f"done at {at}"
    if forecast.expires:
        ends = f"expires at {at} before it is done, {plural(forecast.unreached, 'contact')} not reached"
    requests = plural(forecast.requests, what.removesuffix("s"))
    return [f"Forecast: {requests} to go, {begun}{ends}; limited mostly by {_limit(forecast)}."]


def _until(forecast: Forecast) -> str:
    return "before it expires" if forecast.expires else "within 400 days"


def _limit(forecast: Forecast) -> str:
    return LIMITS[_most_frequent(forecast.hours)]


def _most_frequent(hours: Sequence[ForecastHour]) -> BindingRule:
    return Counter(hour.bound_by for hour in hours).most_common(1)[0][0]


def _assumptions(forecast: Forecast) -> str:
    names = _OF_CALLS if forecast.channel == "call" else ("failure_rate",)
    stated: dict[bool, list[str]] = {True: [], False: []}
    for name in names:
        text = _ASSUMED[name].format(getattr(forecast.assumptions, name))
        stated[name in forecast.measured].append(text)
    words = ((True, "Measured"), (False, "Assumed"))
    parts = [f"{word}: {', '.join(stated[own])}." for own, word in words if stated[own]]
    return " ".join(parts)


def _rows(forecast: Forecast, zone: str, bar: int) -> list[documents.Document]:
    """Return the curve: hour by hour, with hours without requests together; of a long one, phase by phase."""
    stretches: list[tuple[datetime, datetime, int, BindingRule]] = []
    for hour in forecast.hours:
        idle = not hour.requests and stretches and not stretches[-1][2] and stretches[-1][3] == hour.bound_by
        if idle:
            stretches[-1] = (stretches[-1][0], _end(hour), 0, hour.bound_by)
        else:
            stretches.append((hour.at, _end(hour), hour.requests, hour.bound_by))
    if len(stretches) > _MAX_ROWS:
        stretches = [(one.begins_at, one.ends_at, one.requests, one.bound_by) for one in forecast.phases][:_MAX_ROWS]
    most = max((requests for _, _, requests, _ in stretches), default=0) or 1
    return [
        {
            "from": time_text(begins, zone, seconds=False),
            "to": time_text(ends, zone, seconds=False),
            "requests": requests,
            "": "#" * -(-bar * requests // most) or " ",
            "limited by": LIMITS[rule],
        }
        for begins, ends, requests, rule in stretches
    ]


def _end(hour: ForecastHour) -> datetime:
    return hour.at + timedelta(hours=1)
