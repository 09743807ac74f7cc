"""A worker, a runner and a source of reports that a test scripts, to try a dispatcher."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import anyio
from anyio.abc import TaskStatus

from outreach.errors import LeaseLost
from outreach.models.work import WorkItem, WorkUnit
from outreach.protocols.carrier import ReportSink
from outreach.protocols.dispatcher import WakeSignal
from outreach.testing.virtual_time import clock_of_loop

__all__ = ["ScriptedRunner", "ScriptedWorker", "ignore_report"]

Slice = Callable[[WorkUnit, WakeSignal], Awaitable[datetime | None]]
"""A runner's slice of work on a unit."""


class Signal:
    """Lets a test wait for a condition, whatever order events arrive in."""

    def __init__(self) -> None:
        self._changed = anyio.Event()

    def changed(self) -> None:
        """Have every waiter look again."""
        self._changed.set()
        self._changed = anyio.Event()

    async def until(self, condition: Callable[[], object], *, timeout_seconds: float = 30.0) -> None:
        """Wait until a condition holds.

        Raises:
            TimeoutError: It never did.
        """
        with anyio.fail_after(timeout_seconds):
            while not condition():
                await self._changed.wait()


class ScriptedWorker:
    """The right to dispatch, as a test gives and takes it.

    Attributes:
        answers: Results of `acquire`, one a call: an epoch, None for "another has it", an error; the last one stays.
        calls: The methods that were called, in order.
        feed: The units that are due.
        broken: The error that the methods in `breaks` raise; None for nothing.
        breaks: The names of these methods, of `due`, `since`, `renew` and `sweep`.
        lease_seconds_left: How long the right lasts.
        refusals: Which worker drives a unit; the slice before was refused for that.
        integrity_checked: The event that `acquire` waits for, as it does after a crash; None when it does not.
    """

    def __init__(self, *answers: int | Exception | None) -> None:
        self.answers: list[int | Exception | None] = list(answers) or [1]
        self.calls: list[str] = []
        self.feed: list[WorkItem] = []
        self.renewed: list[int] = []
        self.set_back: list[timedelta] = []
        self.lost = False
        self.broken: Exception | None = None
        self.breaks = {"due", "since", "renew", "sweep"}
        self.lease_seconds_left = 15.0
        self.integrity_checked: anyio.Event | None = None
        self.refusals: dict[WorkUnit, int] = {}
        self.signal = Signal()
        self._change = 0

    def put(self, unit: WorkUnit, due_at: datetime | None) -> None:
        """Write a change to the feed, as another process does."""
        self._change += 1
        self.feed = [work for work in self.feed if work.unit != unit]
        self.feed.append(WorkItem(unit=unit, due_at=due_at, change=self._change))

    async def acquire(self, *, on_integrity_check: Callable[[], None] = lambda: None) -> int | None:
        """Answer as the test says."""
        self._note("acquire")
        if self.integrity_checked is not None:
            on_integrity_check()
            await self.integrity_checked.wait()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def renew(self, epoch: int) -> None:
        """Keep the right, unless the test has taken it away."""
        self._break("renew")
        self.renewed.append(epoch)
        self._note("renew")
        if self.lost:
            self.lost = False
            raise LeaseLost("Another worker has it.")

    def note_set_back(self, back: timedelta) -> None:
        """Remember it."""
        self.set_back.append(back)

    async def release(self) -> None:
        """Give the right back."""
        self._note("release")

    async def settle_kept(self) -> None:
        """Have nothing to record."""
        self._note("settle_kept")

    async def due(self) -> tuple[Sequence[WorkItem], int]:
        """Return everything that has a due time."""
        self._break("due")
        self._note("due")
        return tuple(work for work in self.feed if work.due_at is not None), self._change

    async def since(self, change: int) -> Sequence[WorkItem]:
        """Return what has changed."""
        self._break("since")
        return tuple(sorted((work for work in self.feed if work.change > change), key=lambda work: work.change))

    async def refused_by(self, unit: WorkUnit) -> int | None:
        """Return what the test says of other workers."""
        return self.refusals.pop(unit, None)

    async def sweep(self) -> None:
        """Do nothing."""
        self._break("sweep")
        self._note("sweep")

    def _break(self, call: str) -> None:
        if self.broken is not None and call in self.breaks:
            self._note(call)
            raise self.broken

    def _note(self, call: str) -> None:
        self.calls.append(call)
        self.signal.changed()


class ScriptedRunner:
    """A runner whose slices do what the test says.

    Attributes:
        slices: The units of the slices that began, in order, with their epochs.
        running: The units that are being worked on.
        overlaps: Units that had two slices at the same time.
        served: Whether `serve` is running.
        drained: The grace of each `drain`.
        calls: A `drain` is noted here; with the calls of a worker, their order is known.
        untils: The end of each slice that began, on the monotonic clock.
    """

    def __init__(self, work: Slice | None = None, *, calls: list[str] | None = None) -> None:
        self.work = work
        self.calls: list[str] = calls if calls is not None else []
        self.slices: list[tuple[WorkUnit, int]] = []
        self.ended: list[WorkUnit] = []
        self.running: set[WorkUnit] = set()
        self.overlaps: list[WorkUnit] = []
        self.served = False
        self.began_unserved = False
        self.drained: list[float] = []
        self.untils: list[float] = []
        self.signal = Signal()

    async def serve(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Be there until it is cancelled."""
        self.served = True
        task_status.started()
        try:
            await anyio.sleep_forever()
        finally:
            self.served = False

    async def run_slice(self, unit: WorkUnit, *, epoch: int, until: float, wake_signal: WakeSignal) -> datetime | None:
        """Note that it runs, and do what the test says."""
        if unit in self.running:
            self.overlaps.append(unit)
        if not self.served:
            self.began_unserved = True
        self.running.add(unit)
        self.slices.append((unit, epoch))
        self.untils.append(until)
        self.signal.changed()
        try:
            return await self.work(unit, wake_signal) if self.work is not None else None
        finally:
            self.running.discard(unit)
            self.ended.append(unit)
            self.signal.changed()

    async def drain(self, *, grace_seconds: float) -> None:
        """Note the grace."""
        self.drained.append(grace_seconds)
        self.calls.append("drain")
        self.signal.changed()

    def count(self, unit: WorkUnit) -> int:
        """Return how many slices of a unit have begun."""
        return sum(begun == unit for begun, _ in self.slices)


class ScriptedSource:
    """An adapter that reports what the test hands to its sink.

    Attributes:
        failures: How many times `listen` raises before it works.
        listens: How often it was called.
    """

    def __init__(self, *, failures: int = 0) -> None:
        self.failures = failures
        self.listens = 0
        self.sink: ReportSink | None = None
        self.signal = Signal()

    @property
    def name(self) -> str:
        """The name under which it is logged."""
        return "scripted"

    async def listen(self, sink: ReportSink) -> None:
        """Take the sink, and stay until cancelled."""
        self.listens += 1
        self.signal.changed()
        if self.listens <= self.failures:
            raise RuntimeError("The source broke.")
        self.sink = sink
        self.signal.changed()
        await anyio.sleep_forever()

    async def deliver(self, report: Any) -> None:
        """Hand a report to the sink, as soon as there is one."""
        await self.signal.until(lambda: self.sink is not None)
        assert self.sink is not None
        await self.sink(report)


def past() -> datetime:
    """Return a moment that has come, on the clock of the loop."""
    return clock_of_loop().now()


async def ignore_report(report: Any) -> None:
    """Take a report and do nothing with it."""
