"""A dispatcher that works on a few campaigns at a time, so that a small machine is never asked for more."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
from anyio.abc import TaskGroup, TaskStatus

from outreach.errors import DispatchRefused, LeaseLost
from outreach.protocols import DispatcherHealth, DispatcherParts, DispatcherState, ReportSource, WorkUnit

AFTER_A_FAILURE = timedelta(seconds=1)
CLOCK_STEP = timedelta(seconds=1)


class Slice:
    """One unit at work: how it is told to look again, or to stop."""

    def __init__(self, dispatcher: FewAtATime) -> None:
        self._dispatcher = dispatcher
        self._woken = anyio.Event()
        self.again: datetime | None = None

    @property
    def stopping(self) -> bool:
        return self._dispatcher.ending

    async def wait(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await self._woken.wait()
        self._woken = anyio.Event()

    def wake(self) -> None:
        self._woken.set()


class FewAtATime:
    """Give it to the engine as `Outreach(..., dispatcher=FewAtATime)`."""

    def __init__(self, parts: DispatcherParts, *, most: int = 20) -> None:
        self._parts = parts
        self._most = most
        self._due: dict[WorkUnit, datetime] = {}
        self._held_off: dict[WorkUnit, datetime] = {}
        self._slices: dict[WorkUnit, Slice] = {}
        self._changed = anyio.Event()
        self._stop = anyio.Event()
        self._ended = anyio.Event()
        self._asking = anyio.CancelScope()
        self._started = False
        self._state: DispatcherState = "starting"
        self._epoch: int | None = None
        self._lost = False
        self._grace_ends: float | None = None
        self._beat = 0.0
        self._failures = 0
        self._last_error: str | None = None
        self._refused: DispatchRefused | None = None

    @property
    def ending(self) -> bool:
        return self._stop.is_set() or self._lost

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        self._started = True
        try:
            async with anyio.create_task_group() as tasks:
                for source in self._parts.sources:
                    tasks.start_soon(self._listen, source)
                await self._ask_and_work(tasks, task_status)
                tasks.cancel_scope.cancel()
        finally:
            self._ended.set()

    def wake(self, unit: WorkUnit) -> None:
        if self._epoch is not None:
            self._put(unit, self._parts.clock.now())

    async def stop(self, *, grace_seconds: float) -> None:
        self._grace_ends = self._parts.clock.monotonic() + grace_seconds
        self._stop.set()
        self._asking.cancel()
        self._look_again()
        if self._started:
            await self._ended.wait()

    def health(self) -> DispatcherHealth:
        at_work = self._epoch is not None
        return DispatcherHealth(
            state="stopping" if self._stop.is_set() else self._state,
            dispatching=at_work and not self.ending,
            epoch=self._epoch,
            active_units=len(self._slices),
            failures=self._failures,
            last_error=self._last_error,
            refused=self._refused.message if self._refused else None,
            refused_reason=self._refused.reason if self._refused else None,
            lease_seconds_left=self._parts.worker.lease_seconds_left if at_work else None,
            heartbeat_seconds_ago=self._parts.clock.monotonic() - self._beat if at_work else None,
        )

    async def _ask_and_work(self, tasks: TaskGroup, task_status: TaskStatus[None]) -> None:
        """Ask for the right to dispatch, work while it lasts, and ask again."""
        told = False

        def ready() -> None:
            nonlocal told
            if not told:
                told = True
                task_status.started()

        async def ready_soon() -> None:
            await anyio.sleep(0.2)
            ready()

        def checking() -> None:
            # After a crash this takes long, and the start does not wait for it.
            self._state = "checking"
            tasks.start_soon(ready_soon)

        while not self._stop.is_set():
            epoch: int | None = None
            self._state = "starting"
            try:
                with anyio.CancelScope() as self._asking:
                    epoch = await self._parts.worker.acquire(on_integrity_check=checking)
                    self._state = "standing_by" if epoch is None else "dispatching"
            except DispatchRefused as error:
                self._refused, self._state = error, "refused"
                ready()
                await self._stop.wait()
                break
            except Exception as error:
                self._count(error)
            if epoch is not None:
                self._epoch, self._beat = epoch, self._parts.clock.monotonic()
            ready()
            if epoch is not None:
                await self._hold(epoch)
            if not self._stop.is_set():
                with anyio.move_on_after(self._parts.config.lock_retry_seconds):
                    await self._stop.wait()
        # What was answered while the database was away ends with this process.
        with anyio.move_on_after(self._grace_left()):
            await self._parts.worker.settle_kept()

    async def _hold(self, epoch: int) -> None:
        """Work under an epoch until it is lost or the dispatcher stops, and give the right back."""
        try:
            async with anyio.create_task_group() as tasks:
                await tasks.start(self._parts.runner.serve)
                tasks.start_soon(self._renew, epoch)
                tasks.start_soon(self._sweep)
                tasks.start_soon(self._follow)
                try:
                    async with anyio.create_task_group() as slices:
                        tasks.start_soon(self._end_in_time, slices)
                        await self._start_slices(slices, epoch)
                finally:
                    with anyio.CancelScope(shield=True):
                        await self._parts.runner.drain(grace_seconds=self._grace_left())
                tasks.cancel_scope.cancel()
        except Exception as error:
            self._count(error)
        finally:
            self._epoch = None
            self._lost = False
            self._due.clear()
            self._held_off.clear()
            self._slices.clear()
            with anyio.CancelScope(shield=True):
                await self._parts.worker.release()

    async def _start_slices(self, tasks: TaskGroup, epoch: int) -> None:
        clock = self._parts.clock
        began = clock.now() - timedelta(seconds=clock.monotonic())
        while not self.ending:
            self._changed = anyio.Event()
            now = clock.now()
            back = began + timedelta(seconds=clock.monotonic()) - now
            if abs(back) > CLOCK_STEP:
                began -= back
            if back > CLOCK_STEP:
                # What was due by the old time is due by none: everything is looked at.
                self._parts.worker.note_set_back(back)
                self._due = dict.fromkeys(self._due, now)
            for unit in sorted(self._due, key=self._due.__getitem__):
                if len(self._slices) >= self._most or self._due[unit] > now:
                    break
                if unit not in self._slices and self._held_off.get(unit, now) <= now:
                    del self._due[unit]
                    self._slices[unit] = Slice(self)
                    tasks.start_soon(self._work, unit, self._slices[unit], epoch)
            soonest = min((due - now for due in self._due.values() if due > now), default=timedelta(days=1))
            with anyio.move_on_after(min(soonest.total_seconds(), self._parts.config.change_poll_seconds)):
                await self._changed.wait()
        self._look_again()

    async def _work(self, unit: WorkUnit, own: Slice, epoch: int) -> None:
        until = self._parts.clock.monotonic() + self._parts.config.time_slice_seconds
        try:
            own_due = await self._parts.runner.run_slice(unit, epoch=epoch, until=until, wake_signal=own)
            self._held_off.pop(unit, None)
        except LeaseLost:
            self._lose()
            own_due = None
        except Exception as error:
            self._count(error)
            # Even if it is woken meanwhile: a failed unit is not tried in a loop.
            own_due = self._held_off[unit] = self._parts.clock.now() + AFTER_A_FAILURE
        del self._slices[unit]
        for due in (own_due, own.again):
            if due is not None:
                self._put(unit, due)
        self._changed.set()

    def _put(self, unit: WorkUnit, due: datetime) -> None:
        at_work = self._slices.get(unit)
        if at_work is not None:
            at_work.again = min(due, at_work.again or due)
            if due <= self._parts.clock.now():
                at_work.wake()
            return
        self._due[unit] = min(due, self._due.get(unit, due))
        self._changed.set()

    async def _follow(self) -> None:
        """Read what is due, and then the changes that any process makes."""
        due, change = await self._parts.worker.due()
        for work in due:
            self._put(work.unit, work.due_at or datetime.now(UTC))
        while True:
            await anyio.sleep(self._parts.config.change_poll_seconds)
            try:
                changes = await self._parts.worker.since(change)
            except Exception as error:
                self._count(error)
                continue
            for work in changes:
                change = max(change, work.change)
                if work.due_at is not None:
                    self._put(work.unit, work.due_at)
                elif work.unit in self._slices:
                    # Paused elsewhere: a slice that waits must look again.
                    self._slices[work.unit].wake()

    async def _renew(self, epoch: int) -> None:
        while True:
            await anyio.sleep(self._parts.config.heartbeat_interval_seconds)
            try:
                await self._parts.worker.renew(epoch)
                self._beat = self._parts.clock.monotonic()
            except LeaseLost:
                self._lose()
                return
            except Exception as error:
                self._count(error)

    async def _sweep(self) -> None:
        while True:
            with contextlib.suppress(Exception):
                await self._parts.worker.sweep()
            await anyio.sleep(self._parts.config.cleanup_interval_seconds)

    async def _listen(self, source: ReportSource) -> None:
        while True:
            try:
                await source.listen(self._parts.report)
            except Exception as error:
                self._count(error)
            await anyio.sleep(1)

    async def _end_in_time(self, slices: Any) -> None:
        await self._stop.wait()
        await anyio.sleep(max(self._grace_left(), 1.0))
        slices.cancel_scope.cancel()

    def _grace_left(self) -> float:
        if self._grace_ends is None:
            return self._parts.config.stop_grace_seconds
        return max(self._grace_ends - self._parts.clock.monotonic(), 0.0)

    def _lose(self) -> None:
        self._lost = True
        self._look_again()

    def _look_again(self) -> None:
        self._changed.set()
        for own in self._slices.values():
            own.wake()

    def _count(self, error: Exception) -> None:
        self._failures += 1
        self._last_error = f"{type(error).__name__} at {self._parts.clock.now():%Y-%m-%dT%H:%M:%SZ}"
