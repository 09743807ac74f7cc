from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import anyio
import pytest

from outreach.core.config import EngineConfig
from outreach.dispatch.leased import InProcessDispatcher
from outreach.errors import DispatchRefused, StorageUnreachable
from outreach.models.work import WorkUnit
from outreach.protocols.carrier import ReportSink
from outreach.protocols.dispatcher import Dispatcher, ReportSource
from outreach.testing.clock import ShiftedClock
from outreach.testing.dispatcher_contract import DispatcherContract, MakeDispatcher
from outreach.testing.scripted_dispatch import ScriptedRunner, ScriptedWorker, ignore_report
from outreach.testing.virtual_time import clock_of_loop


@pytest.mark.virtual_time
class TestInProcessDispatcher(DispatcherContract):
    """The dispatcher of the engine's own process keeps the contract."""

    @pytest.fixture
    def make(self) -> MakeDispatcher:
        """Return what makes an in-process dispatcher that looks around quickly."""

        def make(
            worker: ScriptedWorker, runner: ScriptedRunner, sources: Sequence[ReportSource], report: ReportSink
        ) -> Dispatcher:
            return InProcessDispatcher(
                worker=worker,
                runner=runner,
                report=report,
                sources=sources,
                clock=clock_of_loop(),
                config=EngineConfig(change_poll_seconds=0.02, heartbeat_interval_seconds=0.03, lock_retry_seconds=0.03),
            )

        return make


@pytest.mark.anyio
async def test_a_clock_that_is_set_back_is_reported_to_the_worker_at_once() -> None:
    """The next heartbeat may be far: what waits by the time from before would wait until then."""
    clock, worker, runner = ShiftedClock(), ScriptedWorker(), ScriptedRunner()
    dispatcher = InProcessDispatcher(
        worker=worker,
        runner=runner,
        report=ignore_report,
        sources=(),
        clock=clock,
        config=EngineConfig(change_poll_seconds=0.02, heartbeat_interval_seconds=3600, lease_seconds=7200),
    )
    async with anyio.create_task_group() as tasks:
        await tasks.start(dispatcher.run)
        # The dispatcher looks at the clock once it has begun a slice.
        dispatcher.wake(WorkUnit("campaign", "workspace", "campaign"))
        await runner.signal.until(lambda: runner.slices)
        clock.shift(-timedelta(hours=1))
        await worker.signal.until(lambda: worker.renewed)
        await dispatcher.stop(grace_seconds=1)
    (back,) = worker.set_back
    assert abs(back - timedelta(hours=1)) < timedelta(seconds=1)


@pytest.mark.virtual_time
async def test_a_database_that_is_away_as_the_right_was_taken_does_not_cost_the_right() -> None:
    """The feed is read again, as it is at any later time."""
    worker, runner, unit = ScriptedWorker(), ScriptedRunner(), WorkUnit("campaign", "workspace", "campaign")
    worker.put(unit, clock_of_loop().now())
    worker.broken = StorageUnreachable("It is away.")
    dispatcher = InProcessDispatcher(
        worker=worker,
        runner=runner,
        report=ignore_report,
        sources=(),
        clock=clock_of_loop(),
        config=EngineConfig(change_poll_seconds=0.02),
    )
    async with anyio.create_task_group() as tasks:
        await tasks.start(dispatcher.run)
        await worker.signal.until(lambda: worker.calls.count("due") >= 2)
        worker.broken = None
        await runner.signal.until(lambda: runner.count(unit))
        await dispatcher.stop(grace_seconds=1)
    assert worker.calls.count("acquire") == 1


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("reason", "recorded"), [("note", True), ("network_file_system", True), ("damaged", False), ("replaced", False)]
)
async def test_what_was_kept_is_recorded_from_the_refusal_of_the_right_on(reason: str, recorded: bool) -> None:
    """The process may go on to serve for weeks; a broken file, and another one in its place, are left alone."""
    worker = ScriptedWorker(DispatchRefused("Not here.", reason=reason))
    dispatcher = InProcessDispatcher(
        worker=worker,
        runner=ScriptedRunner(),
        report=ignore_report,
        sources=(),
        clock=clock_of_loop(),
        config=EngineConfig(),
    )
    async with anyio.create_task_group() as tasks:
        await tasks.start(dispatcher.run)
        await anyio.sleep(1)
        assert ("settle_kept" in worker.calls) is recorded
        await dispatcher.stop(grace_seconds=1)
    assert ("settle_kept" in worker.calls) is recorded
