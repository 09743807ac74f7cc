"""Campaigns as several pages show them."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

import attrs
from markupsafe import Markup

from outreach import Campaign, CampaignStatus
from outreach_server.console import words
from outreach_server.console.clocks import Clocks
from outreach_server.console.context import Visit
from outreach_server.console.drawing.charts import Piece, progress
from outreach_server.console.words import Tone

_TIME: Final = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{6})?Z")
"""A time as the engine writes it into its texts."""


@attrs.frozen(kw_only=True)
class StateView:
    """A state, said by a word, an icon and a colour.

    Attributes:
        why: Why it is so; empty if there is nothing to say.
    """

    word: str
    icon: str
    tone: Tone
    why: str = ""


@attrs.frozen(kw_only=True)
class MomentView:
    """A moment in words and for machines."""

    text: str
    iso: str
    zone: str


@attrs.frozen(kw_only=True)
class CampaignRow:
    """A campaign in a list.

    Attributes:
        report_url: Its report; empty before it has ended.
        counts: How far it is, in words.
        bar: The same as a drawing.
        when: What its time is, such as `Starts`; empty without one.
    """

    id: str
    name: str
    url: str
    channel: str
    state: StateView
    counts: str
    ended_share: str
    bar: Markup
    when: str
    at: MomentView | None
    report_url: str


def state_of(campaign: Campaign, now: datetime) -> StateView:
    """Return the state of a campaign, with why it is paused."""
    word, icon, tone = words.STATES[campaign.effective_status(now)]
    why = words.pause_reason(campaign.pause_reason)
    return StateView(word=word, icon=icon, tone=tone, why=why)


def moment_of(at: datetime, now: datetime, clocks: Clocks, *, seconds: bool = False) -> MomentView:
    """Return a moment by some clocks."""
    text = clocks.moment(at, now, seconds=seconds)
    return MomentView(text=text, iso=at.isoformat(), zone=clocks.name)


def with_times(visit: Visit, text: str) -> str:
    """Return a text of the engine with its times in words, by the clocks of the person."""
    return _TIME.sub(lambda found: _time_words(visit, found[0]), text)


def _time_words(visit: Visit, written: str) -> str:
    try:
        at = moment_of(datetime.fromisoformat(written), visit.now, visit.clocks())
    except (OverflowError, ValueError):
        # A person may have written it.
        return written
    return f"{at.text} ({at.zone})"


def row_of(visit: Visit, campaign: Campaign) -> CampaignRow:
    """Return a campaign as a row."""
    counters = campaign.counters
    ended = counters.total - counters.open
    counts = f"{ended:,} of {counters.total:,} done"
    when, at = _when(campaign)
    clocks = visit.clocks(campaign.timezone)
    return CampaignRow(
        id=campaign.id,
        name=campaign.name,
        url=visit.url("campaign", campaign=campaign.id),
        channel=words.CHANNELS[campaign.channel],
        state=state_of(campaign, visit.now),
        counts=counts,
        ended_share=words.share(ended, counters.total),
        bar=progress(
            [
                Piece(value=ended - counters.failed, tone="good", words="done"),
                Piece(value=counters.failed, tone="bad", words="failed"),
            ],
            total=counters.total,
            label=f"{counts}, {counters.failed:,} failed",
        ),
        when=when,
        at=None if at is None else moment_of(at, visit.now, clocks),
        report_url=visit.url("report", campaign=campaign.id) if campaign.completed_at is not None else "",
    )


def _when(campaign: Campaign) -> tuple[str, datetime | None]:
    """Return the time that says most about a campaign, and what it is."""
    if campaign.completed_at is not None:
        return "Ended", campaign.completed_at
    if campaign.started_at is not None:
        return "Started", campaign.started_at
    if campaign.scheduled_start_at is not None:
        # Without a start by a person nothing begins at that time.
        return "Starts" if campaign.status is CampaignStatus.SCHEDULED else "Planned", campaign.scheduled_start_at
    return "Created", campaign.created_at
