from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import aiosqlite
import aiosqlite.core
import anyio
import pytest
from anyio import to_thread

from outreach import EngineConfig, Outreach
from outreach.core.clock import SystemClock
from outreach.storage.sqlite import SqliteStorage
from outreach.testing.virtual_time import (
    START,
    Deadlock,
    RunTooLong,
    ThreadTooLong,
    VirtualTimeLoop,
    clock_of_loop,
    real_time,
)

NEW_YORK = ZoneInfo("America/New_York")


def run(test: Callable[[], Coroutine[Any, Any, Any]], **given: Any) -> Any:
    """Run a coroutine function on a loop of its own, and close that."""
    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(**given)) as runner:
        return runner.run(test())


def test_a_day_passes_at_once() -> None:
    """Sleeping moves the time and takes none; the clock goes with it."""

    async def day() -> None:
        clock = clock_of_loop()
        await asyncio.sleep(86_400)
        assert clock.monotonic() == 86_400
        assert clock.now() - START == timedelta(days=1, microseconds=1)

    began = time.monotonic()
    run(day)
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    "start", [datetime(2026, 3, 7, 20, 0, tzinfo=NEW_YORK), datetime(2026, 10, 31, 20, 0, tzinfo=NEW_YORK)]
)
def test_a_start_in_a_zone_keeps_to_the_true_time(start: datetime) -> None:
    """Also over a change of summer time: what passes on the clock is what passes on the loop."""

    async def night() -> None:
        clock = clock_of_loop()
        began = clock.now()
        assert began.tzinfo is UTC
        await asyncio.sleep(16 * 3600)
        assert clock.now().timestamp() - began.timestamp() == pytest.approx(16 * 3600, abs=1e-3)
        # Eight in the evening, and sixteen hours: noon by the clocks before the change.
        assert clock.now().astimezone(start.tzinfo).hour == (13 if start.month == 3 else 11)

    run(night, start=start)


def test_a_start_needs_a_zone() -> None:
    """Which moment it is, is not known otherwise."""
    with pytest.raises(ValueError, match="tzinfo=UTC"):
        VirtualTimeLoop(start=START.replace(tzinfo=None))


def test_no_two_operations_are_at_the_same_moment() -> None:
    """Each look at the clock is later than the one before, and timers keep to it."""

    async def looks() -> None:
        clock = clock_of_loop()
        first, second = clock.now(), clock.now()
        assert second - first == timedelta(microseconds=1)
        await anyio.sleep(1)
        assert clock.now() - second == timedelta(seconds=1, microseconds=1)

    run(looks)


def test_timers_fire_in_order_and_at_their_time() -> None:
    """Each timer fires when it is due, however many there are."""

    async def several() -> list[float]:
        fired: list[float] = []

        async def sleeper(seconds: float) -> None:
            await anyio.sleep(seconds)
            fired.append(anyio.current_time())

        async with anyio.create_task_group() as tasks:
            for seconds in (5000.25, 0.5, 90_000.0, 3.0):
                tasks.start_soon(sleeper, seconds)
        return fired

    assert run(several) == [0.5, 3.0, 5000.25, 90_000.0]


def test_timeouts_are_virtual() -> None:
    """A timeout of an hour ends a wait at once, an hour later by the loop."""

    async def wait() -> float:
        with anyio.move_on_after(3600):
            await anyio.Event().wait()
        return anyio.current_time()

    assert run(wait) == 3600


def test_nothing_that_can_happen_is_an_error_that_says_who_waits() -> None:
    """A wait without an end raises Deadlock, with the line that waits, and the loop closes as usual."""
    cleaned: list[str] = []

    async def stuck() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(1)
            cleaned.append("yes")

    with pytest.raises(Deadlock, match=r"(?s)nothing is ready.*test_virtual_time\.py:\d+ in .*stuck"):
        run(stuck)
    assert cleaned == ["yes"]


def test_the_time_is_bounded() -> None:
    """A loop that ticks for ever is ended by an error that says how far the time has come."""

    async def ticking() -> None:
        for _ in itertools.count():
            await asyncio.sleep(3600)

    with pytest.raises(RunTooLong, match=r"2 days, 0:00:00"):
        run(ticking, max_run=timedelta(days=2))


def test_the_bound_is_of_each_run() -> None:
    """Fixtures and tests that share a loop have the whole time each."""
    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(max_run=timedelta(hours=1))) as runner:
        for _ in range(3):
            runner.run(asyncio.sleep(3500))
        assert runner.get_loop().time() == 10_500


def _work(release: threading.Event) -> str:
    release.wait(0.05)
    return threading.current_thread().name


@pytest.mark.parametrize("kind", ["asyncio", "executor", "anyio", "aiosqlite"])
def test_the_time_stands_still_while_a_thread_works(kind: str) -> None:
    """No timer fires before a thread that has work has done it."""

    async def sql(release: threading.Event) -> None:
        connection = aiosqlite.connect(":memory:")
        async with connection:
            await connection.create_function("work", 0, lambda: _work(release))
            await connection.execute_fetchall("SELECT work()")

    async def both() -> list[str]:
        done: list[str] = []
        release = threading.Event()

        async def timer() -> None:
            await anyio.sleep(0.001)
            done.append("timer")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(timer)
            match kind:
                case "asyncio":
                    await asyncio.to_thread(_work, release)
                case "executor":
                    await asyncio.get_running_loop().run_in_executor(None, _work, release)
                case "anyio":
                    await to_thread.run_sync(_work, release)
                case _:
                    await sql(release)
            done.append("thread")
        return done

    began = time.monotonic()
    assert run(both) == ["thread", "timer"]
    assert time.monotonic() - began < 10


def test_the_time_stands_still_while_a_thread_works_for_nobody() -> None:
    """Work whose caller was cancelled is waited for all the same: it may still write."""

    async def abandoned() -> bool:
        written = threading.Event()
        async with aiosqlite.connect(":memory:") as connection:

            def write() -> None:
                time.sleep(0.05)  # works while the loop has nothing to do
                written.set()

            await connection.create_function("write", 0, write)
            task = asyncio.ensure_future(connection.execute_fetchall("SELECT write()"))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.sleep(5)
            return written.is_set()

    assert run(abandoned)


def test_threads_that_have_ended_hold_nothing_up() -> None:
    """Once a connection is closed, time passes again."""

    async def closed() -> float:
        async with aiosqlite.connect(":memory:"):
            pass
        await to_thread.run_sync(lambda: None)
        await asyncio.to_thread(lambda: None)
        await anyio.sleep(86_400)
        return anyio.current_time()

    began = time.monotonic()
    assert run(closed) == 86_400
    assert time.monotonic() - began < 10


def test_a_thread_that_never_ends_is_an_error() -> None:
    """A thread that waits for the loop's timers cannot get on; the error says what to do."""
    release = threading.Event()
    later = threading.Timer(10.0, release.set)

    async def stuck() -> None:
        later.start()
        await to_thread.run_sync(release.wait, abandon_on_cancel=True)

    try:
        with pytest.raises(ThreadTooLong, match=r"(?s)0\.05 s of real time.*real_time\(\)"):
            run(stuck, max_thread_seconds=0.05)
    finally:
        later.cancel()
        release.set()


def test_within_real_time_the_loop_waits_for_what_is_outside() -> None:
    """A subprocess takes its time there, and timers pass with it."""

    async def child() -> tuple[bytes, float]:
        with real_time():
            process = await asyncio.create_subprocess_exec(sys.executable, "-c", "print(1)", stdout=subprocess.PIPE)
            out, _ = await asyncio.wait_for(process.communicate(), 60)
        passed = anyio.current_time()
        return out, passed

    out, passed = run(child)
    assert out.split() == [b"1"]
    assert 0 < passed < 60


def test_on_another_loop_time_is_real() -> None:
    """The helpers do no harm where the time is not virtual."""

    async def plain() -> None:
        assert isinstance(clock_of_loop(), SystemClock)
        with real_time():
            await asyncio.sleep(0)
        async with aiosqlite.connect(":memory:") as connection:
            await connection.execute_fetchall("SELECT 1")

    other = VirtualTimeLoop()
    try:
        asyncio.run(plain())
    finally:
        other.close()


def test_nothing_of_it_is_left_when_the_loops_have_closed() -> None:
    """The queues of aiosqlite are as they were, also where loops were open beside each other and closed twice."""
    library: Any = aiosqlite.core
    before = library.SimpleQueue
    first, second = VirtualTimeLoop(), VirtualTimeLoop()
    assert library.SimpleQueue is not before
    first.close()
    first.close()
    assert library.SimpleQueue is not before
    second.close()
    assert library.SimpleQueue is before


def test_an_engine_on_a_file_dispatches_in_virtual_time(tmp_path: Path) -> None:
    """The writer's and the readers' threads are waited for: a lease is kept, and nothing fails."""

    async def minutes() -> tuple[int, bool]:
        clock = clock_of_loop()
        storage = SqliteStorage(tmp_path / "a.db", clock=clock)
        async with Outreach(storage, clock=clock, config=EngineConfig(change_poll_seconds=5), dispatch=True) as engine:
            await anyio.sleep(300)
            health = engine.health()
            return health.failures, health.dispatching

    assert run(minutes) == (0, True)


def test_a_loop_that_cannot_be_made_is_thrown_away_quietly() -> None:
    """In Python 3.11 an error of its finalizer may make an unrelated compilation fail, and so the whole test run."""
    wrong: Any = 3600
    with pytest.raises(AttributeError):
        VirtualTimeLoop(max_run=wrong)
    assert VirtualTimeLoop.__new__(VirtualTimeLoop).is_closed()
