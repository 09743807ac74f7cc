"""Schedules, and what became of their runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from outreach.core.clock import format_timestamp
from outreach.models.schedule import Occurrence, Schedule
from outreach.serialization.documents import Value
from outreach.storage.unit_of_work.kinds import CAMPAIGNS, DISPATCHES, OCCURRENCES, RECIPIENTS, SCHEDULES
from outreach.storage.unit_of_work.tables.base import LAST, KindTable, WorkspaceTable


class Schedules(WorkspaceTable[Schedule]):
    """Schedules of all workspaces."""

    def paused(self, workspace_id: str | None, *, limit: int) -> Sequence[Schedule]:
        """Return schedules of a workspace, or of all, that the engine has paused."""
        return self._list(SCHEDULES, "schedules.paused", workspace_id=workspace_id, limit=limit)

    def blocked(self, workspace_id: str | None, *, limit: int) -> Sequence[Schedule]:
        """Return schedules of a workspace, or of all, that are not paused and whose latest run was not started."""
        return self._list(SCHEDULES, "schedules.blocked", workspace_id=workspace_id, limit=limit)


class Occurrences(KindTable[Occurrence]):
    """One row for a time of a schedule; (workspace, schedule, time) is unique."""

    def get(self, workspace_id: str, schedule_id: str, at: datetime) -> Occurrence | None:
        """Return what became of a run."""
        return self._rows.get(OCCURRENCES, (workspace_id, schedule_id, format_timestamp(at)))

    def page(
        self, workspace_id: str, schedule_id: str, *, before: datetime | None = None, limit: int
    ) -> Sequence[Occurrence]:
        """Return the runs of a schedule before a time, the latest first."""
        return self._list(
            OCCURRENCES,
            "occurrences.page",
            workspace_id=workspace_id,
            schedule_id=schedule_id,
            before=LAST if before is None else format_timestamp(before),
            limit=limit,
        )

    def made(self, workspace_id: str, schedule_id: str) -> Occurrence | None:
        """Return the run whose campaign was made and is not yet decided about."""
        return self._one(OCCURRENCES, "occurrences.made", workspace_id=workspace_id, schedule_id=schedule_id)

    def last_with_campaign(self, workspace_id: str, schedule_id: str, *, until: datetime) -> Occurrence | None:
        """Return the latest run up to a time for which a campaign was made."""
        return self._one(
            OCCURRENCES,
            "occurrences.last_with_campaign",
            workspace_id=workspace_id,
            schedule_id=schedule_id,
            until=format_timestamp(until),
        )

    def of_run(self, workspace_id: str, run_id: str) -> Occurrence | None:
        """Return the run whose campaign this is; None for a campaign of no schedule."""
        return self._one(OCCURRENCES, "occurrences.of_run", workspace_id=workspace_id, run_id=run_id)

    def left_out_by(self, workspace_id: str, run_id: str, *, now: datetime) -> str | None:
        """Return the name of the schedule that still leaves out whom a run has reached; None without one."""
        given: dict[str, Value] = {"workspace_id": workspace_id, "run_id": run_id, "now": format_timestamp(now)}
        rows = self._rows.query("occurrences.left_out_by", OCCURRENCES, SCHEDULES, CAMPAIGNS, **given)
        return rows[0][0] if rows else None

    def contacted(
        self, workspace_id: str, schedule_id: str, phones: Collection[str], *, since: datetime
    ) -> frozenset[str]:
        """Return those of the numbers (at most 1,000) to whose person runs have a request since a moment, or will."""
        return self._persons_among(
            "occurrences.contacted",
            *(DISPATCHES, OCCURRENCES, CAMPAIGNS, RECIPIENTS),
            workspace_id=workspace_id,
            phones=phones,
            schedule_id=schedule_id,
            since=format_timestamp(since),
        )
