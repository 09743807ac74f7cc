"""The contract of a dispatcher, as tests: every sentence of `outreach.protocols.Dispatcher`.

An implementation is held to it by a subclass that says how one is made:

    @pytest.mark.anyio  # or pytest.mark.asyncio, pytest.mark.virtual_time
    class TestMyDispatcher(DispatcherContract):
        @pytest.fixture
        def make(self):
            return lambda worker, runner, sources, report: MyDispatcher(
                DispatcherParts(worker=worker, runner=runner, sources=sources, report=report, clock=..., config=...)
            )

The dispatcher is to poll, renew and ask for the right every few hundredths of a second, to have slices of the default
length, and to read `virtual_time.clock_of_loop()`, which is the system's clock where the tests do not run in virtual
time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, Final, get_args

import anyio
import pytest

from outreach.core.config import EngineConfig
from outreach.errors import DispatchRefused, LeaseLost
from outreach.models.work import WorkUnit, WorkUnitKind
from outreach.protocols.carrier import ReportSink
from outreach.protocols.dispatcher import Dispatcher, ReportSource, WakeSignal
from outreach.testing.builders import WORKSPACE_ID, new_id
from outreach.testing.scripted_dispatch import (
    ScriptedRunner,
    ScriptedSource,
    ScriptedWorker,
    ignore_report,
    past,
)
from outreach.testing.virtual_time import clock_of_loop

__all__ = ["DispatcherContract", "MakeDispatcher"]

KINDS: Final[Sequence[WorkUnitKind]] = get_args(WorkUnitKind)

MakeDispatcher = Callable[[ScriptedWorker, ScriptedRunner, Sequence[ReportSource], ReportSink], Dispatcher]
"""The return type of the fixture `make`."""


def unit(kind: WorkUnitKind = "campaign") -> WorkUnit:
    """Return a unit of its own."""
    return WorkUnit(kind, WORKSPACE_ID, new_id())


def ends_of(worker: ScriptedWorker) -> list[str]:
    """Return when the runner was drained and the right given back, in order; the runner shares the worker's calls."""
    return [call for call in worker.calls if call in {"drain", "release"}]


@asynccontextmanager
async def running(dispatcher: Dispatcher, *, grace_seconds: float = 1.0) -> AsyncIterator[Dispatcher]:
    """Run a dispatcher, and stop it at the end."""
    async with anyio.create_task_group() as tasks:
        await tasks.start(dispatcher.run)
        try:
            yield dispatcher
        finally:
            with anyio.CancelScope(shield=True), anyio.fail_after(30):
                await dispatcher.stop(grace_seconds=grace_seconds)


class DispatcherContract:
    """The contract of a dispatcher: subclass it, and define the fixture `make`."""

    @pytest.fixture
    def anyio_backend(self) -> str:
        """Run on asyncio, the engine's loop, where anyio runs the tests."""
        return "asyncio"

    @pytest.fixture
    def make(self) -> MakeDispatcher:
        """Return what makes a dispatcher of a worker, a runner, sources, and what takes their reports."""
        raise NotImplementedError("A subclass of DispatcherContract defines the fixture `make`.")

    async def test_it_is_ready_once_it_has_asked_for_the_right(self, make: MakeDispatcher) -> None:
        """`run` reports ready after `acquire`, and then holds the right."""
        worker = ScriptedWorker(7)
        async with running(make(worker, ScriptedRunner(), (), ignore_report)) as dispatcher:
            assert worker.calls[0] == "acquire"
            assert (dispatcher.health().dispatching, dispatcher.health().epoch) == (True, 7)

    async def test_it_is_ready_also_where_another_has_the_right(self, make: MakeDispatcher) -> None:
        """A process that may not dispatch yet starts all the same, and says that it does not dispatch."""
        worker = ScriptedWorker(None)
        async with running(make(worker, ScriptedRunner(), (), ignore_report)) as dispatcher:
            assert (dispatcher.health().dispatching, dispatcher.health().epoch) == (False, None)

    async def test_it_asks_again_until_the_right_is_free(self, make: MakeDispatcher) -> None:
        """Another worker's end is noticed, and its work goes on here under the new epoch."""
        worker, runner, due = ScriptedWorker(None, None, 3), ScriptedRunner(), unit()
        worker.put(due, past())
        async with running(make(worker, runner, (), ignore_report)):
            await runner.signal.until(lambda: (due, 3) in runner.slices)

    async def test_an_error_of_take_does_not_end_it(self, make: MakeDispatcher) -> None:
        """A database that cannot be used for a moment is tried again."""
        worker = ScriptedWorker(RuntimeError("locked"), 1)
        dispatcher = make(worker, ScriptedRunner(), (), ignore_report)
        async with running(dispatcher):
            await worker.signal.until(lambda: "due" in worker.calls)
            assert dispatcher.health().dispatching

    async def test_a_database_that_must_not_be_dispatched_is_left_alone(self, make: MakeDispatcher) -> None:
        """DispatchRefused ends the attempts for a lease; health has the reason, and no slice runs."""
        worker, runner = ScriptedWorker(DispatchRefused("a network file system")), ScriptedRunner()
        worker.put(unit(), past())
        async with running(make(worker, runner, (), ignore_report)) as dispatcher:
            await anyio.sleep(0.1)
            assert dispatcher.health().refused == "a network file system"
            assert not dispatcher.health().dispatching
        assert (worker.calls.count("acquire"), runner.slices) == (1, [])

    async def test_what_was_kept_is_recorded_also_where_the_right_is_refused(self, make: MakeDispatcher) -> None:
        """Kept outcomes of committed dispatches are merged before the process ends, also without a lease."""
        worker = ScriptedWorker(DispatchRefused("a network file system"))
        async with running(make(worker, ScriptedRunner(), (), ignore_report)):
            pass
        assert worker.calls[-1] == "settle_kept"

    async def test_what_is_due_at_the_start_is_worked_on_in_a_served_runner(self, make: MakeDispatcher) -> None:
        """Work of before a restart is found, and slices run only while the requests they leave are held."""
        worker, runner = ScriptedWorker(2), ScriptedRunner()
        due = [unit(kind) for kind in KINDS]
        for one in due:
            worker.put(one, past())
        async with running(make(worker, runner, (), ignore_report)):
            await runner.signal.until(lambda: {(one, 2) for one in due} <= set(runner.slices))
        assert not runner.began_unserved

    async def test_a_unit_is_not_worked_on_before_it_is_due(self, make: MakeDispatcher) -> None:
        """A due time is kept: no slice begins before it."""
        worker, runner, later = ScriptedWorker(), ScriptedRunner(), unit()
        due_at = clock_of_loop().now() + timedelta(seconds=0.3)
        worker.put(later, due_at)
        async with running(make(worker, runner, (), ignore_report)):
            await runner.signal.until(lambda: runner.count(later))
            assert clock_of_loop().now() >= due_at

    async def test_a_change_by_another_process_is_noticed(self, make: MakeDispatcher) -> None:
        """A unit that another process writes to the feed is worked on without a wake."""
        worker, runner, new = ScriptedWorker(), ScriptedRunner(), unit()
        async with running(make(worker, runner, (), ignore_report)):
            await worker.signal.until(lambda: "due" in worker.calls)
            worker.put(new, past())
            await runner.signal.until(lambda: runner.count(new))

    async def test_a_woken_unit_is_looked_at_soon(self, make: MakeDispatcher) -> None:
        """`wake` takes effect without a change in the feed."""
        worker, runner, woken = ScriptedWorker(), ScriptedRunner(), unit()
        async with running(make(worker, runner, (), ignore_report)) as dispatcher:
            dispatcher.wake(woken)
            await runner.signal.until(lambda: runner.count(woken))

    async def test_wake_before_it_has_the_right_does_no_harm(self, make: MakeDispatcher) -> None:
        """`wake` may come at any time; without the right nothing is worked on."""
        worker, runner = ScriptedWorker(None), ScriptedRunner()
        dispatcher = make(worker, runner, (), ignore_report)
        dispatcher.wake(unit())
        async with running(dispatcher):
            dispatcher.wake(unit())
            await anyio.sleep(0.05)
        assert runner.slices == []

    async def test_a_slice_that_names_a_time_is_run_again_at_that_time(self, make: MakeDispatcher) -> None:
        """The moment that a slice returns is when its unit is worked on next, and not before."""
        again = clock_of_loop().now() + timedelta(seconds=0.3)
        began: list[datetime] = []

        async def work(_: WorkUnit, __: WakeSignal) -> datetime | None:
            began.append(clock_of_loop().now())
            return again if len(began) == 1 else None

        worker, runner, repeated = ScriptedWorker(), ScriptedRunner(work), unit()
        worker.put(repeated, past())
        async with running(make(worker, runner, (), ignore_report)):
            await runner.signal.until(lambda: runner.count(repeated) == 2)
        assert began[1] >= again

    async def test_a_slice_that_names_no_time_is_not_run_again_until_somebody_touches_it(
        self, make: MakeDispatcher
    ) -> None:
        """None means: nothing is left until the unit is touched."""
        worker, runner, done = ScriptedWorker(), ScriptedRunner(), unit()
        worker.put(done, past())
        async with running(make(worker, runner, (), ignore_report)) as dispatcher:
            await runner.signal.until(lambda: runner.ended == [done])
            await anyio.sleep(0.1)
            assert runner.count(done) == 1
            dispatcher.wake(done)
            await runner.signal.until(lambda: runner.count(done) == 2)

    @pytest.mark.parametrize("kind", KINDS)
    async def test_one_slice_of_a_unit_at_a_time_and_another_one_after_a_wake(
        self, make: MakeDispatcher, kind: WorkUnitKind
    ) -> None:
        """A unit that is woken while its slice runs is worked on again after it, never beside it."""
        release = anyio.Event()

        async def work(_: WorkUnit, __: WakeSignal) -> datetime | None:
            await release.wait()
            return None

        worker, runner, woken = ScriptedWorker(), ScriptedRunner(work), unit(kind)
        worker.put(woken, past())
        async with running(make(worker, runner, (), ignore_report)) as dispatcher:
            await runner.signal.until(lambda: woken in runner.running)
            for _ in range(3):
                dispatcher.wake(woken)
                worker.put(woken, past())
                await anyio.sleep(0.02)
            assert runner.count(woken) == 1
            assert dispatcher.health().active_units == 1
            release.set()
            await runner.signal.until(lambda: runner.count(woken) >= 2 and not runner.running)
        assert runner.overlaps == []

    async def test_a_slice_ends_at_a_moment_that_is_soon(self, make: MakeDispatcher) -> None:
        """`until` is on the monotonic clock, as long after the slice's begin as the configuration says."""
        worker, runner, due = ScriptedWorker(), ScriptedRunner(), unit()
        worker.put(due, past())
        before = clock_of_loop().monotonic()
        async with running(make(worker, runner, (), ignore_report)):
            await runner.signal.until(lambda: runner.untils)
        assert before < runner.untils[0] <= clock_of_loop().monotonic() + EngineConfig().time_slice_seconds

    async def test_units_are_worked_on_side_by_side(self, make: MakeDispatcher) -> None:
        """One unit that waits does not keep the others waiting."""
        release = anyio.Event()

        async def work(_: WorkUnit, __: WakeSignal) -> datetime | None:
            await release.wait()
            return None

        worker, runner = ScriptedWorker(), ScriptedRunner(work)
        for _ in range(8):
            worker.put(unit(), past())
        async with running(make(worker, runner, (), ignore_report)):
            await runner.signal.until(lambda: len(runner.running) == 8)
            release.set()

    async def test_a_wake_ends_the_wait_of_a_running_slice(self, make: MakeDispatcher) -> None:
        """`WakeSignal.wait` returns sooner when the unit was woken."""
        waits: list[float] = []

        async def work(_: WorkUnit, wake_signal: WakeSignal) -> datetime | None:
            before = anyio.current_time()
            await wake_signal.wait(600)
            waits.append(anyio.current_time() - before)
            return None

        worker, runner, waiting = ScriptedWorker(), ScriptedRunner(work), unit()
        worker.put(waiting, past())
        async with running(make(worker, runner, (), ignore_report)) as dispatcher:
            await runner.signal.until(lambda: waiting in runner.running)
            dispatcher.wake(waiting)
            await runner.signal.until(lambda: waiting in runner.ended)

    async def test_a_wait_that_nobody_ends_takes_its_time(self, make: MakeDispatcher) -> None:
        """`WakeSignal.wait` waits for its full timeout when nothing happens."""
        waits: list[float] = []

        async def work(_: WorkUnit, wake_signal: WakeSignal) -> datetime | None:
            before = anyio.current_time()
            await wake_signal.wait(0.2)
            waits.append(anyio.current_time() - before)
            return None

        worker, runner, waiting = ScriptedWorker(), ScriptedRunner(work), unit()
        async with running(make(worker, runner, (), ignore_report)) as dispatcher:
            dispatcher.wake(waiting)
            await runner.signal.until(lambda: waiting in runner.ended)
        assert waits[0] >= 0.19

    async def test_a_stop_elsewhere_ends_the_wait_of_a_running_slice(self, make: MakeDispatcher) -> None:
        """A pause by another process, which leaves nothing due, makes a waiting slice look again."""

        async def work(_: WorkUnit, wake_signal: WakeSignal) -> datetime | None:
            await wake_signal.wait(600)
            return None

        worker, runner, paused = ScriptedWorker(), ScriptedRunner(work), unit()
        worker.put(paused, past())
        async with running(make(worker, runner, (), ignore_report)):
            await runner.signal.until(lambda: paused in runner.running)
            worker.put(paused, None)
            await runner.signal.until(lambda: paused in runner.ended)

    async def test_errors_of_slices_never_leave_it_and_are_counted(self, make: MakeDispatcher) -> None:
        """An unexpected error of a slice is counted and reported by class and time; the other units go on."""

        async def work(one: WorkUnit, _: WakeSignal) -> datetime | None:
            if one == bad:
                raise ZeroDivisionError("A secret that nobody is to see.")
            return None

        bad, good = unit(), unit()
        worker, runner = ScriptedWorker(), ScriptedRunner(work)
        worker.put(bad, past())
        async with running(make(worker, runner, (), ignore_report)) as dispatcher:
            await runner.signal.until(lambda: runner.count(bad))
            dispatcher.wake(good)
            await runner.signal.until(lambda: good in runner.ended)
            health = dispatcher.health()
            assert health.dispatching
            assert health.failures >= 1
            assert health.last_error is not None
            assert health.last_error.startswith("ZeroDivisionError at 2")
            assert "secret" not in health.last_error

    async def test_a_failed_slice_backs_off(self, make: MakeDispatcher) -> None:
        """A unit whose slice failed is tried again after a while, not in a loop, wakes or not.

        docs/rules.md#dispatching.
        """
        began: list[float] = []

        async def work(_: WorkUnit, __: WakeSignal) -> datetime | None:
            began.append(anyio.current_time())
            raise RuntimeError("again")

        worker, runner, bad = ScriptedWorker(), ScriptedRunner(work), unit()
        worker.put(bad, past())
        async with running(make(worker, runner, (), ignore_report)):
            await runner.signal.until(lambda: runner.count(bad) >= 2)
        assert began[1] - began[0] >= 0.5

    async def test_the_right_is_renewed_and_given_back(self, make: MakeDispatcher) -> None:
        """While it works it renews its epoch and sweeps; when it is stopped it drains, then gives the right back."""
        worker = ScriptedWorker(5)
        async with running(make(worker, ScriptedRunner(calls=worker.calls), (), ignore_report)):
            await worker.signal.until(lambda: len(worker.renewed) >= 2 and "sweep" in worker.calls)
        assert set(worker.renewed) == {5}
        assert worker.calls[-2:] == ["release", "settle_kept"]
        assert ends_of(worker) == ["drain", "release"]

    async def test_a_heartbeat_that_fails_is_tried_again(self, make: MakeDispatcher) -> None:
        """A database that cannot be used for a moment does not cost the right."""
        worker = ScriptedWorker()
        async with running(make(worker, ScriptedRunner(), (), ignore_report)):
            await worker.signal.until(lambda: "due" in worker.calls)
            worker.breaks, worker.broken = {"renew"}, RuntimeError("locked")
            await worker.signal.until(lambda: worker.calls.count("renew") > len(worker.renewed))
            worker.broken = None
            renewed = len(worker.renewed)
            await worker.signal.until(lambda: len(worker.renewed) >= renewed + 2)
        assert worker.calls.count("acquire") == 1

    async def test_a_sweep_that_fails_ends_nothing(self, make: MakeDispatcher) -> None:
        """The work goes on under the same right."""
        worker = ScriptedWorker()
        worker.breaks, worker.broken = {"sweep"}, RuntimeError("locked")
        async with running(make(worker, ScriptedRunner(), (), ignore_report)):
            await worker.signal.until(lambda: "sweep" in worker.calls)
            await worker.signal.until(lambda: len(worker.renewed) >= 2)
        assert worker.calls.count("acquire") == 1

    async def test_a_lost_lease_stops_the_slices_and_is_asked_for_again(self, make: MakeDispatcher) -> None:
        """A lost lease means no new intents; the right is given back and asked for again.

        docs/delivery-contract.md#rule-11.
        """
        stopping: list[bool] = []

        async def work(_: WorkUnit, wake_signal: WakeSignal) -> datetime | None:
            while not wake_signal.stopping:
                await wake_signal.wait(600)
            stopping.append(wake_signal.stopping)
            return None

        worker, waiting = ScriptedWorker(1, None, 2), unit()
        runner = ScriptedRunner(work, calls=worker.calls)
        worker.put(waiting, past())
        async with running(make(worker, runner, (), ignore_report)):
            await runner.signal.until(lambda: waiting in runner.running)
            worker.lost = True
            await runner.signal.until(lambda: (waiting, 2) in runner.slices)
            assert worker.calls.index("release") < len(worker.calls) - 1 - worker.calls[::-1].index("acquire")
        assert stopping[0]
        assert ends_of(worker) == ["drain", "release"] * 2

    async def test_a_slice_that_finds_the_lease_lost_ends_the_work_under_it(self, make: MakeDispatcher) -> None:
        """LeaseLost out of a slice has the same effect as a heartbeat that found it."""
        lost: list[WorkUnit] = []

        async def work(one: WorkUnit, _: WakeSignal) -> datetime | None:
            if not lost:
                lost.append(one)
                raise LeaseLost("Another worker has it.")
            return None

        worker, runner, due = ScriptedWorker(1, 2), ScriptedRunner(work), unit()
        worker.put(due, past())
        async with running(make(worker, runner, (), ignore_report)):
            await runner.signal.until(lambda: (due, 2) in runner.slices)

    async def test_a_check_before_the_start_holds_nobody_up(self, make: MakeDispatcher) -> None:
        """After a crash the data is looked through first: `run` is ready, nothing is sent, and a stop does not wait."""
        worker, runner, due = ScriptedWorker(3), ScriptedRunner(), unit()
        worker.integrity_checked = anyio.Event()
        worker.put(due, past())
        async with running(make(worker, runner, (), ignore_report)) as dispatcher:
            assert (dispatcher.health().state, dispatcher.health().dispatching) == ("checking", False)
            assert runner.slices == []
            worker.integrity_checked.set()
            await runner.signal.until(lambda: runner.slices)
            health = dispatcher.health()
            assert (health.state, health.epoch) == ("dispatching", 3)
            assert health.lease_seconds_left == worker.lease_seconds_left
            assert health.heartbeat_seconds_ago is not None
        worker.integrity_checked = anyio.Event()
        async with running(make(worker, runner, (), ignore_report)) as dispatcher:
            assert dispatcher.health().state == "checking"

    async def test_stop_lets_slices_end_drains_and_starts_nothing_new(self, make: MakeDispatcher) -> None:
        """`stop` nudges the slices, waits for them, drains with what they left of its grace, and begins no slice."""

        async def work(_: WorkUnit, wake_signal: WakeSignal) -> datetime | None:
            while not wake_signal.stopping:
                await wake_signal.wait(600)
            return clock_of_loop().now()

        worker, runner, waiting = ScriptedWorker(), ScriptedRunner(work), unit()
        worker.put(waiting, past())
        dispatcher = make(worker, runner, (), ignore_report)
        async with running(dispatcher, grace_seconds=20.0):
            await runner.signal.until(lambda: waiting in runner.running)
        dispatcher.wake(waiting)
        await anyio.sleep(0.05)
        assert (runner.count(waiting), len(runner.drained), runner.running) == (1, 1, set())
        assert 0 < runner.drained[0] <= 20.0
        assert not dispatcher.health().dispatching

    async def test_stop_ends_a_slice_that_outlasts_the_grace(self, make: MakeDispatcher) -> None:
        """A slice that does not end by itself is cancelled, and the right is given back."""

        async def work(_: WorkUnit, __: WakeSignal) -> datetime | None:
            await anyio.sleep_forever()
            return None

        worker, runner, stuck = ScriptedWorker(), ScriptedRunner(work), unit()
        worker.put(stuck, past())
        async with running(make(worker, runner, (), ignore_report), grace_seconds=0.05):
            await runner.signal.until(lambda: stuck in runner.running)
        assert runner.ended == [stuck]
        assert "release" in worker.calls

    async def test_stop_of_one_that_waits_for_the_right_returns(self, make: MakeDispatcher) -> None:
        """A dispatcher that never got the right stops as well, at once, and gives what was kept its last chance."""
        worker = ScriptedWorker(None)
        dispatcher = make(worker, ScriptedRunner(), (), ignore_report)
        async with running(dispatcher):
            pass
        assert dispatcher.health().epoch is None
        assert worker.calls[-1] == "settle_kept"

    async def test_stop_may_be_called_twice_and_before_run(self, make: MakeDispatcher) -> None:
        """`stop` returns when `run` has ended, however often it is called; before `run` there is nothing to end."""
        never = make(ScriptedWorker(), ScriptedRunner(), (), ignore_report)
        with anyio.fail_after(10):
            await never.stop(grace_seconds=1)
        dispatcher = make(ScriptedWorker(), ScriptedRunner(), (), ignore_report)
        async with running(dispatcher):
            await dispatcher.stop(grace_seconds=1)

    async def test_cancelling_run_gives_the_right_back(self, make: MakeDispatcher) -> None:
        """A host that cancels gets its thread of control back, and the right is free for another."""
        worker = ScriptedWorker()
        dispatcher = make(worker, ScriptedRunner(calls=worker.calls), (), ignore_report)
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                await tasks.start(dispatcher.run)
                await worker.signal.until(lambda: "due" in worker.calls)
                tasks.cancel_scope.cancel()
        assert worker.calls[-1] == "release"
        assert ends_of(worker) == ["drain", "release"]

    async def test_sources_are_listened_to_and_a_broken_one_again(self, make: MakeDispatcher) -> None:
        """Reports of adapters that listen are taken, and an error of one does not end the listening."""
        source = ScriptedSource(failures=1)
        async with running(make(ScriptedWorker(None), ScriptedRunner(), (source,), ignore_report)) as dispatcher:
            await source.signal.until(lambda: source.sink is not None)
            assert dispatcher.health().failures == 1

    async def test_the_reports_of_every_source_are_taken(self, make: MakeDispatcher) -> None:
        """Each source gets a sink that passes its reports on."""
        reports: list[Any] = []

        async def report(one: Any) -> None:
            reports.append(one)

        sources = [ScriptedSource(), ScriptedSource()]
        async with running(make(ScriptedWorker(None), ScriptedRunner(), sources, report)):
            for number, source in enumerate(sources):
                await source.deliver(number)
        assert reports == [0, 1]

    async def test_a_feed_that_breaks_at_once_is_not_asked_in_a_loop(self, make: MakeDispatcher) -> None:
        """A database that fails after the right was taken is tried again after a while, not without a pause."""
        worker = ScriptedWorker()
        worker.broken = RuntimeError("The database is gone.")
        dispatcher = make(worker, ScriptedRunner(), (), ignore_report)
        async with running(dispatcher):
            await worker.signal.until(lambda: "due" in worker.calls)
            await anyio.sleep(0.3)
            assert worker.calls.count("acquire") <= 20
            worker.broken = None
            await worker.signal.until(lambda: "sweep" in worker.calls[-3:] or dispatcher.health().dispatching)

    async def test_a_change_feed_that_breaks_for_a_moment_loses_nothing(self, make: MakeDispatcher) -> None:
        """Changes that could not be read are read later."""
        worker, runner, new = ScriptedWorker(), ScriptedRunner(), unit()
        async with running(make(worker, runner, (), ignore_report)):
            await worker.signal.until(lambda: "due" in worker.calls)
            await anyio.sleep(0.01)
            worker.broken = RuntimeError("locked")
            await worker.signal.until(lambda: "since" in worker.calls)
            worker.put(new, past())
            worker.broken = None
            await runner.signal.until(lambda: runner.count(new))
