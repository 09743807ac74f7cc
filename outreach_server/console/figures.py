"""The figures of a campaign that a page shows: slow ones are read less often, however many pages show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

import attrs

from outreach import Campaign, Outreach
from outreach.errors import Problem
from outreach.models import (
    AuditEntry,
    CampaignNow,
    CampaignProgress,
    CampaignReport,
    Forecast,
    KeptForecast,
    StartApproval,
)
from outreach.protocols import Clock
from outreach_server.console.people import names_of

MAX_KEPT: Final = 100
"""Campaigns whose figures are kept."""

MAX_CHANGES: Final = 6
"""Changes that are shown."""

_SHARE: Final = 20.0
"""What is slow may take at most a twentieth of the time."""

_AUDIT_ENTRIES: Final = 100
"""The workspace's newest entries, of which those of the campaign are taken."""

COURSE_SECONDS: Final = 0.8
FORECAST_SECONDS: Final = 10.0


@attrs.frozen(kw_only=True)
class Figures:
    """A campaign with all its figures.

    Attributes:
        report: Its figures of one snapshot of the ledger; they add up.
        now: What it does or waits for.
        progress: Its requests by time.
        planned: Its forecasts as they were at its start and after each change, oldest first.
        waits: When the first contact that waits is due, by state and reason.
        forecast: When it will be done; None after its end.
        missing: What prevents its start, if it has not started.
        awaits_approval: Whether people wait for a second person before they can start it.
        changes: What people and the engine did with it lately, newest first.
        people: Who did it, by the actor of the change.
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
    course: tuple[CampaignReport, CampaignProgress] | None = None
    course_again: float = 0.0
    forecast: Forecast | None = None
    forecast_again: float = 0.0
    forecast_state: object = None
    approval: StartApproval | None = None
    approval_again: float = 0.0


class FigureReader:
    """Reads the figures of campaigns.

    Args:
        clock: Where the time comes from.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[tuple[str, str], _Kept] = {}

    async def read(self, engine: Outreach, workspace_id: str, campaign_id: str) -> Figures:
        """Return the figures of a campaign.

        Raises:
            NotFound: The workspace has no such campaign.
        """
        place = (workspace_id, campaign_id)
        campaign = await engine.campaigns.get(*place)
        kept = self._kept.pop(place, None) or _Kept()
        self._kept[place] = kept
        if len(self._kept) > MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        doing = await engine.campaigns.now(*place)
        report, progress = await self._course(engine, campaign, kept)
        audit = await engine.audit.list(workspace_id, limit=_AUDIT_ENTRIES)
        changes = [one for one in audit.items if one.subject == campaign_id][:MAX_CHANGES]
        return Figures(
            campaign=campaign,
            report=report,
            now=doing,
            progress=progress,
            planned=await engine.campaigns.forecasts(*place),
            waits={} if campaign.is_terminal else await engine.campaigns.next_due_times(*place),
            forecast=await self._forecast(engine, campaign, doing.rule, kept),
            missing=()
            if campaign.started_at or campaign.is_terminal
            else await engine.campaigns.start_problems(*place),
            awaits_approval=await self._awaits_approval(engine, campaign, kept),
            changes=changes,
            people=await names_of(engine, (one.actor for one in changes)),
        )

    async def _course(
        self, engine: Outreach, campaign: Campaign, kept: _Kept
    ) -> tuple[CampaignReport, CampaignProgress]:
        began = self._clock.monotonic()
        old = kept.course
        if old is None or began >= kept.course_again or old[0].status != campaign.status:
            place = (campaign.workspace_id, campaign.id)
            old = kept.course = await engine.campaigns.report(*place), await engine.campaigns.progress(*place)
            took = self._clock.monotonic() - began
            kept.course_again = began + max(COURSE_SECONDS, took * _SHARE)
        return old

    async def _awaits_approval(self, engine: Outreach, campaign: Campaign, kept: _Kept) -> bool:
        if campaign.started_at is not None or campaign.is_terminal:
            return False
        began = self._clock.monotonic()
        old = kept.approval
        if old is None or old.revision != campaign.revision or began >= kept.approval_again:
            old = kept.approval = await engine.campaigns.approval(campaign.workspace_id, campaign.id)
            took = self._clock.monotonic() - began
            kept.approval_again = began + max(COURSE_SECONDS, took * _SHARE)
        return old.is_missing

    async def _forecast(self, engine: Outreach, campaign: Campaign, rule: str, kept: _Kept) -> Forecast | None:
        if campaign.is_terminal:
            return None
        began = self._clock.monotonic()
        state = (campaign.status, campaign.revision, rule)
        if state != kept.forecast_state or began >= kept.forecast_again:
            kept.forecast = await engine.campaigns.forecast(campaign.workspace_id, campaign.id)
            took = self._clock.monotonic() - began
            kept.forecast_again = began + max(FORECAST_SECONDS, took * _SHARE)
            kept.forecast_state = state
        return kept.forecast
