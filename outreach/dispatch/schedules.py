"""Running schedules: their runs are made by what the engine hands in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime

from outreach.dispatch.worker import Worker
from outreach.ledger.leases.leases import Wanted
from outreach.models.work import WorkUnit

ScheduleRun = Callable[[str, str], Awaitable[datetime | None]]
"""Does what is due for a schedule, by workspace and id; returns when more is to be done, None until it changes."""


class SchedulesRunner:
    """Runs schedules, each in the one worker that drives the single requests of its workspace.

    Two workers that both believe so do no harm: a run is made once under its time.
    """

    def __init__(self, *, worker: Worker, run_schedule: ScheduleRun | None) -> None:
        self._worker = worker
        self._run_schedule = run_schedule

    async def run(self, unit: WorkUnit) -> datetime | None:
        """Do what is due for a schedule; return when it is due next."""
        if self._run_schedule is None:
            return None
        with self._worker.claims.slice(unit) as slice_claims:
            if not await slice_claims.take(Wanted(workspace_id=unit.workspace_id, campaign=None)):
                return None
            return await self._run_schedule(unit.workspace_id, unit.id)
