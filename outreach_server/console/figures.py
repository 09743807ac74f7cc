"""The figures of a campaign that a page shows: slow ones are read less often, however many pages show them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Final

import attrs

from outreach import Campaign, Outreach
from outreach.errors import Problem
from outreach.models import (
    AuditEntry,
    CampaignNow,
    CampaignProgress,
    CampaignReport,
    Channel,
    Forecast,
    ForecastAssumptions,
    ForecastPhase,
    KeptForecast,
    StartApproval,
)
from outreach.protocols import Clock
from outreach.server_support import JoinedReads
from outreach_server.console.people import names_of

MAX_KEPT: Final = 100
"""Campaigns whose figures are kept."""

MAX_CHANGES: Final = 6
"""Changes that are shown."""

_SHARE: Final = 20.0
"""A slow read may take at most a twentieth of the time."""

_AUDIT_ENTRIES: Final = 100
"""The number of the workspace's newest entries in which the campaign's are looked for."""

_HOUR: Final = timedelta(hours=1)
PROGRESS_SECONDS: Final = 0.8
FORECAST_SECONDS: Final = 10.0


@attrs.frozen(kw_only=True)
class Figures:
    """A campaign with all its figures.

    Attributes:
        report: Its figures of one snapshot of the ledger; they add up.
        now: Its activity, or the reason why it waits.
        progress: Its requests by time.
        planned: Its forecasts as they were at its start and after each change, oldest first.
        waits: When the first contact that waits is due, by state and reason.
        forecast: When it will be done; None after its end.
        missing: The problems that prevent its start, if it has not started.
        awaits_approval: Whether people wait for a second person before they can start it.
        changes: The latest changes by people and the engine, newest first.
        people: The names of their actors, by the actor.
    """

    campaign: Campaign
    report: CampaignReport
    now: CampaignNow
    progress: CampaignProgress
    planned: Sequence[KeptForecast]
    waits: Mapping[tuple[str, str | None], datetime]
    forecast: Forecast | None
    missing: Sequence[Problem]
    awaits_approval: bool
    changes: Sequence[AuditEntry]
    people: Mapping[str, str]


@attrs.define
class _Kept:
    results: tuple[CampaignReport, CampaignProgress] | None = None
    results_again: float = 0.0
    forecast: Forecast | None = None
    forecast_again: float = 0.0
    forecast_state: object = None
    approval: StartApproval | None = None
    approval_again: float = 0.0
    progress: CampaignProgress | None = None
    progress_again: float = 0.0


class FigureReader:
    """Reads the figures of campaigns.

    Args:
        clock: The source of time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[tuple[str, str], _Kept] = {}

    async def read(self, engine: Outreach, known: Campaign, *, is_first: bool = False) -> Figures:
        """Return the figures of a campaign, of one snapshot but for those that are kept for a moment.

        Args:
            engine: The engine.
            known: The campaign as it was a moment ago, which decides what is read.
            is_first: Whether it is for the first paint of a page: of a campaign that has started, the forecast is then
                the one that is kept with it, until a newer one has been worked out for those who watch.
        """
        place = (known.workspace_id, known.id)
        campaigns, may_start = engine.campaigns, not (known.started_at or known.is_terminal)
        kept = self._kept_of(place)
        async with JoinedReads() as reads:
            campaign = reads.start(campaigns.get(*place))
            doing = reads.start(campaigns.now(*place))
            results = reads.start(self._results(engine, known, kept))
            changed = reads.start(_changes(engine, *place))
            planned = reads.start(campaigns.forecasts(*place))
            waits = None if known.is_terminal else reads.start(campaigns.next_due_times(*place))
            missing = reads.start(campaigns.start_problems(*place)) if may_start else None
            approval = reads.start(self._awaits_approval(engine, known, kept))
            forecast = reads.start(self._forecast(engine, known, kept)) if may_start or not is_first else None
        report, progress = results.result()
        changes, people = changed.result()
        newest = kept.forecast if forecast is None else forecast.result()
        if newest is None and planned.result() and not known.is_terminal:
            newest = what_is_left(planned.result()[-1], known.channel, report.at)
        return Figures(
            campaign=campaign.result(),
            report=report,
            now=doing.result(),
            progress=progress,
            planned=planned.result(),
            waits={} if waits is None else waits.result(),
            forecast=None if known.is_terminal else newest,
            missing=() if missing is None else missing.result(),
            awaits_approval=approval.result(),
            changes=changes,
            people=people,
        )

    async def progress(self, engine: Outreach, workspace_id: str, campaign_id: str) -> CampaignProgress:
        """Return the requests of a campaign by time, as they were a moment ago."""
        kept = self._kept_of((workspace_id, campaign_id))
        began = self._clock.monotonic()
        found = kept.progress
        if found is None or began >= kept.progress_again:
            found = kept.progress = await engine.campaigns.progress(workspace_id, campaign_id)
            took = self._clock.monotonic() - began
            kept.progress_again = began + max(PROGRESS_SECONDS, took * _SHARE)
        return found

    def _kept_of(self, place: tuple[str, str]) -> _Kept:
        kept = self._kept.pop(place, None) or _Kept()
        self._kept[place] = kept
        if len(self._kept) > MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        return kept

    async def _results(self, engine: Outreach, known: Campaign, kept: _Kept) -> tuple[CampaignReport, CampaignProgress]:
        began = self._clock.monotonic()
        old = kept.results
        if old is None or began >= kept.results_again or old[0].status != known.status:
            place = (known.workspace_id, known.id)
            old = kept.results = await asyncio.gather(
                engine.campaigns.report(*place), engine.campaigns.progress(*place)
            )
            took = self._clock.monotonic() - began
            kept.results_again = began + max(PROGRESS_SECONDS, took * _SHARE)
        return old

    async def _awaits_approval(self, engine: Outreach, known: Campaign, kept: _Kept) -> bool:
        if known.started_at is not None or known.is_terminal:
            return False
        began = self._clock.monotonic()
        old = kept.approval
        if old is None or old.revision != known.revision or began >= kept.approval_again:
            old = kept.approval = await engine.campaigns.approval(known.workspace_id, known.id)
            took = self._clock.monotonic() - began
            kept.approval_again = began + max(PROGRESS_SECONDS, took * _SHARE)
        return old.is_missing

    async def _forecast(self, engine: Outreach, known: Campaign, kept: _Kept) -> Forecast | None:
        if known.is_terminal:
            return None
        began = self._clock.monotonic()
        state = (known.status, known.revision)
        if state != kept.forecast_state or began >= kept.forecast_again:
            kept.forecast = await engine.campaigns.forecast(known.workspace_id, known.id)
            took = self._clock.monotonic() - began
            kept.forecast_again = began + max(FORECAST_SECONDS, took * _SHARE)
            kept.forecast_state = state
        return kept.forecast


async def _changes(
    engine: Outreach, workspace_id: str, campaign_id: str
) -> tuple[Sequence[AuditEntry], Mapping[str, str]]:
    """Return what was done with a campaign lately, newest first, and who did it."""
    audit = await engine.audit.list(workspace_id, limit=_AUDIT_ENTRIES)
    changes = [one for one in audit.items if one.subject == campaign_id][:MAX_CHANGES]
    return changes, await names_of(engine, (one.actor for one in changes))


def what_is_left(kept: KeptForecast, channel: Channel, now: datetime) -> Forecast | None:
    """Return what is left of a forecast that was made before; None if its steps are longer than an hour."""
    if kept.step_hours != 1:
        return None
    hours = []
    for one in kept.hours:
        # Requests begin and end within the first and the last hour.
        begins_at, ends_at = max(one.at, kept.at), one.at + _HOUR
        if kept.ends_at is not None:
            ends_at = max(min(ends_at, kept.ends_at), begins_at)
        left, lasts = ends_at - max(now, begins_at), ends_at - begins_at
        if left > timedelta():
            hours.append(attrs.evolve(one, requests=round(one.requests * (left / lasts))))
    phases: list[ForecastPhase] = []
    for rule, some in groupby(hours, key=lambda one: one.bound_by):
        part = list(some)
        phases.append(
            ForecastPhase(
                begins_at=part[0].at,
                ends_at=part[-1].at + _HOUR,
                bound_by=rule,
                requests=sum(one.requests for one in part),
            )
        )
    return Forecast(
        campaign_id=kept.campaign_id,
        channel=channel,
        at=now,
        starts_at=kept.starts_at,
        ends_at=kept.ends_at,
        contacts=kept.contacts,
        requests=sum(one.requests for one in hours),
        unreached=kept.unreached,
        held=kept.held,
        expires=kept.expires,
        hours=hours,
        phases=phases,
        shared_with=0,
        assumptions=ForecastAssumptions(),
        measured=(),
        sampled=False,
    )
