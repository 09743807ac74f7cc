"""The dispatcher within the engine's own process."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from datetime import datetime

import anyio
from anyio.abc import TaskGroup

from outreach.core.clock import StepWatch
from outreach.dispatch.leased import LeasedDispatcher, UnitState
from outreach.models.work import WorkItem, WorkUnit


class _Unit(UnitState):
    def __init__(self, dispatcher: LeasedDispatcher) -> None:
        super().__init__(dispatcher)
        self.due: datetime | None = None
        self.running = False


class InProcessDispatcher(LeasedDispatcher):
    """Drives runners from one root task; see `protocols.dispatcher.Dispatcher`."""

    _units: dict[WorkUnit, _Unit]
    _queue: list[tuple[datetime, int, WorkUnit]]

    def wake(self, unit: WorkUnit) -> None:
        """Schedule a unit for now."""
        if self._epoch is not None:
            self._schedule(unit, self._clock.now())

    async def _drive(self, slices: TaskGroup, epoch: int) -> None:
        steps = StepWatch(self._clock)
        while not self.stopping:
            self._changed = anyio.Event()
            now = self._clock.now()
            if self._note_clock_steps(steps):
                self._reschedule_all(now)
            while self._queue and self._queue[0][0] <= now:
                _, _, unit = heapq.heappop(self._queue)
                state = self._units.get(unit)
                if state is None or state.running or state.due is None or state.due > now:
                    continue
                state.running, state.due = True, None
                slices.start_soon(self._run_unit, unit, state, epoch)
            wait = (self._queue[0][0] - now).total_seconds() if self._queue else self._config.change_poll_seconds
            with anyio.move_on_after(min(max(wait, 0.0), self._config.change_poll_seconds)):
                await self._changed.wait()
        self._wake_all()

    async def _run_unit(self, unit: WorkUnit, state: _Unit, epoch: int) -> None:
        due = await self._slice(unit, state, epoch)
        state.running = False
        # Writes during the run may have come too late for the slice. After a failure only the backoff counts.
        rescheduled, state.due = state.due, None
        if rescheduled is not None and state.failures == 0:
            due = rescheduled if due is None else min(due, rescheduled)
        if due is not None:
            self._schedule(unit, due)
        else:
            self._units.pop(unit, None)

    def _schedule(self, unit: WorkUnit, due: datetime) -> None:
        state = self._units.setdefault(unit, _Unit(self))
        if state.due is None or due < state.due:
            state.due = due
            if not state.running:
                heapq.heappush(self._queue, (due, next(self._order), unit))
                self._changed.set()
        if state.running and due <= self._clock.now():
            state.wake()

    def _take_changes(self, changes: Sequence[WorkItem]) -> None:
        for work in changes:
            state = self._units.get(work.unit)
            if work.due_at is not None:
                self._schedule(work.unit, work.due_at)
            elif state is not None and state.running:
                # Paused or done elsewhere: a slice that waits for its slot must check again now.
                state.wake()

    def _reschedule_all(self, now: datetime) -> None:
        """Schedule every unit now, because the clock was set back."""
        for unit, state in list(self._units.items()):
            if state.running:
                state.due = now
                state.wake()
            elif state.due is not None:
                self._schedule(unit, min(state.due, now))

    def _wake_all(self) -> None:
        self._changed.set()
        for state in self._units.values():
            state.wake()

    def _active_units(self) -> int:
        return sum(state.running for state in self._units.values())

    def _forget_units(self) -> None:
        self._units, self._queue = {}, []
        self._order = itertools.count()
        self._changed = anyio.Event()
