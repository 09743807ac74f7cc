"""What a campaign does now, and why, in one line."""

from __future__ import annotations

from datetime import datetime, timedelta

import attrs

from outreach import CampaignStatus
from outreach.models import Forecast
from outreach.reasons import LIMITS, PAUSE_REASONS
from outreach_server.console import words
from outreach_server.console.figures import Figures
from outreach_server.console.pages.campaign_views import moment_of
from outreach_server.console.words import Tone


@attrs.frozen(kw_only=True)
class NowView:
    """One line on what a campaign does.

    Attributes:
        text: What it does, or waits for, and why.
        more: What follows.
    """

    icon: str
    tone: Tone
    text: str
    more: str = ""


def now_of(figures: Figures, zone: str) -> NowView:
    """Return what a campaign does now."""
    campaign, at = figures.campaign, figures.report.at
    match campaign.effective_status(at):
        case CampaignStatus.DRAFT:
            lacks = "; ".join(f"{one.path} {one.message}".strip() for one in figures.missing[:3])
            return NowView(
                icon="flag", tone="warn", text=f"It is a draft. Before it can start: {lacks or 'finish it'}."
            )
        case CampaignStatus.READY:
            lacks = "; ".join(one.message for one in figures.missing[:3])
            if lacks:
                return NowView(icon="flag", tone="warn", text=f"It cannot start yet: {lacks}")
            return NowView(icon="circle-check", tone="plain", text="It is ready, and waits to be started.")
        case CampaignStatus.SCHEDULED:
            start = campaign.scheduled_start_at
            when = "" if start is None else f" at {_moment(figures, start, zone)}"
            return _blocked(figures, zone) or NowView(
                icon="calendar-clock", tone="plain", text=f"The clock starts it{when}.", more=_end(figures, zone)
            )
        case CampaignStatus.PAUSED:
            why = PAUSE_REASONS.get(campaign.pause_reason or "", "")
            text = f"It is paused{f': {why}' if why else ''}. {words.plural(campaign.counters.open, 'contact')} wait."
            return NowView(icon="pause", tone="warn", text=text, more="Resume lets it go on where it stopped.")
        case CampaignStatus.ACTIVE:
            return _blocked(figures, zone) or _sending(figures, zone)
        case CampaignStatus.COMPLETED:
            return NowView(icon="check", tone="good", text=f"It is done{_ended(figures, zone)}.")
        case CampaignStatus.CANCELLED:
            return NowView(icon="x", tone="bad", text=f"It was cancelled{_ended(figures, zone)}.")
        case CampaignStatus.EXPIRED:
            return NowView(
                icon="clock", tone="bad", text="It has expired: contacts that waited are not contacted any more."
            )


def _blocked(figures: Figures, zone: str) -> NowView | None:
    """Return what blocks the whole campaign, the most urgent."""
    if not figures.blockers:
        return None
    first = figures.blockers[0]
    until = "" if first.until is None else f" It goes on at {_moment(figures, first.until, zone)}."
    return NowView(icon="hourglass", tone="warn", text=f"{first.message}{until}", more=_end(figures, zone))


def _sending(figures: Figures, zone: str) -> NowView:
    forecast, sends = figures.forecast, "Calls" if figures.campaign.channel == "call" else "Sends"
    waiting = _waits(figures, zone)
    if forecast is None or not forecast.hours:
        text = waiting or "It waits for the last outcomes: no request is left to start."
        return NowView(icon="hourglass", tone="plain", text=text, more=_end(figures, zone))
    binds = forecast.hours[0].bound_by
    if not forecast.hours[0].requests:
        starts = forecast.starts_at
        when = "" if starts is None else f" until {_moment(figures, starts, zone)}"
        return NowView(
            icon="hourglass", tone="plain", text=f"It waits for {LIMITS[binds]}{when}.", more=_end(figures, zone)
        )
    pace = f", {figures.campaign.rate_per_minute:,} a minute at most" if binds == "pace" else ""
    text = f"{sends} as fast as {LIMITS[binds]} allows{pace}."
    return NowView(icon="play", tone="plain", text=f"{text} {waiting}".rstrip(), more=_end(figures, zone))


def _waits(figures: Figures, zone: str) -> str:
    """Return how many contacts wait for a time, and for which, of the largest group."""
    groups = [
        (one.contacts, (str(one.status), one.reason), one.meaning)
        for one in figures.report.results
        if (str(one.status), one.reason) in figures.waits and one.status == "waiting"
    ]
    if not groups:
        return ""
    count, key, meaning = max(groups, key=lambda group: group[0])
    until = _moment(figures, figures.waits[key], zone)
    verb = "waits" if count == 1 else "wait"
    why = f" ({meaning})" if meaning else ""
    return f"{words.plural(count, 'contact')} {verb}{why}, the first until {until}."


def _end(figures: Figures, zone: str) -> str:
    forecast = figures.forecast
    if forecast is None:
        return ""
    parts = []
    if forecast.ends_at is not None and forecast.ends_at - figures.report.at > timedelta(0):
        verb = "It expires before it is done" if forecast.expires else "Done"
        parts.append(f"{verb} {_moment(figures, forecast.ends_at, zone)} by the forecast.")
    elif forecast.ends_at is None and forecast.contacts:
        parts.append("It is not done within 400 days.")
    parts += _held(forecast)
    if forecast.shared_with:
        others = words.plural(forecast.shared_with, "other campaign")
        parts.append(f"It takes turns with {others} at the sending number.")
    return " ".join(parts)


def _held(forecast: Forecast) -> list[str]:
    if not forecast.held:
        return []
    verb = "waits" if forecast.held == 1 else "wait"
    return [f"{words.plural(forecast.held, 'contact')} {verb} until a person has read a reply."]


def _ended(figures: Figures, zone: str) -> str:
    at, began = figures.campaign.completed_at, figures.campaign.started_at
    if at is None:
        return ""
    took = "" if began is None else f", after {words.duration((at - began).total_seconds())}"
    return f" since {_moment(figures, at, zone)}{took}"


def _moment(figures: Figures, at: datetime, zone: str) -> str:
    view = moment_of(at, figures.report.at, zone)
    return f"{view.text} ({view.zone})"
