"""The present activity of a campaign, and its reason, in one line."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

import attrs

from outreach import CampaignStatus
from outreach_server.console import words
from outreach_server.console.clocks import Clocks
from outreach_server.console.figures import Figures
from outreach_server.console.pages.campaign_views import moment_of
from outreach_server.console.words import Tone

_SENDS: Final = frozenset({"pace", "sender_rate", "batch_concurrency"})
_LOOKS: Final[Mapping[str, tuple[str, Tone]]] = MappingProxyType(
    {
        CampaignStatus.DRAFT: ("flag", "warn"),
        CampaignStatus.READY: ("circle-check", "plain"),
        CampaignStatus.SCHEDULED: ("calendar-clock", "plain"),
        CampaignStatus.PAUSED: ("pause", "warn"),
        CampaignStatus.COMPLETED: ("check", "good"),
        CampaignStatus.CANCELLED: ("x", "bad"),
        CampaignStatus.EXPIRED: ("clock", "bad"),
        "outcome": ("hourglass", "plain"),
        **dict.fromkeys(_SENDS, ("play", "plain")),
    }
)
"""The icon and tone of the rules that bind; with any other rule a campaign waits."""

_WORTH_SAYING: Final = 0.02
"""From this share of all requests on, being behind the forecast is said."""


@attrs.frozen(kw_only=True)
class NowView:
    """One line on what a campaign does.

    Attributes:
        text: Its activity, or the reason why it waits.
        more: The sentences after it.
    """

    icon: str
    tone: Tone
    text: str
    more: str


def now_of(figures: Figures, clocks: Clocks, behind: int) -> NowView:
    """Return the line of a campaign's present activity.

    Args:
        figures: Its figures.
        clocks: Those of the times.
        behind: How many requests it is behind the forecast of its start.
    """
    icon, tone = _LOOKS.get(figures.now.rule, ("hourglass", "warn"))
    parts = [_missing(figures), _behind(figures, behind), _end(figures, clocks)]
    return NowView(icon=icon, tone=tone, text=figures.now.message, more=" ".join(part for part in parts if part))


def _missing(figures: Figures) -> str:
    """Return what prevents the start of a campaign that has everything it needs; else its line says what it needs."""
    if figures.campaign.status is CampaignStatus.DRAFT:
        return ""
    missing = [f"{one.message.rstrip('.')}." for one in figures.missing[:3]]
    return " ".join(missing or ([words.WAITS_FOR_APPROVAL] if figures.awaits_approval else []))


def _behind(figures: Figures, behind: int) -> str:
    planned = figures.planned[0].requests if figures.planned else 0
    if figures.campaign.is_terminal or behind <= max(1, planned * _WORTH_SAYING):
        return ""
    return f"It is {words.plural(behind, 'request')} behind the forecast of its start."


def _end(figures: Figures, clocks: Clocks) -> str:
    forecast = figures.forecast
    if forecast is None or figures.campaign.status in {CampaignStatus.DRAFT, CampaignStatus.PAUSED}:
        return ""
    parts = []
    if forecast.ends_at is not None and forecast.ends_at - figures.report.at > timedelta(0):
        verb = "It expires before it is done" if forecast.expires else "Done"
        parts.append(f"{verb} {_moment(figures, forecast.ends_at, clocks)} by the forecast.")
    elif forecast.ends_at is None and forecast.contacts:
        parts.append("It is not done within 400 days.")
    if forecast.held:
        verb = "waits" if forecast.held == 1 else "wait"
        parts.append(f"{words.plural(forecast.held, 'contact')} {verb} until a person has read a reply.")
    if forecast.shared_with:
        others = words.plural(forecast.shared_with, "other campaign")
        parts.append(f"It takes turns with {others} at the sending number.")
    return " ".join(parts)


def _moment(figures: Figures, at: datetime, clocks: Clocks) -> str:
    view = moment_of(at, figures.report.at, clocks)
    return f"{view.text} ({view.zone})"
