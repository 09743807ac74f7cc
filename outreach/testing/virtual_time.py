"""An event loop whose time is virtual: while nothing is ready to run, the time jumps to the next timer.

A test that waits for a day takes as long as the work of that day takes:

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(a_day())

`loop.time()`, and with it every `sleep` and every timeout of asyncio and anyio, is virtual. `clock_of_loop()` is the
same time as an engine's clock. `time.monotonic()` and `datetime.now()` are not.

The time stands still while a thread works: one of `asyncio.to_thread`, `loop.run_in_executor`, `anyio.to_thread` or an
aiosqlite connection that was opened on this loop, as an engine on a SQLite file has. Other threads, subprocesses and
the network are not waited for; within `real_time()` the loop waits as any other does.
"""

from __future__ import annotations

import asyncio
import selectors
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar, TypeVarTuple

from outreach.core.clock import Clock, SystemClock, in_utc
from outreach.testing.thread_work import ThreadWork, anyio_threads_work, leave_storages, watch_storages

__all__ = [
    "Deadlock",
    "RunTooLong",
    "ThreadTooLong",
    "VirtualClock",
    "VirtualTimeError",
    "VirtualTimeLoop",
    "clock_of_loop",
    "real_time",
]

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")

START: Final = datetime(2026, 3, 2, 15, 0, tzinfo=UTC)
"""A Monday, ten in the morning in New York: the wall clock at the start, unless a test says otherwise."""

MAX_RUN: Final = timedelta(days=35)
"""How far the time may move while one test, or one fixture, runs."""

MAX_THREAD_SECONDS: Final = 60.0
"""How long a thread may work, in real seconds, while nothing else happens."""

_MAX_TASKS_SHOWN: Final = 8

_LOOK_SECONDS: Final = 0.02
"""How often it checks whether threads have ended, because no event reports that."""


class VirtualTimeError(BaseException):
    """The test cannot go on; what it waits for is in the message.

    It leaves the loop and not a task. It is no `Exception`, so that a test runner ends the test's task instead of
    waiting for it.
    """


class Deadlock(VirtualTimeError):
    """Nothing is ready to run, no timer is set and no thread works: nothing can ever happen."""


class RunTooLong(VirtualTimeError):
    """The time has moved as far as it may, and the test still waits."""


class ThreadTooLong(VirtualTimeError):
    """A thread has worked for too long, and the time stands still meanwhile."""


class VirtualClock:
    """A loop's time as the engine's clock, whose wall clock can be set.

    Args:
        loop: Where time passes.
        start: What the wall clock shows when the loop's time is 0, aware, in any zone.

    Attributes:
        wrong_by: How far the wall clock is ahead of the true time.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, start: datetime = START) -> None:
        self._loop = loop
        self._start = _checked(start)
        self.wrong_by = timedelta()

    def now(self) -> datetime:
        """Return the moment by the wall clock, in UTC."""
        return self.true_time() + self.wrong_by

    def true_time(self) -> datetime:
        """Return the moment by a wall clock that nobody has set."""
        return self._start + timedelta(seconds=round(self._loop.time(), 6))

    def monotonic(self) -> float:
        """Return the virtual seconds since the loop was made."""
        return self._loop.time()


def _checked(start: datetime) -> datetime:
    if start.utcoffset() is None:
        raise ValueError(f"The start must have a time zone: use datetime(..., tzinfo=UTC), not {start!r}.")
    return in_utc(start)


class _TickingClock(VirtualClock):
    """The same for tests: each look at the wall clock takes a microsecond, so that no two operations are at once."""

    def __init__(self, loop: VirtualTimeLoop, start: datetime) -> None:
        super().__init__(loop, start)
        self._tick = loop.pass_microsecond

    def now(self) -> datetime:
        """Return the moment by the wall clock, later than at the last look."""
        self._tick()
        return super().now()


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An asyncio loop with a time of its own, which starts at 0 and moves only while nothing is ready to run.

    Args:
        start: What its clock shows at first, aware, in any zone.
        max_run: How far the time may move in one `run_until_complete`; then `RunTooLong` is raised.
        max_thread_seconds: How long, in real seconds, a thread may work while nothing else happens; then
            `ThreadTooLong` is raised.

    Attributes:
        clock: Its time as the engine's clock; each look at the wall clock takes a microsecond.
    """

    _closed = True
    """Where it cannot be made, there is nothing to close: asyncio asks as it is thrown away."""

    def __init__(
        self,
        *,
        start: datetime = START,
        max_run: timedelta = MAX_RUN,
        max_thread_seconds: float = MAX_THREAD_SECONDS,
    ) -> None:
        start = _checked(start)
        self._selecting = _Selector(self)
        self._threads = ThreadWork(self._wake_up)
        self.max_run_seconds = max_run.total_seconds()
        self.max_thread_seconds = max_thread_seconds
        super().__init__(self._selecting)
        self.clock: VirtualClock = _TickingClock(self, start)
        watch_storages(self, self._threads)

    def close(self) -> None:
        """Close the loop."""
        leave_storages(self)
        super().close()

    def time(self) -> float:
        """Return the virtual seconds since the loop was made."""
        return self._selecting.now

    def pass_microsecond(self) -> None:
        """Let a microsecond pass."""
        self._selecting.now += 1e-6

    def run_until_complete(self, future: Generator[Any, None, T] | Awaitable[T]) -> T:
        """Run until a future is done.

        Raises:
            VirtualTimeError: It never will be, or not before the time has moved as far as it may.
        """
        self._selecting.until = self.time() + self.max_run_seconds
        return super().run_until_complete(future)

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Arguments], T], *args: *Arguments
    ) -> asyncio.Future[T]:
        """Call a function in a thread or process; the time stands still until it has returned."""
        self._threads.begin()
        try:
            future = super().run_in_executor(executor, func, *args)
        except BaseException:
            self._threads.end()
            raise
        future.add_done_callback(lambda _: self._threads.end())
        return future

    async def shutdown_default_executor(self, *args: Any) -> None:
        """End the threads of the default executor, waiting for them in real time."""
        with self.real_time():
            await super().shutdown_default_executor(*args)

    @contextmanager
    def woken_by_threads(self) -> Iterator[None]:
        """Have threads wake the loop when they have nothing left to do."""
        self._threads.loop_waits = True
        try:
            yield
        finally:
            self._threads.loop_waits = False

    @contextmanager
    def real_time(self) -> Iterator[None]:
        """Let time pass as it really does: for sockets, subprocesses, and threads that the loop does not know."""
        self._selecting.in_real_time += 1
        try:
            yield
        finally:
            self._selecting.in_real_time -= 1

    def threads_work(self) -> bool:
        """Return whether a thread works for this loop; call it in the loop's own thread."""
        return self._threads.any_left() or anyio_threads_work(self)

    def _wake_up(self) -> None:
        with suppress(RuntimeError):  # the loop has closed: no task waits any more
            self.call_soon_threadsafe(lambda: None)


def clock_of_loop() -> Clock:
    """Return the clock of the running loop where its time is virtual, and the system's otherwise."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return SystemClock()
    return loop.clock if isinstance(loop, VirtualTimeLoop) else SystemClock()


@contextmanager
def real_time() -> Iterator[None]:
    """Let time pass as it really does within the block; on a loop without virtual time it does so anyway."""
    loop = asyncio.get_running_loop()
    if isinstance(loop, VirtualTimeLoop):
        with loop.real_time():
            yield
    else:
        yield


class _Selector(selectors.DefaultSelector):
    """Turns waiting for a timer into a jump of the time."""

    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop
        self.now = 0.0
        self.until = 0.0
        self.in_real_time = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what has come from outside; where nothing is ready, wait for threads or move the time."""
        if timeout == 0:
            return super().select(0)
        if self.in_real_time:
            began = time.monotonic()
            ready = super().select(timeout)
            self.now += time.monotonic() - began
            return ready
        # Asked first: a thread that has just ended has woken the loop before.
        work = self._loop.threads_work()
        ready = super().select(0)
        if ready:
            return ready
        if work:
            return self._wait_for_threads()
        if timeout is None:
            raise Deadlock(
                "Nothing can ever happen: nothing is ready to run, no timer is set and no thread works.\n"
                f"{_waiting_tasks(self._loop)}"
            )
        if self.now + timeout > self.until:
            moved = timedelta(seconds=round(self.now))
            self.until += self._loop.max_run_seconds  # so that the test can be cleaned up
            raise RunTooLong(
                f"The time has moved to {moved} since the start, which is as far as it may (max_run). Does the test "
                f"wait for something that never comes?\n{_waiting_tasks(self._loop)}"
            )
        self.now += timeout
        return []

    def _wait_for_threads(self) -> list[tuple[selectors.SelectorKey, int]]:
        seconds = self._loop.max_thread_seconds
        ends = time.monotonic() + seconds
        with self._loop.woken_by_threads():
            while self._loop.threads_work():
                if ready := super().select(_LOOK_SECONDS):
                    return ready
                if time.monotonic() > ends:
                    others = sorted(one.name for one in threading.enumerate() if one is not threading.current_thread())
                    raise ThreadTooLong(
                        f"A thread has worked for {seconds:g} s of real time, and the time stood still. Threads: "
                        f"{', '.join(others)}. Does one wait for a timer of this loop? Within real_time() the timers "
                        f"go on.\n{_waiting_tasks(self._loop)}"
                    )
        return []


def _waiting_tasks(loop: asyncio.AbstractEventLoop) -> str:
    """Return which tasks wait, and where."""
    tasks = sorted(asyncio.all_tasks(loop), key=lambda task: task.get_name())
    lines = [f"  {task.get_name()} at {_place(task)}" for task in tasks[:_MAX_TASKS_SHOWN]]
    left = len(tasks) - len(lines)
    return "\n".join(["Tasks that wait:", *lines, *([f"  and {left} more"] if left else [])])


def _place(task: asyncio.Task[Any]) -> str:
    """Return the line at which a task waits: the innermost one outside of Python's own and installed packages."""
    place, awaited = "?", task.get_coro()
    while (frame := getattr(awaited, "cr_frame", None)) is not None:
        name = frame.f_code.co_filename
        if place == "?" or not (name.startswith(sys.base_prefix) or "site-packages" in name):
            place = f"{name}:{frame.f_lineno} in {frame.f_code.co_qualname}"
        awaited = awaited.cr_await  # type: ignore[union-attr]
    return place
