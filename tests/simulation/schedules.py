"""The same with schedules: each run is made once, whatever is killed and whatever the clocks show."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

import attrs

from outreach.engine import Outreach
from outreach.errors import OutreachError
from outreach.models.campaign import NewRecipient, NewSmsCampaign
from outreach.models.schedule import NewSchedule
from outreach.models.states import CampaignStatus
from outreach.models.workspace import WorkspaceUpdate
from outreach.storage.unit_of_work import Transaction
from tests.simulation.driver import Simulation
from tests.simulation.invariants.ledger import Broken
from tests.simulation.invariants.workspace import Invariants
from tests.simulation.loop import START
from tests.simulation.operators import Operators
from tests.simulation.scenario import SENDER

_TIMES = ("12:13", "12:13", "12:14", "12:14", "12:15", "12:15", "12:16", "12:16")
"""Their campaigns are made in the time of faults, a quarter of an hour before."""

_MOST = 1_000


class ScheduleSimulation(Simulation):
    """Workspaces that have schedules too."""

    async def _tenant(self, engine: Outreach, rng: random.Random) -> tuple[Operators, Invariants]:
        operators, invariants = await super()._tenant(engine, rng)
        scenario, self._operator = operators.scenario, engine
        # A cap, or hours, would let runs wait for longer than the simulation lasts.
        scenario.with_cap = scenario.with_hours = False
        free = WorkspaceUpdate(frequency_cap=None, contact_hours=False)
        await engine.workspaces.update(scenario.workspace_id, free)
        template = NewSmsCampaign(name="Template", body="Again", carrier="twilio", from_number=SENDER)
        people = [NewRecipient(phone_number=phone) for phone in scenario.people[:2]]
        made = await engine.campaigns.create_sms(scenario.workspace_id, template, people)
        for number, at in enumerate(_TIMES):
            new = NewSchedule(
                name=f"Schedule {number}",
                template_id=made.campaign.id,
                rule="FREQ=DAILY",
                zone="UTC",
                starts_on=START.date(),
                at=at,
                overlap="allow",
                late_hours=168,
            )
            await engine.schedules.create(scenario.workspace_id, new)
        return operators, invariants

    async def _run_without_faults(self, everybody: Sequence[tuple[Operators, Invariants]]) -> None:
        for operators, _ in everybody:
            scenario = operators.scenario
            runs = await self._runs(scenario.workspace_id)
            scenario.campaign_ids += [one for one in runs if one not in scenario.campaign_ids]
            async for schedule in self._operator.schedules.iter_all(scenario.workspace_id):
                # One that has stopped after a move goes on.
                with suppress(OutreachError):
                    await self._operator.schedules.resume(scenario.workspace_id, schedule.id)
        await super()._run_without_faults(everybody)
        for operators, _ in everybody:
            workspace_id = operators.scenario.workspace_id
            self._database.read(lambda tx, one=workspace_id: check_runs(tx, one))  # type: ignore[misc]

    async def _runs(self, workspace_id: str) -> list[str]:
        schedules = self._operator.schedules
        return [
            one.run_id
            async for schedule in schedules.iter_all(workspace_id)
            async for one in schedules.iter_occurrences(workspace_id, schedule.id)
            if one.run_id is not None
        ]


def check_runs(tx: Transaction, workspace_id: str) -> None:
    """Check that each run of a schedule has one campaign, and each campaign of a schedule is a run.

    A campaign that was cancelled before it began does not count: a run that a clock made too early is made again.

    Raises:
        Broken: It has not.
    """
    stored, _ = tx.campaign_lists.page(workspace_id, limit=_MOST)
    runs = [campaign for one in stored if (campaign := one.campaign()).name.startswith("Schedule ")]
    withdrawn = {one.id for one in runs if one.status is CampaignStatus.CANCELLED and one.started_at is None}
    made = {one.id: one.name for one in runs if one.id not in withdrawn}
    twice = [name for name, count in Counter(made.values()).items() if count > 1]
    if twice:
        raise Broken(f"A run of a schedule was made twice: {twice}.")
    known = {
        one.run_id: one
        for schedule in tx.schedules.list(workspace_id)
        for one in tx.occurrences.page(workspace_id, schedule.id, limit=_MOST)
        if one.run_id is not None and one.run_id not in withdrawn
    }
    if known.keys() != made.keys():
        raise Broken("A run of a schedule was made twice, or its campaign is not there: it is not recorded once.")
    undecided = [attrs.asdict(one) for one in known.values() if one.state == "made"]
    if undecided:
        raise Broken(f"A run of a schedule was made and never decided about: {undecided[0]}.")
