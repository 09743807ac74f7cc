"""Runs of schedules are made once over kills, lost leases and clocks that are set, in one process and in two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest

from outreach.insight import schedule_runs
from outreach.ledger import schedules
from outreach.models.campaign import CampaignCreated
from outreach.models.schedule import Schedule
from outreach.storage.unit_of_work import Transaction
from tests.simulation.driver import simulate
from tests.simulation.faults import Fault
from tests.simulation.invariants.ledger import Broken
from tests.simulation.schedules import ScheduleSimulation

KILLS: tuple[Fault, ...] = ("kill_before_commit", "kill_after_commit", "kill_in_request", "kill_in_look_up")


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("seeds", "kills"),
    [
        # In the first one a person resumes schedules while the clock is ahead.
        ((73, 1), 1),
        pytest.param(range(1_000), 200, marks=pytest.mark.nightly("200 kills of a simulation")),
    ],
    ids=["few", "many"],
)
def test_a_run_is_made_once_over_kills_and_set_clocks(seeds: Sequence[int], kills: int, workers: int) -> None:
    """Until there were so many kills."""
    faults: Counter[Fault] = Counter()
    for seed in seeds:
        faults += simulate(seed, workers=workers, kind=ScheduleSimulation).faults
        if sum(faults[one] for one in KILLS) >= kills and faults["clock_set_back"]:
            break
    assert sum(faults[one] for one in KILLS) >= kills


def make_without_key(patch: pytest.MonkeyPatch) -> None:
    """Record the run in a transaction of its own, after the one that makes its campaign."""
    make, made = schedule_runs.ScheduleRuns._make, dict[tuple[str, datetime], CampaignCreated]()

    def note(guard: Any, tx: Transaction, one: CampaignCreated, **_: Any) -> None:
        made[guard._schedule.id, guard._at] = one

    async def making(self: Any, schedule: Schedule, at: datetime, now: datetime) -> None:
        await make(self, schedule, at, now)
        one = made.pop((schedule.id, at), None)
        if one is not None:
            await self._context.storage.write(
                lambda tx: schedules.record_made(
                    tx, schedule, at, run=one.campaign, contacts=1, now=one.campaign.created_at
                ),
            )

    # Not within `making`: a killed process would not undo it.
    patch.setattr(schedule_runs._RunGuard, "keep", lambda *_: None)
    patch.setattr(schedule_runs._RunGuard, "finish", note)
    patch.setattr(schedule_runs.ScheduleRuns, "_make", making)


@pytest.mark.soak("simulates a broken engine")
@pytest.mark.timeout(1_200)
def test_a_run_that_is_made_without_its_key_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill between making and recording makes it twice."""
    make_without_key(monkeypatch)
    assert any(_finds(seed) for seed in range(100))


def _finds(seed: int) -> bool:
    """Return whether a seed finds that a run was made twice."""
    try:
        simulate(seed, kind=ScheduleSimulation)
    except Broken as broken:
        return "made twice" in str(broken)
    return False
