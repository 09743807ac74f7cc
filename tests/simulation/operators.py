"""What operators, owners and contacts do while the engine works."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from outreach.engine import Outreach
from outreach.errors import CannotStart
from outreach.models.call import NewCall
from outreach.models.campaign import Campaign, CampaignUpdate
from outreach.models.message import NewMessage
from outreach.models.settings import SmsSettingsUpdate
from outreach.models.states import CampaignStatus, WorkspaceStatus
from outreach.models.workspace import WorkspaceUpdate
from tests.simulation.faults import Fault, Faults
from tests.simulation.invariants.ledger import Subject, subject_of
from tests.simulation.scenario import SENDER, Scenario
from tests.simulation.world import World

_WEIGHTS: Final[Mapping[Fault, int]] = {
    "pause": 3,
    "resume": 28,
    "start": 12,
    "cancel": 1,
    "unschedule": 3,
    "update": 4,
    "opt_out": 2,
    "opt_in": 2,
    "suspend": 2,
    "settings": 2,
    "rules": 1,
    "operator_retry": 12,
    "assume_sent": 3,
    "reply": 2,
    "stop": 2,
    "start_again": 2,
    "single_message": 6,
    "single_call": 4,
    "outage": 4,
}
_STOPS: Final[Mapping[Fault, int]] = {"pause": 6, "opt_out": 1, "suspend": 2, "settings": 1}


class Operators:
    """Does one thing at a time, drawn from a source of randomness.

    Args:
        engine: An engine of theirs, that does not dispatch.
        scenario: The workspace and its people.
        world: The providers; operators start their outages.
        rng: Decides what they do.
        faults: Counts what they did.
        retries: Gets the retries that they ask for, by subject and step.
        elapsed: Seconds since the beginning.

    Attributes:
        scenario: The same.
    """

    def __init__(
        self,
        *,
        engine: Outreach,
        scenario: Scenario,
        world: World,
        rng: random.Random,
        faults: Faults,
        retries: Counter[tuple[Subject, int]],
        elapsed: Callable[[], float],
    ) -> None:
        self._engine = engine
        self.scenario = scenario
        self._world = world
        self._rng = rng
        self._faults = faults
        self._retries = retries
        self._elapsed = elapsed
        self._active_again = 0.0
        self._actions: Mapping[Fault, Callable[[], Awaitable[bool]]] = {
            "pause": lambda: self._move(engine.campaigns.pause, CampaignStatus.ACTIVE, CampaignStatus.SCHEDULED),
            "resume": lambda: self._move(engine.campaigns.resume, CampaignStatus.PAUSED),
            "start": lambda: self._move(engine.campaigns.start, CampaignStatus.READY),
            "cancel": lambda: self._move(engine.campaigns.cancel, CampaignStatus.ACTIVE, CampaignStatus.PAUSED),
            "unschedule": lambda: self._move(engine.campaigns.unschedule, CampaignStatus.SCHEDULED),
            "update": self._update,
            "opt_out": self._opt_out,
            "opt_in": self._opt_in,
            "suspend": self._suspend,
            "settings": self._change_settings,
            "rules": self._change_rules,
            "operator_retry": self._retry,
            "assume_sent": self._assume_sent,
            "reply": lambda: self._write("Sounds good"),
            "stop": lambda: self._write("STOP"),
            "start_again": lambda: self._write("START"),
            "single_message": self._message,
            "single_call": self._call,
            "outage": self._outage,
        }

    async def do_something(self, *, stop: bool) -> None:
        """Do what is due, and one more thing.

        Args:
            stop: Whether that is to stop something.

        Raises:
            OutreachError: The engine refuses it, as it may.
        """
        await self._restore_due(self._elapsed())
        weights = _STOPS if stop else _WEIGHTS
        [what] = self._rng.choices(list(weights), weights=list(weights.values()))
        # An outage counts when a request meets it.
        if await self._actions[what]() and what != "outage":
            self._faults.note(what)

    async def restore_all(self) -> None:
        """End every outage and suspension."""
        await self._restore_due(float("inf"))

    async def resume_all(self) -> bool:
        """Start and resume what does not go on by itself; return whether everything has ended."""
        ended = True
        for campaign in await self._campaigns():
            if campaign.status is CampaignStatus.PAUSED:
                await self._engine.campaigns.resume(campaign.workspace_id, campaign.id)
            elif campaign.status is CampaignStatus.READY:
                try:
                    await self._engine.campaigns.start(campaign.workspace_id, campaign.id)
                except CannotStart:
                    # Its expiry has passed, which leaves a campaign that never started as it is.
                    await self._engine.campaigns.cancel(campaign.workspace_id, campaign.id)
            ended = ended and campaign.is_terminal and campaign.counters.open == 0
        return ended

    async def _restore_due(self, now: float) -> None:
        if self._world.works_again <= now:
            self._world.trouble = None
        if 0.0 < self._active_again <= now:
            self._active_again = 0.0
            change = WorkspaceUpdate(status=WorkspaceStatus.ACTIVE)
            await self._engine.workspaces.update(self.scenario.workspace_id, change)

    async def _campaigns(self) -> list[Campaign]:
        return [
            await self._engine.campaigns.get(self.scenario.workspace_id, campaign_id)
            for campaign_id in self.scenario.campaign_ids
        ]

    async def _move(self, move: Callable[[str, str], Awaitable[object]], *statuses: CampaignStatus) -> bool:
        fitting = [campaign for campaign in await self._campaigns() if campaign.status in statuses]
        if fitting:
            await move(self.scenario.workspace_id, self._rng.choice(fitting).id)
        return bool(fitting)

    async def _update(self) -> bool:
        fitting = [one for one in await self._campaigns() if one.status is CampaignStatus.READY and one.carrier]
        if fitting:
            change = CampaignUpdate(rate_per_minute=self._rng.choice((10, 60)))
            await self._engine.campaigns.update(self.scenario.workspace_id, self._rng.choice(fitting).id, change)
        return bool(fitting)

    async def _opt_out(self) -> bool:
        who = self.scenario.workspace_id, self._rng.choice(self.scenario.people)
        self._world.records.opted_out.add(who)
        await self._engine.unsubscribes.add(*who)
        return True

    async def _opt_in(self) -> bool:
        people = self.scenario.people[:3]
        self._world.records.lifted.update((self.scenario.workspace_id, person) for person in people)
        return bool(await self._engine.unsubscribes.remove(self.scenario.workspace_id, *people))

    async def _suspend(self) -> bool:
        change = WorkspaceUpdate(status=WorkspaceStatus.SUSPENDED)
        await self._engine.workspaces.update(self.scenario.workspace_id, change)
        long = self._rng.random() < 0.4
        self._active_again = self._elapsed() + (self._rng.uniform(35, 60) if long else self._rng.uniform(0, 10))
        return True

    async def _change_settings(self) -> bool:
        change = SmsSettingsUpdate(footer_enabled=self._rng.random() < 0.5, retry_enabled=self._rng.random() < 0.5)
        await self._engine.sms_settings.update(self.scenario.workspace_id, change)
        return True

    async def _change_rules(self) -> bool:
        """Change the rules of contact of a workspace that has some."""
        workspace = await self._engine.workspaces.get(self.scenario.workspace_id)
        if self.scenario.with_hours:
            change = WorkspaceUpdate(contact_hours=not workspace.contact_hours)
        elif self.scenario.with_cap:
            change = WorkspaceUpdate(frequency_cap=self._rng.choice((1, 2, 3)))
        else:
            return False
        await self._engine.workspaces.update(self.scenario.workspace_id, change)
        return True

    async def _retry(self) -> bool:
        return await self._resolve(retry=True)

    async def _assume_sent(self) -> bool:
        return await self._resolve(retry=False)

    async def _resolve(self, *, retry: bool) -> bool:
        unknown = await self._engine.dispatches.list_unknown(self.scenario.workspace_id, limit=1)
        if not unknown:
            return False
        dispatch = unknown.items[0]
        if retry:
            # Counted before: the second request may begin before this call is back. One that is refused allows
            # nothing.
            self._retries[subject_of(dispatch), dispatch.step] += 1
        decided = self._world.records.decided
        decided[dispatch.id] = "retry" if retry else "assume_sent"
        try:
            await self._engine.dispatches.resolve(self.scenario.workspace_id, dispatch.id, decided[dispatch.id])
        except BaseException:
            del decided[dispatch.id]
            if retry:
                self._retries[subject_of(dispatch), dispatch.step] -= 1
            raise
        return True

    async def _write(self, body: str) -> bool:
        """Have a contact write a message; counted before, because what it does may be seen before this call is back."""
        person = self._rng.choice(self.scenario.people)
        records = self._world.records
        counted = {"STOP": records.stops, "START": records.lifted}.get(body)
        if counted is not None:
            counted[self.scenario.workspace_id, person] += 1
        await self._engine.messages.receive(self.scenario.workspace_id, from_number=person, to=SENDER, body=body)
        return True

    async def _message(self) -> bool:
        new = NewMessage(to=self._rng.choice(self.scenario.people), body="Hello", from_number=SENDER)
        await self._engine.messages.send(self.scenario.workspace_id, new)
        return True

    async def _call(self) -> bool:
        new = NewCall(agent_id=self.scenario.agent_id, to=self._rng.choice(self.scenario.people))
        await self._engine.calls.create(self.scenario.workspace_id, new)
        return True

    async def _outage(self) -> bool:
        self._world.trouble = self._rng.choice(("rejected", "rejected", "provider_auth", "provider_funds", "dropped"))
        self._world.trouble_rate = self._rng.choice((1.0, 1.0, 0.6))
        self._world.works_again = self._elapsed() + self._rng.uniform(20, 60)
        return True
