"""A snapshot of a campaign: its progress, what it waits for and why, and the outcomes of its messages."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import attrs

from outreach import Campaign, CampaignStatus, Outreach, RecipientStatus
from outreach.errors import Problem
from outreach.models import DispatchCount, Forecast, RecipientCount
from outreach.protocols import Clock, SystemClock
from outreach.reasons import PAUSE_REASONS, SAFE_RESUME_OPTIONS
from outreach_server.cli import documents
from outreach_server.cli.durations import until_text
from outreach_server.cli.problems import explain_start, problem_text

_SHARE: Final = 20.0
"""Slow queries may take at most a twentieth of the time."""

FORECAST_SECONDS: Final = 10.0
"""A forecast is computed again after this long, or when the campaign's state has changed."""

_NOT_STARTED: Final = frozenset({CampaignStatus.DRAFT, CampaignStatus.READY})
_IN_FLIGHT: Final = frozenset({RecipientStatus.DISPATCHING, RecipientStatus.IN_PROGRESS, RecipientStatus.UNKNOWN})


@attrs.frozen(kw_only=True)
class Snapshot:
    """A campaign at one moment.

    Attributes:
        blockers: The problems that block it.
        waits: When the first waiting recipient is due, for each state and reason with a known time.
        sent: Its requests by outcome.
        missing: The problems that prevent its start, if it has not started.
        forecast: When it will be done; None if it was not asked for, or nothing is left.
        at: When it was taken.
        pace_per_minute: Contacts that were begun per minute, lately; None before it is measured.
        paces: The same at earlier moments, oldest first.
        eta_seconds: The remaining time at this pace; None without progress.
    """

    campaign: Campaign
    groups: Sequence[RecipientCount]
    blockers: Sequence[Problem] = ()
    waits: Mapping[tuple[str, str | None], datetime] = attrs.field(factory=dict)
    sent: Sequence[DispatchCount] = ()
    missing: Sequence[Problem] = ()
    forecast: Forecast | None = None
    at: datetime
    pace_per_minute: float | None = None
    paces: Sequence[float] = ()
    eta_seconds: float | None = None

    @property
    def state(self) -> object:
        """The state whose changes a person has to see at once."""
        return self.campaign.status, self.campaign.pause_reason, tuple(blocker.code for blocker in self.blockers)

    @property
    def ended(self) -> int:
        """Recipients that have ended."""
        counters = self.campaign.counters
        return counters.total - counters.open

    @property
    def in_flight(self) -> int:
        """Recipients with a request or a call on its way."""
        return sum(group.count for group in self.groups if group.status in _IN_FLIGHT)

    @property
    def documents(self) -> list[documents.Document]:
        """The numbers of recipients by state and reason, with when they are due."""
        shown = [documents.group(group, self.campaign, self.waits) for group in self.groups]
        counts = message_counts(self.campaign, self.sent)
        for document in shown:
            if counts is not None and (document["status"], document["reason"]) == ("completed", None):
                document["why"] = _how_sent(counts)
        return shown


@attrs.define
class SnapshotReader:
    """Reads snapshots of a campaign; slow queries of a large one run less often.

    With `forecasts` it looks ahead too.
    """

    _engine: Outreach
    _workspace_id: str
    _campaign_id: str
    _clock: Clock = attrs.field(factory=SystemClock)
    _forecasts: bool = attrs.field(default=False, kw_only=True)
    _sent: Sequence[DispatchCount] = ()
    _again_at: float = 0.0
    _forecast: Forecast | None = attrs.field(default=None, init=False)
    _foreseen_state: object = attrs.field(default=None, init=False)
    _foresees_again_at: float = attrs.field(default=0.0, init=False)

    async def now(self) -> Snapshot:
        """Return the current snapshot, without its pace."""
        engine, place = self._engine, (self._workspace_id, self._campaign_id)
        # In this order, so that an ended campaign is shown with its final counts.
        campaign = await engine.campaigns.get(*place)
        groups = await engine.campaigns.count_recipients(*place)
        began = time.monotonic()
        if campaign.is_terminal or began >= self._again_at:
            self._sent = await engine.campaigns.count_dispatches(*place)
            took = time.monotonic() - began
            self._again_at = began + took * _SHARE
        snapshot = Snapshot(
            campaign=campaign,
            groups=groups,
            blockers=await engine.campaigns.blockers(*place),
            waits=await engine.campaigns.next_due_times(*place),
            sent=self._sent,
            missing=await engine.campaigns.start_problems(*place) if campaign.status in _NOT_STARTED else (),
            at=self._clock.now(),
        )
        return attrs.evolve(snapshot, forecast=await self._look_ahead(snapshot)) if self._forecasts else snapshot

    async def _look_ahead(self, snapshot: Snapshot) -> Forecast | None:
        began = self._clock.monotonic()
        if snapshot.campaign.is_terminal:
            self._forecast = None
        elif snapshot.state != self._foreseen_state or began >= self._foresees_again_at:
            self._forecast = await self._engine.campaigns.forecast(self._workspace_id, self._campaign_id)
            took = self._clock.monotonic() - began
            self._foresees_again_at = began + max(FORECAST_SECONDS, took * _SHARE)
        self._foreseen_state = snapshot.state
        return self._forecast


def hints(snapshot: Snapshot) -> list[str]:
    """Return a line for each thing that a person has to know or do before a campaign continues."""
    campaign = snapshot.campaign
    paused = PAUSE_REASONS.get(campaign.pause_reason or "")
    waits_for = explain_start(snapshot.missing, campaign) if snapshot.missing else waiting_text(campaign, snapshot.at)
    return [
        *([f"It is paused: {paused}."] if paused else []),
        *([waits_for] if waits_for is not None else []),
        *(problem_text(blocker, snapshot.at, campaign.timezone) for blocker in snapshot.blockers),
    ]


def message_counts(campaign: Campaign, sent: Sequence[DispatchCount]) -> dict[str, int] | None:
    """Return a campaign's messages by outcome; None for calls. Retries and each message of a flow count."""
    if campaign.channel == "call":
        return None
    counts = dict.fromkeys(("accepted", "delivered", "failed", "unknown", "unconfirmed"), 0)
    for group in sent:
        if group.state == "accepted":
            name = str(group.report) if group.report in {"delivered", "failed"} else "accepted"
            counts[name] += group.count
        elif group.state == "refused":
            counts["failed"] += group.count
        elif group.state == "unknown":
            counts["unknown"] += group.count
        elif group.state in {"unconfirmed", "given_up"}:
            counts["unconfirmed"] += group.count
    return counts


def _how_sent(counts: Mapping[str, int]) -> str:
    """Describe sent messages: an accepted one is not yet delivered."""
    if not counts["delivered"]:
        return "sent, not yet confirmed"
    return "sent, and some of it not yet confirmed" if counts["accepted"] else "sent and confirmed"


def messages_text(campaign: Campaign, sent: Sequence[DispatchCount]) -> str:
    """Return a campaign's messages by outcome in a line; empty if there are none."""
    counts = message_counts(campaign, sent)
    if counts is None or not any(counts.values()):
        return ""
    words = {
        "delivered": "delivered",
        "accepted": "sent, not yet confirmed",
        "failed": "failed",
        "unknown": "outcome unknown",
        "unconfirmed": "never confirmed",
    }
    return "Messages: " + ", ".join(f"{counts[name]} {words[name]}" for name in words if counts[name])


def waiting_text(campaign: Campaign, now: datetime) -> str | None:
    """Return what has to happen before a campaign continues; None if no action is needed."""
    match campaign.status:
        case CampaignStatus.DRAFT:
            return f"It is not ready yet: finish it with outreach-server campaigns update {campaign.id}"
        case CampaignStatus.READY:
            return f"It waits to be started: outreach-server campaigns start {campaign.id}"
        case CampaignStatus.SCHEDULED:
            start = campaign.scheduled_start_at
            return (
                f"A running server starts it at {until_text(start, now, campaign.timezone)}."
                if start is not None
                else None
            )
        case CampaignStatus.PAUSED:
            resumed = f"It waits to be resumed: outreach-server campaigns resume {campaign.id}"
            option = SAFE_RESUME_OPTIONS.get(campaign.pause_reason or "")
            return resumed if option is None else f"{resumed} {option}, so that nobody is contacted twice"
        case _:
            return None
