"""One simulation: a seed decides everything that happens, and the invariants are checked at every step."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import attrs

from outreach.core.config import EngineConfig
from outreach.core.logged_errors import logged_error
from outreach.engine import Outreach
from outreach.errors import OutreachError, StorageUnreachable
from outreach.storage.base.writer import CommitUnknown
from outreach.storage.unit_of_work import Transaction
from outreach.testing.virtual_time import VirtualTimeError
from tests.simulation.cuts import cuts_of
from tests.simulation.faults import Fault, Faults, Turns
from tests.simulation.invariants.all_workspaces import AllWorkspaces
from tests.simulation.invariants.bounds import Bounds
from tests.simulation.invariants.leases import LeaseChecks
from tests.simulation.invariants.ledger import Broken
from tests.simulation.invariants.open_intents import OpenIntentChecks
from tests.simulation.invariants.workspace import Invariants
from tests.simulation.loop import START, ShiftedClock, SimulationLoop
from tests.simulation.operators import Operators
from tests.simulation.processes import Processes
from tests.simulation.providers import WorldCarrier, WorldVoice
from tests.simulation.scenario import CALM_CONFIG, CONFIG, Scenario, make_campaigns, set_up, shared
from tests.simulation.set_order import scopes_in_order
from tests.simulation.statements import SteppingClock
from tests.simulation.storage import (
    Database,
    Killed,
    Machine,
    ProcessStorage,
)
from tests.simulation.world import Link, World
from tests.simulation.writes import Writes

FAULTY_SECONDS: Final = 200.0
"""How long faults happen; after that nothing goes wrong until everything has ended."""

CALM_SECONDS: Final = 4_000.0
"""By then everything must have ended."""

_BETWEEN_ACTIONS_SECONDS: Final = 8.0
_TWO_WORKSPACES: Final = 0.15
_TWO_IN_CLUSTERS: Final = 0.4
_CLOCK_SET: Final = 0.03
_CLOCK_SET_WHILE_LATE: Final = 0.3
_COMES_UP_WRONG: Final = 0.1
_RIGHT_AGAIN_SECONDS: Final = 15.0
_BACK: Final = 0.6
_MAX_STEP_SECONDS: Final = 7200.0
_LEASE_LOST: Final = 0.03
_LEASE_LOST_AT_REQUEST: Final = 0.05
_STOP_BEFORE_COMMIT: Final = 0.3
_INFORMED_SHARE: Final = 0.5
_MAX_SHIFT_SECONDS: Final = 8.0
_LATEST_SECONDS: Final = 3.0

_EXPECTED: Final = (Killed, StorageUnreachable, CommitUnknown, ConnectionError, TimeoutError)
"""What the engine's errors are about where nothing is wrong with it: a dead process, a database that it does not reach,
a look-up that failed or that its process has not waited for to the end."""


@attrs.frozen(kw_only=True)
class Result:
    """What a simulation did.

    Attributes:
        faults: How often each fault happened.
        checks: How many commits were checked.
        reached: How many contacts the providers' records hold.
        trace: Fingerprint of all commits and requests and their moments: one seed has one.
    """

    seed: int
    faults: Counter[Fault]
    checks: int
    reached: int
    trace: str


def simulate(seed: int, *, path: Path | None = None, workers: int = 1, kind: type[Simulation] | None = None) -> Result:
    """Run one simulation.

    Args:
        seed: Decides everything.
        path: A file for the database; in memory by default.
        workers: How many processes dispatch at a time. The clocks of several differ by seconds from the database's.
        kind: What is simulated; campaigns and single requests by default.

    Raises:
        Broken: An invariant does not hold; the message says which, and how to replay it.
    """
    rng = random.Random(seed)
    faults = Faults(_stream(rng))
    late = _stream(rng)

    turns = Turns(_stream(rng), faults)

    def late_seconds() -> float:
        return late.random() * _LATEST_SECONDS if faults.draw("late_timer") else 0.0

    database = Database(path)
    loop = partial(SimulationLoop, _stream(rng), late_seconds, turns.gives_way)
    try:
        simulation = (kind or Simulation)(seed, rng, faults, database, workers)
        with (
            _listening(simulation.hear_error),
            scopes_in_order(),
            asyncio.Runner(loop_factory=loop) as runner,
        ):
            return runner.run(simulation.run())
    except (Exception, VirtualTimeError) as error:
        # Whatever ends a simulation is its seed's: also what no check has foreseen.
        what = str(error) if isinstance(error, Broken) else f"It ended in {error!r}."
        command = f"python -m tests.simulation --seed {seed}"
        command += f" --workers {workers}" if workers > 1 else ""
        raise Broken(f"{what}\nReplay it with: {command}") from error
    finally:
        database.close()


class Simulation:
    """Workspaces with campaigns and single requests, under faults and then without them."""

    def __init__(self, seed: int, rng: random.Random, faults: Faults, database: Database, workers: int) -> None:
        self._seed = seed
        self._workers = workers
        self._team = random.Random(f"workers of {seed}")
        self._neighbour = random.Random(f"neighbour of {seed}")
        self._time = random.Random(f"clock of {seed}")
        self._statements = random.Random(f"statements of {seed}")
        self._rng = rng
        self._faults = faults
        self._database = database
        self._machine = Machine(workers, tells=workers == 1 or self._team.random() < _INFORMED_SHARE)
        self._cuts = cuts_of(seed, faults)
        self._workspaces = AllWorkspaces()
        self._broken: Broken | None = None
        self._held_up = anyio.Event()
        self._lose_lease: Callable[[], object] = lambda: None

    def hear_error(self, message: str) -> None:
        """Take an error that the engine has logged and that no fault explains for a broken invariant."""
        self._broken = self._broken or Broken(f"The engine logged an error that no fault explains: {message}")

    async def run(self) -> Result:
        """Run it; raise `Broken` if an invariant does not hold."""
        loop = asyncio.get_running_loop()
        self._clock = clock = SteppingClock(loop, START)
        self._leases = LeaseChecks(clock.monotonic)
        self._open_intents = OpenIntentChecks(self._watch, CONFIG)
        self._database.clock.shown = clock
        self._world = world = World(
            loop=loop,
            now=clock.true_time,
            rng=_stream(self._rng),
            faults=self._faults,
            power=self._rng.choice(("authoritative", "evidence")),
            on_request=self._on_request,
            on_reached=lambda entry: self._watch(lambda workspaces: workspaces.at_reach(entry)),
            on_reported=lambda report: self._watch(lambda workspaces: workspaces.after_report(report)),
            on_recorded=lambda dispatch_id, outcome: self._watch(
                lambda workspaces: workspaces.after_answer(dispatch_id, outcome)
            ),
        )
        operator = Outreach(self._storage(None, lambda: None), clock=clock, rng=_stream(self._rng), config=CONFIG)
        async with operator as engine:
            everybody = [await self._tenant(engine, rng) for rng in self._tenants()]
            await self._run_with_faults(everybody)
            await self._run_without_faults(everybody)
        for operators, invariants in everybody:
            self._database.read(partial(invariants.at_the_end, campaign_ids=operators.scenario.campaign_ids))
        return Result(
            seed=self._seed,
            faults=self._faults.counts,
            checks=self._workspaces.checked,
            reached=sum(len(entries) for entries in world.records.reached.values()),
            trace=self._workspaces.trace,
        )

    def _tenants(self) -> Iterator[random.Random]:
        """Return what draws each workspace: often there are two, which know the same people."""
        yield self._rng
        if self._neighbour.random() < (_TWO_WORKSPACES if self._workers == 1 else _TWO_IN_CLUSTERS):
            self._faults.note("two_workspaces")
            yield self._neighbour

    async def _tenant(self, engine: Outreach, rng: random.Random) -> tuple[Operators, Invariants]:
        """Make a workspace with its campaigns, and who operates it and watches it."""
        scenario = await set_up(engine, rng)
        invariants = self._invariants_of(scenario)
        self._workspaces.add(scenario.workspace_id, invariants)
        self._database.workspaces += 1
        await make_campaigns(engine, scenario, rng)
        operators = Operators(
            engine=engine,
            scenario=scenario,
            world=self._world,
            rng=_stream(rng),
            faults=self._faults,
            retries=invariants.requests.retries,
            elapsed=self._clock.monotonic,
        )
        return operators, invariants

    def _invariants_of(self, scenario: Scenario) -> Invariants:
        bounds = Bounds.of(
            shared(CONFIG, self._workers), sms_attempts=scenario.sms_attempts, call_attempts=scenario.call_attempts
        )
        invariants = Invariants(
            workspace_id=scenario.workspace_id,
            bounds=bounds,
            faults=self._faults,
            records=self._world.records,
            now=self._clock.now,
            really=self._clock.true_time,
        )
        for checks in (invariants.requests, invariants.intents.slots, invariants.claims):
            checks.numbers = scenario.numbers
        return invariants

    def _storage(self, faults: Faults | None, die: Callable[[], None]) -> ProcessStorage:
        def check(tx: Transaction, writes: Mapping[str, Writes], outside: Collection[str]) -> None:
            if outside:
                self._watch(partial(_raise_outside, outside))
            self._watch(lambda workspaces: workspaces.after_commit(tx, writes))
            if faults is not None:
                self._open_intents.note(writes, storage)
            if self._workers > 1:
                self._watch(lambda _: self._leases.check(tx, storage))

        storage = ProcessStorage(
            database=self._database,
            machine=self._machine,
            rng=_stream(self._rng),
            faults=faults,
            check=check,
            die=die,
            held_up=self._stop_before_commit,
            connection=self._database.connect() if self._workers > 1 else None,
            cuts=self._cuts() if faults is not None else None,
            steps=_stream(self._statements),
        )
        return storage

    def _engine(self, config: EngineConfig, storage: ProcessStorage, link: Link) -> Outreach:
        return Outreach(
            storage,
            dispatch=True,
            clock=self._clock if self._workers == 1 else ShiftedClock(self._clock, self._draw_shift()),
            rng=_stream(self._rng),
            config=config,
            sandbox_carrier=WorldCarrier(self._world, link),
            sandbox_voice=WorldVoice(self._world, link),
        )

    def _processes(self, config: EngineConfig) -> Processes:
        return Processes(
            make=partial(self._engine, config),
            storage=partial(self._storage, self._faults),
            machine=self._machine,
            moved=self._move,
            rng=_stream(self._rng),
            faults=self._faults,
            workers=self._workers,
        )

    def _draw_shift(self) -> timedelta:
        """Return how far a machine's clock is ahead of the database's."""
        return timedelta(seconds=self._team.choice((0.0, 1.0, -1.0)) * self._team.uniform(0.5, _MAX_SHIFT_SECONDS))

    def _move(self, path: str) -> None:
        self._world.records.has_moved = True
        # One that nobody has dispatched from is at home wherever it is first.
        if self._database.read(lambda tx: tx.leases.home()) is not None:
            self._world.records.moved[path] = self._clock.now()

    def _set_clock(self, step: timedelta, everybody: Sequence[tuple[Operators, Invariants]]) -> None:
        """Set the wall clock of the machine that the processes and the operators work on."""
        if not step or self._database.clock.stepping:
            return
        self._faults.note("clock_set_back" if step < timedelta() else "clock_set_forth")
        self._clock.wrong_by += step
        now = self._clock.now()
        self._world.records.moved = {path: min(moment, now) for path, moment in self._world.records.moved.items()}
        for _, invariants in everybody:
            self._database.read(lambda tx, one=invariants: one.after_step(tx, step))  # type: ignore[misc]

    def _draw_step(self) -> timedelta:
        """Return by how much somebody sets the clock now; zero for nobody. Most when that could hide a late request."""
        late = self._clock.monotonic() < self._world.late_until
        if self._time.random() >= (_CLOCK_SET_WHILE_LATE if late else _CLOCK_SET):
            return timedelta()
        step = timedelta(seconds=_MAX_STEP_SECONDS ** self._time.random())
        return -step if self._time.random() < _BACK else step

    def _stop_before_commit(self) -> None:
        """Have the operators stop something while a decision waits to be committed; every third time."""
        if self._rng.random() < _STOP_BEFORE_COMMIT:
            self._held_up.set()

    def _on_request(self, workspace_id: str, dispatch_id: str, not_after: datetime | None) -> None:
        self._watch(
            lambda workspaces: self._database.read(
                lambda tx: workspaces.at_request(tx, workspace_id, dispatch_id, not_after)
            )
        )
        # A process that stops here comes back with an answer to what another one has taken over.
        if self._rng.random() < _LEASE_LOST_AT_REQUEST:
            self._lose_lease()

    def _watch(self, check: Callable[[AllWorkspaces], None]) -> None:
        # An invariant that breaks deep within the engine must end the simulation, not a slice of work.
        if self._broken is None:
            try:
                check(self._workspaces)
            except Broken as broken:
                self._broken = broken

    async def _run_with_faults(self, everybody: Sequence[tuple[Operators, Invariants]]) -> None:
        processes = self._processes(shared(CONFIG, self._workers))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(processes.keep)
            self._lose_lease = partial(tasks.start_soon, processes.lose_lease)
            while self._clock.monotonic() < FAULTY_SECONDS and self._broken is None:
                self._held_up = anyio.Event()
                with anyio.move_on_after(self._rng.random() * _BETWEEN_ACTIONS_SECONDS):
                    await self._held_up.wait()
                if self._rng.random() < _LEASE_LOST:
                    self._lose_lease()
                self._set_clock(self._draw_step(), everybody)
                [(operators, _)] = everybody if len(everybody) == 1 else [self._neighbour.choice(everybody)]
                with suppress(OutreachError):
                    await operators.do_something(stop=self._held_up.is_set())
            self._lose_lease = lambda: None
            tasks.cancel_scope.cancel()
        self._raise_broken()

    async def _run_without_faults(self, everybody: Sequence[tuple[Operators, Invariants]]) -> None:
        """Let everything come to its end with nothing going wrong any more."""
        self._faults.on = False
        # Before the process of the time without faults comes up, or while it works: it must find out either way.
        if self._time.random() < _COMES_UP_WRONG:
            self._set_clock(timedelta(seconds=_MAX_STEP_SECONDS), everybody)
        right_at = self._clock.monotonic() + self._time.choice((0.0, _RIGHT_AGAIN_SECONDS))
        for operators, _ in everybody:
            await operators.restore_all()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._processes(shared(CALM_CONFIG, self._workers)).keep)
            ends = self._clock.monotonic() + CALM_SECONDS
            while self._clock.monotonic() < ends and self._broken is None:
                if self._clock.monotonic() >= right_at:
                    self._set_clock(-self._clock.wrong_by, everybody)
                await anyio.sleep(20)
                with suppress(OutreachError):
                    if (
                        all([await operators.resume_all() for operators, _ in everybody])
                        and not self._workspaces.singles_open
                        and not self._clock.wrong_by
                    ):
                        break
            tasks.cancel_scope.cancel()
        self._raise_broken()

    def _raise_broken(self) -> None:
        if self._broken is not None:
            raise self._broken


def _raise_outside(outside: Collection[str], _: AllWorkspaces) -> None:
    raise Broken(f"A transaction has written in workspaces that it had not named: {sorted(outside)}.")


def _stream(rng: random.Random) -> random.Random:
    return random.Random(rng.random())


class _Errors(logging.Handler):
    """Reads the errors that the engine logs; one that no fault explains breaks the simulation."""

    def __init__(self, hear: Callable[[str], None]) -> None:
        super().__init__(logging.ERROR)
        self._hear = hear

    def emit(self, record: logging.LogRecord) -> None:
        error = logged_error()
        # Errors of the database are told without their traceback.
        error_type = getattr(record, "error_type", None)
        if not _is_explained(error) and error_type not in {kind.__name__ for kind in _EXPECTED}:
            self._hear(f"{record.getMessage()} {error!r}")


def _is_explained(error: BaseException | None) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(_is_explained(one) for one in error.exceptions)
    return isinstance(error, _EXPECTED)


@contextmanager
def _listening(hear: Callable[[str], None]) -> Iterator[None]:
    log = logging.getLogger("outreach")
    handler = _Errors(hear)
    before = log.level, log.propagate
    log.addHandler(handler)
    log.propagate = False
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before[0])
        log.propagate = before[1]
        log.removeHandler(handler)
