"""One simulation: a seed decides everything that happens, and the invariants are checked at every step."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal

import anyio
import attrs

from outreach.config import EngineConfig
from outreach.engine import Outreach
from outreach.errors import OutreachError
from outreach.models.campaign import Campaign, NewCallCampaign, NewSmsCampaign
from outreach.models.directory import FlowStep
from outreach.models.recipient import NewRecipient
from outreach.models.settings import SmsSettingsChange
from outreach.models.states import WorkspaceStatus
from outreach.operations.workspaces import WorkspaceChange
from outreach.testing.simulation.faults import Fault, Faults
from outreach.testing.simulation.invariants import Broken, Invariants
from outreach.testing.simulation.loop import VirtualClock, VirtualLoop
from outreach.testing.simulation.storage import Database, Machine, MemoryDatabase, ProcessStorage, SqliteDatabase
from outreach.testing.simulation.world import Link, World, WorldCarrier, WorldVoice

StorageKind = Literal["memory", "sqlite"]

CONFIG: Final = EngineConfig(
    max_unsettled=8,
    provider_timeout_seconds=15.0,
    poll_seconds=2.0,
    heartbeat_seconds=5.0,
    lease_seconds=20.0,
    lock_seconds=1.0,
    stop_grace_seconds=8.0,
    call_poll_seconds=15.0,
    reconcile_after_seconds=40.0,
    reconcile_every_seconds=60.0,
    reconcile_deadline_seconds=400.0,
    backoff_max_seconds=60.0,
)
"""Shorter waits than in earnest; nothing of the rules is different."""

TURMOIL_SECONDS: Final = 240.0
"""How long things go wrong; after that the engine is left in peace until everything has ended."""

PEACE_SECONDS: Final = 16_000.0
_PEOPLE: Final = 6


@attrs.frozen(kw_only=True)
class Result:
    """What a simulation did.

    Attributes:
        faults: How often each fault happened.
        checks: How many commits were checked.
        reached: How many contacts the providers' books hold.
        trace: Fingerprint of all requests and their moments: one seed has one.
    """

    seed: int
    faults: Counter[Fault]
    checks: int
    reached: int
    trace: str


def simulate(seed: int, *, storage: StorageKind = "memory", path: Path | None = None) -> Result:
    """Run one simulation.

    Args:
        seed: Decides everything.
        storage: Which tables the operations run over.
        path: A file for SQLite; in memory by default.

    Raises:
        Broken: An invariant does not hold; the message says which, and how to replay it.
    """
    database: Database = MemoryDatabase() if storage == "memory" else SqliteDatabase(path)
    try:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            return runner.run(_Simulation(seed, database).run())
    except Broken as broken:
        command = f"python -m outreach.testing.simulation --seed {seed} --storage {storage}"
        raise Broken(f"{broken}\nReplay it with: {command}") from broken
    finally:
        database.close()


class _Process:
    """One life of the dispatching process."""

    def __init__(self, storage: ProcessStorage, task: asyncio.Task[None]) -> None:
        self.storage = storage
        self.task = task


class _Simulation:
    def __init__(self, seed: int, database: Database) -> None:
        self._seed = seed
        self._rng = random.Random(seed)  # noqa: S311 - no secret: a seed must give one course
        self._database = database
        self._machine = Machine()
        self._faults = Faults(random.Random(self._rng.random()))  # noqa: S311
        self._broken: Broken | None = None

    async def run(self) -> Result:
        loop = asyncio.get_running_loop()
        self._clock = VirtualClock(loop)
        logging.getLogger("outreach").setLevel(logging.CRITICAL + 1)
        self._world = World(
            loop=loop,
            now=self._clock.now,
            rng=random.Random(self._rng.random()),  # noqa: S311
            faults=self._faults,
            on_request=self._on_request,
        )
        self._invariants = Invariants("")
        self._died = anyio.Event()
        operator = Outreach(self._storage(None, lambda: None), clock=self._clock, rng=self._stream(), config=CONFIG)
        async with operator as engine:
            await self._set_up(engine)
            await self._turmoil(engine)
            await self._peace(engine)
        return Result(
            seed=self._seed,
            faults=self._faults.counts,
            checks=self._invariants.checked,
            reached=sum(len(entries) for entries in self._world.reached.values()),
            trace=sha256(repr(self._world.asked).encode()).hexdigest(),
        )

    def _stream(self) -> random.Random:
        return random.Random(self._rng.random())  # noqa: S311

    def _storage(self, faults: Faults | None, die: Callable[[], None]) -> ProcessStorage:
        return ProcessStorage(
            database=self._database,
            machine=self._machine,
            rng=self._stream(),
            faults=faults,
            check=lambda tx: self._watch(lambda: self._invariants.after_commit(tx)),
            die=die,
        )

    def _watch(self, check: Callable[[], None]) -> None:
        # An invariant that breaks deep within the engine must end the simulation, not a slice of work.
        if self._broken is None:
            try:
                check()
            except Broken as broken:
                self._broken = broken

    def _on_request(self, dispatch_id: str, now: object) -> None:
        moment = self._clock.now()
        self._watch(lambda: self._database.read(lambda tx: self._invariants.at_request(tx, dispatch_id, moment)))

    # ------------------------------------------------------------------------------------------ the process

    def _start_process(self) -> _Process:
        self._died = died = anyio.Event()
        storage = self._storage(self._faults, died.set)
        link = Link(alive=lambda: not storage.cut, die=storage.kill)
        engine = Outreach(
            storage,
            dispatch=True,
            clock=self._clock,
            rng=self._stream(),
            config=CONFIG,
            sandbox_carrier=WorldCarrier(self._world, link),
            sandbox_voice=WorldVoice(self._world, link),
        )
        return _Process(storage, asyncio.get_running_loop().create_task(_live(engine)))

    async def _keep_alive(self) -> None:
        """Have a process dispatch, and start another one whenever it has died."""
        while True:
            process = self._start_process()
            try:
                await self._died.wait()
            finally:
                process.storage.kill()
                process.task.cancel()
                with suppress(BaseException), anyio.CancelScope(shield=True):
                    await process.task
            await anyio.sleep(self._rng.random() * 5)

    # ------------------------------------------------------------------------------------------ the course

    async def _set_up(self, engine: Outreach) -> None:
        workspace = await engine.workspaces.create("Simulated", default_region="US")
        self._workspace_id = workspace.id
        self._invariants = Invariants(workspace.id)
        agent = await engine.agents.create(workspace.id, "Agent")
        self._agent_id = agent.id
        flow = await engine.flows.create(
            workspace.id,
            "Flow",
            steps=[
                FlowStep(kind="send", body="one"),
                FlowStep(kind="wait", wait_minutes=1),
                FlowStep(kind="stop_if_replied"),
                FlowStep(kind="send", body="two"),
            ],
        )
        change = SmsSettingsChange(retry_enabled=self._rng.random() < 0.5, retry_delay_minutes=5)
        await engine.settings.update(workspace.id, change)
        self._people = [f"+1415555{number:04d}" for number in range(100, 100 + _PEOPLE)]
        people = [NewRecipient(phone_number=phone) for phone in self._people]
        rates = (7, 30, 120)
        for number, rate in enumerate(rates):
            new = NewSmsCampaign(
                name=f"SMS {number}",
                message_body="Hello",
                sms_carrier="twilio",
                sms_from_number="+14155550199",
                sms_rate_per_minute=rate,
                sms_message_source="flow" if number == 1 else "custom",
                sms_flow_id=flow.id if number == 1 else None,
            )
            await self._begin((await engine.create_campaign.sms(workspace.id, new, people)).campaign, engine)
        calling = NewCallCampaign(
            name="Calls", agent_id=agent.id, batch_concurrency=2, double_dial=self._rng.random() < 0.5
        )
        await self._begin((await engine.create_campaign.call(workspace.id, calling, people)).campaign, engine)

    async def _begin(self, campaign: Campaign, engine: Outreach) -> None:
        self._invariants.campaigns[campaign.id] = campaign
        await engine.campaigns.start(self._workspace_id, campaign.id)

    async def _turmoil(self, engine: Outreach) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_alive)
            ends = self._clock.monotonic() + TURMOIL_SECONDS
            while self._clock.monotonic() < ends:
                await anyio.sleep(self._rng.random() * 8)
                with suppress(OutreachError):
                    await self._operate(engine)
                if self._broken is not None:
                    break
            tasks.cancel_scope.cancel()
        self._raise_broken()

    async def _operate(self, engine: Outreach) -> None:
        """Do one thing that an operator, a contact or an owner does."""
        campaign_id = self._rng.choice(list(self._invariants.campaigns))
        workspace_id = self._workspace_id
        doings: Sequence[tuple[Fault, Callable[[], Awaitable[object]]]] = (
            ("pause", lambda: engine.campaigns.pause(workspace_id, campaign_id)),
            ("resume", lambda: engine.campaigns.resume(workspace_id, campaign_id)),
            ("resume", lambda: engine.campaigns.resume(workspace_id, campaign_id)),
            ("opt_out", lambda: engine.unsubscribes.add(workspace_id, self._rng.choice(self._people))),
            ("suspend", lambda: self._suspend(engine)),
            ("settings", lambda: engine.settings.update(workspace_id, self._some_settings())),
            ("operator_retry", lambda: self._resolve(engine)),
        )
        fault, act = self._rng.choice(doings)
        if self._rng.random() < 0.03:
            fault, act = "cancel", lambda: engine.campaigns.cancel(workspace_id, campaign_id)
        await act()
        self._faults.note(fault)

    async def _suspend(self, engine: Outreach) -> None:
        for status in (WorkspaceStatus.SUSPENDED, WorkspaceStatus.ACTIVE):
            await engine.workspaces.update(self._workspace_id, WorkspaceChange(status=status))
            await anyio.sleep(self._rng.random() * 10)

    def _some_settings(self) -> SmsSettingsChange:
        return SmsSettingsChange(footer_enabled=self._rng.random() < 0.5, retry_enabled=self._rng.random() < 0.5)

    async def _resolve(self, engine: Outreach) -> None:
        unknown = await engine.dispatches.unknown(self._workspace_id)
        if not unknown:
            return
        dispatch = self._rng.choice(list(unknown))
        if self._rng.random() < 0.5:
            await engine.dispatches.resolve(self._workspace_id, dispatch.id, "assume_sent")
            self._faults.note("assume_sent")
        else:
            await engine.dispatches.resolve(self._workspace_id, dispatch.id, "retry")
            key = (dispatch.campaign_id or "", dispatch.position or 0, dispatch.step)
            self._invariants.retries[key] += 1

    async def _peace(self, engine: Outreach) -> None:
        """Let everything come to its end with nothing going wrong any more."""
        self._faults.on = False
        await engine.workspaces.update(self._workspace_id, WorkspaceChange(status=WorkspaceStatus.ACTIVE))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_alive)
            ends = self._clock.monotonic() + PEACE_SECONDS
            while self._clock.monotonic() < ends and not await self._all_ended(engine):
                await anyio.sleep(20)
                if self._broken is not None:
                    break
            tasks.cancel_scope.cancel()
        self._raise_broken()
        self._database.read(lambda tx: self._invariants.at_the_end(tx, self._world.reached))

    async def _all_ended(self, engine: Outreach) -> bool:
        ended = True
        for campaign_id in self._invariants.campaigns:
            campaign = await engine.campaigns.get(self._workspace_id, campaign_id)
            if campaign.status == "paused":
                await engine.campaigns.resume(self._workspace_id, campaign_id)
            ended = ended and campaign.is_terminal and campaign.counters.open == 0
        return ended

    def _raise_broken(self) -> None:
        if self._broken is not None:
            raise self._broken


async def _live(engine: Outreach) -> None:
    async with engine:
        await anyio.sleep_forever()
