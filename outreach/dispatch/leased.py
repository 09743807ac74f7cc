"""Shared parts of the dispatchers (lease, heartbeat, feed, sources, stop), and the dispatcher of one process."""

from __future__ import annotations

import heapq
import itertools
import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import anyio
from anyio.abc import TaskGroup, TaskStatus

from outreach.core.clock import Clock, StepWatch, format_timestamp
from outreach.core.config import EngineConfig
from outreach.core.log_throttle import DISPATCH, LogThrottle
from outreach.core.logged_errors import masked
from outreach.errors import DatabaseReplaced, DispatchRefused, LeaseLost
from outreach.models.health import DispatcherHealth, DispatcherState
from outreach.models.work import WorkItem, WorkUnit
from outreach.protocols.carrier import ReportSink
from outreach.protocols.dispatcher import ReportSource, SliceRunner, Worker
from outreach.protocols.instrumentation import Instrumentation
from outreach.protocols.storage import WakeUps
from outreach.providers.http.request_gate import call_plugin

_log = logging.getLogger(__name__)

FIRST_BACKOFF_SECONDS: Final = 1.0
_MAX_BACKOFF_SECONDS: Final = 60.0

_CHECK_SECONDS: Final = 0.5
"""How long the start waits for an integrity check after a crash."""

_LEAST_PAUSE_SECONDS: Final = 0.05
"""Between two readings of the feed."""

_SLICE_END_SECONDS: Final = 1.0
"""How long slices have to end by themselves, also with a shorter grace period."""

_MAY_PASS: Final = frozenset({"note", "secret_key"})
"""Reasons of a refusal that may pass by itself: a disk has room again, a directory is there, or a key is put back."""

_REFUSED_RETRY_SECONDS: Final = 5.0

_NOT_TO_BE_WRITTEN: Final = frozenset({"damaged", "replaced", "log_deleted"})
"""Reasons of a refusal for which outcomes are not recorded either: the file is broken, or is not the one of the
dispatches."""


class UnitState:
    """A unit's state, and the wake signal of its slice.

    Attributes:
        failures: Slices that failed in a row.
    """

    def __init__(self, dispatcher: LeasedDispatcher) -> None:
        self._dispatcher = dispatcher
        self._woken = anyio.Event()
        self.failures = 0

    @property
    def stopping(self) -> bool:
        """Whether the slice must start nothing new and return."""
        return self._dispatcher.stopping

    async def wait(self, seconds: float) -> None:
        """Wait; return sooner when the unit was woken or the dispatcher stops."""
        if self._woken.is_set():
            self._woken = anyio.Event()
            return
        with anyio.move_on_after(seconds):
            await self._woken.wait()
        self._woken = anyio.Event()

    def wake(self) -> None:
        """End the wait of the slice."""
        self._woken.set()


class LeasedDispatcher(ABC):
    """Drives runners under a worker's lease; see `protocols.dispatcher.Dispatcher`.

    Args:
        worker: The dispatch lease and the work feed.
        runner: Runs units.
        report: Receives the reports of the sources.
        sources: Adapters that listen for reports by themselves.
        clock: The source of time.
        config: Slices, polling, heartbeats.
        log_throttle: The engine's log; a new one by default.
        instrumentation: Observes a lost lease; none by default.
        wake_ups: End the waits of the feed; the clock alone by default.
    """

    def __init__(
        self,
        *,
        worker: Worker,
        runner: SliceRunner,
        report: ReportSink,
        sources: Sequence[ReportSource],
        clock: Clock,
        config: EngineConfig,
        log_throttle: LogThrottle | None = None,
        instrumentation: Instrumentation | None = None,
        wake_ups: WakeUps | None = None,
    ) -> None:
        self._wake_ups = wake_ups or WakeUps()
        self._instrumentation = instrumentation or Instrumentation()
        self._log_throttle = log_throttle or LogThrottle(clock)
        self._worker = worker
        self._runner = runner
        self._report = report
        self._sources = sources
        self._clock = clock
        self._config = config
        self._set_back = anyio.Event()
        self._stop = anyio.Event()
        self._ended = anyio.Event()
        self._acquire_scope = anyio.CancelScope()
        self._started = False
        self._grace_ends: float | None = None
        self._epoch: int | None = None
        self._lease_lost: LeaseLost | DispatchRefused | None = None
        self._failures = 0
        self._last_error: str | None = None
        self._refused: DispatchRefused | None = None
        self._standing_by = False
        self._checking = False
        self._last_heartbeat = 0.0
        self._forget_units()

    @property
    def stopping(self) -> bool:
        """Whether no new work is started."""
        return self._stop.is_set() or self._lease_lost is not None

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Work until stopped; it reports ready after its first attempt to take the lease."""
        self._started = True
        try:
            async with anyio.create_task_group() as tasks:
                for source in self._sources:
                    tasks.start_soon(self._listen, source)
                await self._acquire_and_work(tasks, task_status)
                tasks.cancel_scope.cancel()
        finally:
            self._ended.set()

    async def stop(self, *, grace_seconds: float) -> None:
        """Start no new work, wait for requests in flight, and end `run`."""
        self._grace_ends = self._clock.monotonic() + grace_seconds
        self._stop.set()
        # Nothing was started under this lease yet.
        self._acquire_scope.cancel()
        self._wake_all()
        if self._started:
            await self._ended.wait()

    def health(self) -> DispatcherHealth:
        """Return the dispatcher's health."""
        return DispatcherHealth(
            dispatching=self._epoch is not None and not self.stopping,
            epoch=self._epoch,
            active_units=self._active_units(),
            failures=self._failures,
            last_error=self._last_error,
            state=self._state(),
            refused=self._refused.message if self._refused is not None else None,
            refused_reason=self._refused.reason if self._refused is not None else None,
            lease_seconds_left=self._worker.lease_seconds_left if self._epoch is not None else None,
            heartbeat_seconds_ago=self._clock.monotonic() - self._last_heartbeat if self._epoch is not None else None,
        )

    def _state(self) -> DispatcherState:
        if self._refused is not None:
            return "refused"
        if self._stop.is_set():
            return "stopping"
        if self._epoch is not None and self._lease_lost is None:
            return "dispatching"
        if self._checking:
            return "checking"
        return "standing_by" if self._standing_by else "starting"

    async def _acquire_and_work(self, tasks: TaskGroup, task_status: TaskStatus[None]) -> None:
        ready = False

        def report_ready() -> None:
            nonlocal ready
            if not ready:
                ready = True
                task_status.started()

        async def report_ready_soon() -> None:
            # A check may take long, and a server must answer requests meanwhile.
            await anyio.sleep(_CHECK_SECONDS)
            report_ready()

        def on_integrity_check() -> None:
            self._checking = True
            tasks.start_soon(report_ready_soon)

        while not self._stop.is_set():
            epoch, self._checking = None, False
            try:
                with anyio.CancelScope() as self._acquire_scope:
                    epoch = await self._worker.acquire(on_integrity_check=on_integrity_check)
            except DispatchRefused as error:
                self._refuse(error)
                report_ready()
                if error.reason in _NOT_TO_BE_WRITTEN:
                    await self._stop.wait()
                    return
                passes = error.reason in _MAY_PASS
                await self._settle_kept_until_stopped(within=_REFUSED_RETRY_SECONDS if passes else math.inf)
                continue
            except Exception as error:
                self._count_failure(error)
                self._log_throttle.failure("lease_failed", error, "Could not take the dispatch lease.")
            else:
                self._refused = None
                self._log_throttle.recovered(DISPATCH, "Dispatch is enabled again.", action="dispatch_again")
                self._log_standby(epoch is None and not self._stop.is_set())
            self._checking = False
            if epoch is not None:
                self._epoch, self._last_heartbeat = epoch, self._clock.monotonic()
            report_ready()
            if epoch is None:
                with anyio.move_on_after(self._config.lock_retry_seconds):
                    await self._stop.wait()
                continue
            if not await self._work_until_lost(epoch):
                # The cause may last, and taking the lease repeatedly would only write to the database.
                with anyio.move_on_after(FIRST_BACKOFF_SECONDS):
                    await self._stop.wait()
        # Outcomes that could not be recorded while the database was away would be lost with this process.
        with anyio.move_on_after(self._grace_left()):
            await self._worker.settle_kept()

    def _refuse(self, error: DispatchRefused) -> None:
        self._refused = error
        self._log_throttle.problem(
            DISPATCH,
            error.reason,
            "Dispatch disabled: %s",
            masked(error.message),
            level=logging.ERROR,
            action="dispatch_refused",
        )

    async def _settle_kept_until_stopped(self, *, within: float) -> None:
        """Record what providers answered before the right was refused: recording needs no right."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._worker.settle_kept)
            with anyio.move_on_after(within):
                await self._stop.wait()
            tasks.cancel_scope.cancel()

    def _log_standby(self, standing_by: bool) -> None:
        if standing_by and not self._standing_by:
            _log.info(
                "Another process dispatches from this database; this one is on standby and takes over when that ends.",
                extra={"action": "standing_by"},
            )
        self._standing_by = standing_by

    async def _work_until_lost(self, epoch: int) -> bool:
        """Work under an epoch; return False after an unexpected error."""
        failed = False
        try:
            await self._work(epoch)
        except Exception as error:
            failed = True
            self._count_failure(error)
            self._log_throttle.failure("dispatcher_failed", error, "Dispatching stopped with an unexpected error.")
        finally:
            self._epoch = None
            self._forget_units()
            with anyio.CancelScope(shield=True):
                failed = not await self._give_back() or failed
        if isinstance(self._lease_lost, DispatchRefused) and self._lease_lost is self._refused:
            self._lease_lost = None
        if self._lease_lost is not None:
            _log.warning("%s", masked(self._lease_lost.message), extra={"action": "lease_lost"})
            self._instrumentation.lease_lost()
            self._lease_lost = None
        return not failed

    async def _give_back(self) -> bool:
        """End the lease; return False after an unexpected error."""
        try:
            await self._worker.release()
            await self._released()
        except Exception as error:
            # The lease expires; a dispatcher that ended here would send nothing until a restart.
            self._count_failure(error)
            self._log_throttle.failure("dispatcher_failed", error, "The lease could not be given back.")
            return False
        return True

    async def _work(self, epoch: int) -> None:
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._runner.serve)
            tasks.start_soon(self._heartbeat, epoch)
            tasks.start_soon(self._sweep)
            tasks.start_soon(self._follow_changes)
            try:
                async with anyio.create_task_group() as slices:
                    tasks.start_soon(self._end_in_time, slices.cancel_scope)
                    await self._drive(slices, epoch)
            finally:
                # Slices have ended; requests in flight get the grace period in any case.
                with anyio.CancelScope(shield=True):
                    await self._runner.drain(grace_seconds=self._grace_left())
            tasks.cancel_scope.cancel()

    def _grace_left(self) -> float:
        """Return how many seconds of the grace period are left."""
        if self._grace_ends is None:
            return self._config.stop_grace_seconds
        return max(self._grace_ends - self._clock.monotonic(), 0.0)

    async def _end_in_time(self, slices: anyio.CancelScope) -> None:
        """Cancel slices that exceed the grace period, as with a blocked database."""
        await self._stop.wait()
        await anyio.sleep(max(self._grace_left(), _SLICE_END_SECONDS))
        slices.cancel()

    async def _slice(self, unit: WorkUnit, state: UnitState, epoch: int) -> datetime | None:
        """Run a slice; return when its unit is due next: after an error, when it is to be tried again."""
        try:
            until = self._clock.monotonic() + self._config.time_slice_seconds
            due = await self._runner.run_slice(unit, epoch=epoch, until=until, wake_signal=state)
            state.failures = 0
        except (LeaseLost, DatabaseReplaced) as error:
            self._record_lost_lease(error)
            due = None
        except Exception as error:
            self._count_failure(error)
            state.failures += 1
            backoff = min(FIRST_BACKOFF_SECONDS * 2.0 ** (state.failures - 1), _MAX_BACKOFF_SECONDS)
            due = self._clock.now() + timedelta(seconds=backoff)
            self._log_throttle.failure(
                "slice_failed",
                error,
                "A slice of %s %s failed; it is tried again in %g s.",
                unit.kind,
                unit.id,
                backoff,
                unit=unit.id,
            )
        return due

    def _note_clock_steps(self, steps: StepWatch) -> bool:
        """Look at the clock; if it was set back, have the next heartbeat repair that, and return True."""
        step = steps.step()
        if step >= timedelta():
            return False
        # The worker's own next check may not see the step any more.
        self._worker.note_set_back(-step)
        self._set_back.set()
        return True

    async def _follow_changes(self) -> None:
        change: int | None = None
        while True:
            try:
                if change is None:
                    changes, change = await self._worker.due()
                else:
                    changes = await self._worker.since(change)
            except DatabaseReplaced as error:
                self._record_lost_lease(error)
                return
            except Exception as error:
                self._count_failure(error)
                self._log_throttle.failure("changes_failed", error, "Could not read the changes.")
            else:
                self._take_changes(changes)
                change = max((change, *(work.change for work in changes)))
            # Not sooner, so that a process that is notified of each commit does not read the feed after each.
            least = min(_LEAST_PAUSE_SECONDS, self._config.change_poll_seconds)
            await anyio.sleep(least)
            await self._wake_ups.wait("work", poll_seconds=self._config.change_poll_seconds - least)

    async def _heartbeat(self, epoch: int) -> None:
        while True:
            with anyio.move_on_after(self._config.heartbeat_interval_seconds):
                await self._set_back.wait()
            self._set_back = anyio.Event()
            try:
                await self._worker.renew(epoch)
                self._last_heartbeat = self._clock.monotonic()
            except (LeaseLost, DatabaseReplaced) as error:
                # A replaced database is reported at the next attempt to take the lease.
                self._record_lost_lease(error)
                return
            except DispatchRefused as error:
                self._count_failure(error)
                self._refuse(error)
                self._record_lost_lease(error)
                return
            except Exception as error:
                self._count_failure(error)
                self._log_throttle.failure("renew_failed", error, "Could not renew the lease.")

    async def _sweep(self) -> None:
        while True:
            try:
                await self._worker.sweep()
            except Exception as error:
                self._count_failure(error)
                self._log_throttle.failure("sweep_failed", error, "Could not delete expired rows.")
            await anyio.sleep(self._config.cleanup_interval_seconds)

    async def _listen(self, source: ReportSource) -> None:
        while True:
            try:
                await call_plugin(source.listen(self._report))
            except Exception as error:
                self._count_failure(error)
                self._log_throttle.failure("listen_failed", error, "Could not listen to %s.", source.name)
            await anyio.sleep(FIRST_BACKOFF_SECONDS)

    def _record_lost_lease(self, error: LeaseLost | DispatchRefused) -> None:
        self._lease_lost = error
        self._wake_all()

    def _count_failure(self, error: Exception) -> None:
        self._failures += 1
        self._last_error = f"{type(error).__name__} at {format_timestamp(self._clock.now())}"

    # ------------------------------------------------------------------------- what each dispatcher does

    @abstractmethod
    def wake(self, unit: WorkUnit) -> None:
        """Have a unit worked on soon; never waits."""

    @abstractmethod
    async def _drive(self, slices: TaskGroup, epoch: int) -> None:
        """Run slices in a task group until `stopping`."""

    async def _released(self) -> None:
        """Leave to others what only this worker would do; its lease has ended."""
        return

    @abstractmethod
    def _take_changes(self, changes: Sequence[WorkItem]) -> None:
        """Take in units from the feed: at first all that have a due time, then those that changed."""

    @abstractmethod
    def _wake_all(self) -> None:
        """Wake every slice, and the code that starts slices, so that each checks whether it must stop."""

    @abstractmethod
    def _active_units(self) -> int:
        """Return how many slices run."""

    @abstractmethod
    def _forget_units(self) -> None:
        """Know of no units: the lease is over, or nothing has begun."""


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
