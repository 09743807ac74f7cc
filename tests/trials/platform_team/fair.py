"""A dispatcher that shares the platform among its tenants: no tenant holds more than its share of the slices."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import anyio
import anyio.abc
from anyio.abc import TaskStatus

from outreach.errors import DispatchRefused, LeaseLost
from outreach.protocols import DispatcherHealth, DispatcherParts, DispatcherState, ReportSource, WorkItem, WorkUnit

MAX_BACKOFF: Final = timedelta(seconds=60)


class Signal:
    """Tells a running slice that its unit was woken, or that it is to return."""

    def __init__(self) -> None:
        self._event = anyio.Event()
        self._stopping = False

    @property
    def stopping(self) -> bool:
        return self._stopping

    async def wait(self, seconds: float) -> None:
        if self._stopping:
            return
        with anyio.move_on_after(seconds):
            await self._event.wait()
        if self._event.is_set() and not self._stopping:
            self._event = anyio.Event()

    def wake(self) -> None:
        self._event.set()

    def stop(self) -> None:
        self._stopping = True
        self._event.set()


class FairDispatcher:
    def __init__(self, parts: DispatcherParts, *, slices: int = 32, slices_each: int = 8) -> None:
        self._worker, self._runner, self._clock, self._config = parts.worker, parts.runner, parts.clock, parts.config
        self._sources, self._report = parts.sources, parts.report
        self._slices, self._slices_each = slices, slices_each
        self._due: dict[WorkUnit, datetime] = {}
        self._running: dict[WorkUnit, Signal] = {}
        self._woken: set[WorkUnit] = set()
        self._errors: Counter[WorkUnit] = Counter()
        self._changed = anyio.Event()
        self._stop, self._ended = anyio.Event(), anyio.Event()
        self._lost = anyio.Event()
        self._begun = False
        self._grace = 0.0
        self._state: DispatcherState = "off"
        self._epoch: int | None = None
        self._failures = 0
        self._last_error: str | None = None
        self._refused: DispatchRefused | None = None
        self._renewed = 0.0

    # ------------------------------------------------------------------------------------ what the engine calls

    def wake(self, unit: WorkUnit) -> None:
        if self._epoch is None:
            return
        self._due[unit] = self._clock.now()
        if (signal := self._running.get(unit)) is not None:
            self._woken.add(unit)
            signal.wake()
        self._changed.set()

    def health(self) -> DispatcherHealth:
        held = self._epoch is not None
        return DispatcherHealth(
            state=self._state,
            dispatching=held,
            epoch=self._epoch,
            active_units=len(self._running),
            failures=self._failures,
            last_error=self._last_error,
            refused=None if self._refused is None else str(self._refused),
            refused_reason=None if self._refused is None else self._refused.reason,
            lease_seconds_left=self._worker.lease_seconds_left if held else None,
            heartbeat_seconds_ago=self._clock.monotonic() - self._renewed if held else None,
        )

    async def stop(self, *, grace_seconds: float) -> None:
        self._grace = grace_seconds
        self._stop.set()
        if self._begun:
            await self._ended.wait()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        self._begun = True
        self._state = "starting"
        ready = _Once(task_status)
        try:
            async with anyio.create_task_group() as tasks:
                for source in self._sources:
                    tasks.start_soon(self._listen, source)
                while not self._stop.is_set():
                    epoch = await self._take(ready)
                    ready()
                    if self._refused is not None:
                        await self._stop.wait()
                    elif epoch is None:
                        await self._pause(self._config.lock_retry_seconds)
                    else:
                        await self._dispatch(epoch)
                with anyio.move_on_after(self._grace):
                    await self._worker.settle_kept()
                tasks.cancel_scope.cancel()
        finally:
            ready()
            self._state = "off"
            self._ended.set()

    # ------------------------------------------------------------------------------------------ the right to dispatch

    async def _take(self, ready: _Once) -> int | None:
        def checking() -> None:
            self._state = "checking"
            ready()

        epoch: int | None = None
        async with anyio.create_task_group() as asking:
            asking.start_soon(self._cancel_when_stopped, asking.cancel_scope)
            try:
                epoch = await self._worker.acquire(on_integrity_check=checking)
                self._state = "standing_by" if epoch is None else "dispatching"
            except DispatchRefused as error:
                self._refused, self._state = error, "refused"
            except Exception as error:
                self._note(error)
            asking.cancel_scope.cancel()
        return epoch

    async def _dispatch(self, epoch: int) -> None:
        self._epoch, self._lost = epoch, anyio.Event()
        self._renewed = self._clock.monotonic()
        try:
            async with anyio.create_task_group() as tasks:
                await tasks.start(self._runner.serve)
                try:
                    await self._drive(epoch)
                finally:
                    with anyio.CancelScope(shield=True):
                        await self._runner.drain(grace_seconds=self._grace if self._stop.is_set() else 0.0)
                tasks.cancel_scope.cancel()
        finally:
            self._epoch = None
            self._due.clear()
            self._woken.clear()
            with anyio.CancelScope(shield=True), contextlib.suppress(Exception):
                await self._worker.release()

    async def _cancel_when_stopped(self, scope: anyio.CancelScope) -> None:
        await self._stop.wait()
        scope.cancel()

    async def _drive(self, epoch: int) -> None:
        async with anyio.create_task_group() as keepers:
            keepers.start_soon(self._renew, epoch)
            keepers.start_soon(self._read)
            keepers.start_soon(self._sweep)
            async with anyio.create_task_group() as slices:
                slices.start_soon(self._assign, epoch, slices)
                await self._first_of(self._stop, self._lost)
                self._state = "stopping" if self._stop.is_set() else "standing_by"
                for signal in self._running.values():
                    signal.stop()
                self._changed.set()
                if self._lost.is_set():
                    slices.cancel_scope.cancel()
                else:
                    slices.cancel_scope.deadline = anyio.current_time() + self._grace
            keepers.cancel_scope.cancel()

    async def _renew(self, epoch: int) -> None:
        offset = self._offset()
        while True:
            await anyio.sleep(self._config.heartbeat_interval_seconds)
            now = self._offset()
            if now < offset - timedelta(seconds=1):
                self._worker.note_set_back(offset - now)
            offset = now
            try:
                await self._worker.renew(epoch)
                self._renewed = self._clock.monotonic()
            except LeaseLost:
                self._lost.set()
                return
            except Exception as error:
                self._note(error)

    def _offset(self) -> timedelta:
        """Return by how much the wall clock is ahead of the steady one, both from their own beginnings."""
        return (
            self._clock.now()
            - datetime.min.replace(tzinfo=self._clock.now().tzinfo)
            - timedelta(seconds=self._clock.monotonic())
        )

    async def _sweep(self) -> None:
        while True:
            await anyio.sleep(self._config.cleanup_interval_seconds)
            try:
                await self._worker.sweep()
            except Exception as error:
                self._note(error)

    # ---------------------------------------------------------------------------------------------------- the work

    async def _read(self) -> None:
        change: int | None = None
        while True:
            try:
                if change is None:
                    items, change = await self._worker.due()
                else:
                    items = await self._worker.since(change)
                    change = max([change, *(item.change for item in items)])
                self._take_in(items)
            except LeaseLost:
                self._lost.set()
                return
            except Exception as error:
                self._note(error)
            await anyio.sleep(self._config.change_poll_seconds)

    def _take_in(self, items: Iterable[WorkItem]) -> None:
        for item in items:
            if item.due_at is None:
                self._due.pop(item.unit, None)
            else:
                self._due[item.unit] = item.due_at
            if (signal := self._running.get(item.unit)) is not None:
                signal.wake()
        self._changed.set()

    async def _assign(self, epoch: int, slices: anyio.abc.TaskGroup) -> None:
        while not (self._stop.is_set() or self._lost.is_set()):
            self._changed = anyio.Event()
            now = self._clock.now()
            busy = Counter(unit.workspace_id for unit in self._running)
            for unit, due in sorted(self._due.items(), key=lambda item: item[1]):
                if due > now or len(self._running) >= self._slices:
                    break
                if unit not in self._running and busy[unit.workspace_id] < self._slices_each:
                    busy[unit.workspace_id] += 1
                    del self._due[unit]
                    self._running[unit] = Signal()
                    slices.start_soon(self._work, unit, epoch)
            waiting = [due for unit, due in self._due.items() if due > now]
            seconds = (min(waiting) - now).total_seconds() if waiting else None
            with anyio.move_on_after(seconds):
                await self._changed.wait()

    async def _work(self, unit: WorkUnit, epoch: int) -> None:
        again: datetime | None = None
        try:
            until = self._clock.monotonic() + self._config.time_slice_seconds
            again = await self._runner.run_slice(unit, epoch=epoch, until=until, wake_signal=self._running[unit])
            del self._errors[unit]
        except LeaseLost:
            self._lost.set()
        except Exception as error:
            self._note(error)
            self._errors[unit] += 1
            again = self._clock.now() + min(timedelta(seconds=2.0 ** self._errors[unit] / 4), MAX_BACKOFF)
        finally:
            del self._running[unit]
            self._changed.set()
        if unit in self._woken:
            self._woken.discard(unit)
            self._due[unit] = self._clock.now()
        elif again is not None:
            self._due[unit] = min(again, self._due.get(unit, again))

    async def _listen(self, source: ReportSource) -> None:
        while True:
            try:
                await source.listen(self._report)
            except Exception as error:
                self._note(error)
            await anyio.sleep(self._config.lock_retry_seconds)

    # ------------------------------------------------------------------------------------------------------- helpers

    def _note(self, error: Exception) -> None:
        self._failures += 1
        self._last_error = f"{type(error).__name__} at {self._clock.now():%Y-%m-%d %H:%M:%S}"

    async def _pause(self, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await self._stop.wait()

    @staticmethod
    async def _first_of(*events: anyio.Event) -> None:
        async with anyio.create_task_group() as waiting:

            async def wait(event: anyio.Event) -> None:
                await event.wait()
                waiting.cancel_scope.cancel()

            for event in events:
                waiting.start_soon(wait, event)


class _Once:
    """Tells that the dispatcher is ready, at most once."""

    def __init__(self, task_status: TaskStatus[None]) -> None:
        self._task_status: TaskStatus[None] | None = task_status

    def __call__(self) -> None:
        told, self._task_status = self._task_status, None
        if told is not None:
            told.started()
