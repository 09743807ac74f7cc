"""The dispatcher whose slices are jobs of Procrastinate.

Triggers defer the jobs, rather than the storage: so no process can forget one. A failed job is no state of its unit:
the periodic task gives a new job to whatever is due and has none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final

import anyio
import procrastinate
import psycopg
from anyio.abc import TaskGroup
from procrastinate.connector import BaseAsyncConnector
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager

from outreach.core.clock import StepWatch
from outreach.core.log_throttle import LogThrottle
from outreach.dispatch.leased import FIRST_BACKOFF_SECONDS, LeasedDispatcher, UnitState
from outreach.errors import ConfigError, StorageError
from outreach.integrations.procrastinate.jobs import (
    FREE_ORPHANS,
    LOOK_AFTER,
    QUEUE,
    SLICE,
    Deferral,
    Jobs,
    connector_of,
    queue_of,
)
from outreach.integrations.procrastinate.schema import conninfo_of
from outreach.models.work import WorkItem, WorkUnit
from outreach.protocols.dispatcher import DispatcherFactory, DispatcherParts
from outreach.protocols.instrumentation import Instrumentation

LOOK_AFTER_CRON: Final = "* * * * * */10"
"""Every ten seconds: the last field are seconds."""

_LOOK_AFTER_SECONDS: Final = 60.0
"""A worker that got no periodic job for this long does what it is for: no job comes while the clock of all machines is
behind the last one's, because it was set back."""

_QUIET_SECONDS: Final = 60.0
"""A unit that says it has nothing to do, although it is due, is run again after this long."""

_RELEASE_SECONDS: Final = 1.0
"""How long the end waits for the jobs to be given to others."""

_MAX_KNOWN: Final = 10_000
"""The most units whose state is kept after their slices."""

_KEPT_HOURS: Final = 24 * 7
"""For how long jobs that were cancelled or failed can be looked at."""


_NO_WRITES: Final = "The database takes no writes: its server is a standby, or hands over to one."
_NO_ROOM: Final = "The disk of the database server is full. Make room; nothing that was committed is lost."


def _as_storage_error(error: Exception) -> Exception:
    """Return what the database does not do for now as a `StorageError`, which is logged once; others as they are."""
    cause = error.__cause__
    if not isinstance(error, procrastinate.exceptions.ConnectorException) or not isinstance(cause, psycopg.Error):
        return error
    if isinstance(cause, psycopg.errors.ReadOnlySqlTransaction):
        words = _NO_WRITES
    elif isinstance(cause, psycopg.errors.DiskFull):
        words = _NO_ROOM
    elif isinstance(cause, psycopg.OperationalError) and (cause.sqlstate or "08").startswith(("08", "57P0")):
        words = "The connection to the database was lost."
    else:
        return error
    first = next(iter(str(cause).splitlines()), "")
    translated = StorageError(f"{words} ({type(cause).__name__}: {first})")
    translated.__cause__ = cause
    return translated


class _JobManager(JobManager):
    """Ends jobs; one that cannot be marked so, because a connection was lost, is left to the search for such jobs.

    Procrastinate's worker does not expect an error there: asyncio would print it with a traceback.

    Args:
        connector: The way to the database.
        report: Called with the error of a lost connection.
    """

    def __init__(self, connector: BaseAsyncConnector, report: Callable[[StorageError], None]) -> None:
        super().__init__(connector)
        self._report_loss = report

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:
        """Mark a job as ended, or delete it; do nothing if another worker has ended it."""
        try:
            await super().finish_job(job, status, delete_job)
        except procrastinate.exceptions.ConnectorException as error:
            # "Job was not found": this worker stood still for longer than its lease.
            if isinstance(error.__cause__, psycopg.errors.RaiseException):
                return
            translated = _as_storage_error(error)
            if not isinstance(translated, StorageError):
                raise
            self._report_loss(translated)


class _Unit(UnitState):
    def __init__(self, dispatcher: LeasedDispatcher, failures: int) -> None:
        super().__init__(dispatcher)
        self.failures = failures
        self.scope = anyio.CancelScope()


class ProcrastinateDispatcher(LeasedDispatcher):
    """Drives runners by jobs in the same PostgreSQL; see `protocols.dispatcher.Dispatcher`.

    A job is a slice of a unit. The transactions that change work defer them (`jobs.sql`); a slice that has ended defers
    the next one. What has no job although it is due, because something was lost, gets one from a periodic task.

    Args:
        parts: What the engine hands over.
        url: The database, in which `install` has made the tables.
        concurrency: How many slices run at a time.
        look_after_cron: When the periodic task runs.
        log_throttle: The engine's log; a new one by default.
        instrumentation: Observes a lost lease; none by default.

    Raises:
        ConfigError: The URL is not one of PostgreSQL, or the concurrency is not positive.
    """

    _running: dict[WorkUnit, _Unit]
    _failed: dict[WorkUnit, int]
    _quiet: dict[WorkUnit, tuple[int, float]]
    _changes: dict[WorkUnit, int]
    _woken: set[WorkUnit]
    _worker_id: int | None
    _job_ids: set[int | None]
    _ended_ids: set[int | None]
    _looked_after: float
    _wake_up: anyio.Event

    def __init__(
        self,
        parts: DispatcherParts,
        *,
        url: str,
        concurrency: int = 100,
        look_after_cron: str = LOOK_AFTER_CRON,
        log_throttle: LogThrottle | None = None,
        instrumentation: Instrumentation | None = None,
    ) -> None:
        if concurrency < 1:
            raise ConfigError(f"concurrency is {concurrency}; it must be at least 1.")
        conninfo_of(url)
        super().__init__(
            worker=parts.worker,
            runner=parts.runner,
            report=parts.report,
            sources=parts.sources,
            clock=parts.clock,
            config=parts.config,
            log_throttle=log_throttle,
            instrumentation=instrumentation,
            wake_ups=parts.wake_ups,
        )
        self._url = url
        self._concurrency = concurrency
        self._cron = look_after_cron

    def wake(self, unit: WorkUnit) -> None:
        """Defer a unit for now; its running slice looks again, and another one follows."""
        if self._epoch is not None:
            self._woken.add(unit)
            self._wake_up.set()
            state = self._running.get(unit)
            if state is not None:
                state.wake()

    async def _drive(self, slices: TaskGroup, epoch: int) -> None:
        slices.start_soon(self._watch_clock)
        while not self.stopping:
            connector = connector_of(self._url)
            app = procrastinate.App(
                connector=connector,
                worker_defaults={
                    "queues": [QUEUE, queue_of(epoch)],
                    "concurrency": self._concurrency,
                    "fetch_job_polling_interval": self._config.change_poll_seconds,
                    "update_heartbeat_interval": self._config.heartbeat_interval_seconds,
                    "stalled_worker_timeout": self._config.lease_seconds,
                    "install_signal_handlers": False,
                    # Also when it ends because it lost its connections: it starts again then.
                    "shutdown_graceful_timeout": self._config.stop_grace_seconds,
                    "delete_jobs": "successful",
                },
            )
            app.job_manager = _JobManager(connector, self._tell_of_unmarked_job)
            try:
                await app.open_async()
                await self._work_on_jobs(app, Jobs(connector), epoch)
            except Exception as error:
                self._count_failure(error)
                self._log_throttle.failure("jobs_failed", _as_storage_error(error), "Could not work on the jobs.")
            finally:
                with anyio.CancelScope(shield=True):
                    await app.close_async()
            if not self.stopping:
                # Whatever is woken meanwhile: the cause may last.
                with anyio.move_on_after(FIRST_BACKOFF_SECONDS):
                    await self._stop.wait()
        slices.cancel_scope.cancel()

    def _tell_of_unmarked_job(self, error: StorageError) -> None:
        self._count_failure(error)
        self._log_throttle.failure("jobs_failed", error, "Could not mark a job as ended.")

    async def _work_on_jobs(self, app: procrastinate.App, jobs: Jobs, epoch: int) -> None:
        """Run Procrastinate's worker until it is to stop; it lets the slices end that run then."""
        self._define_tasks(app, jobs, epoch)
        await self._give_jobs(jobs)
        self._looked_after = self._clock.monotonic()
        # A plain task: anyio would cancel it again and again while it lets its slices end.
        worker = asyncio.create_task(app.run_worker_async(), name="outreach procrastinate worker")
        look_at = self._clock.monotonic() + self._config.heartbeat_interval_seconds
        try:
            while not self.stopping and not worker.done():
                self._wake_up = anyio.Event()
                for unit in list(self._woken):
                    self._woken.discard(unit)
                    await jobs.defer(Deferral(unit=unit, due=self._clock.now()))
                if self._clock.monotonic() >= look_at:
                    await self._end_stuck(app, jobs)
                    if self._clock.monotonic() >= self._looked_after + _LOOK_AFTER_SECONDS:
                        await self._look_after(app, jobs)
                    look_at = self._clock.monotonic() + self._config.heartbeat_interval_seconds
                if not self._woken:
                    with anyio.move_on_after(self._config.change_poll_seconds):
                        await self._wake_up.wait()
            worker.cancel()
            await asyncio.wait({worker})
        finally:
            # Cancelled from outside, or the grace is over: slices end at once, and their units get new jobs.
            for state in self._running.values():
                state.scope.cancel()
            if not worker.cancelling():
                worker.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({worker})
            if not worker.cancelled():
                # Raised below, unless another error is being raised: then asyncio must not print it.
                worker.exception()
        if not worker.cancelled():
            worker.result()

    def _define_tasks(self, app: procrastinate.App, jobs: Jobs, epoch: int) -> None:
        @app.task(name=SLICE, queue=QUEUE, pass_context=True)
        async def work_on(context: procrastinate.JobContext, kind: Any, workspace_id: str, unit_id: str) -> None:
            self._worker_id = context.job.worker_id
            self._job_ids.add(context.job.id)
            try:
                await self._run_job(WorkUnit(kind, workspace_id, unit_id), jobs, epoch)
            finally:
                self._job_ids.discard(context.job.id)

        @app.periodic(cron=self._cron)
        @app.task(name=LOOK_AFTER, queue=QUEUE, priority=1, queueing_lock=LOOK_AFTER)
        async def look_after(timestamp: int) -> None:
            del timestamp
            await self._look_after(app, jobs)

    # ------------------------------------------------------------------------------------------- slices

    async def _run_job(self, unit: WorkUnit, jobs: Jobs, epoch: int) -> None:
        """Run a slice, and defer the next one before this job counts as done."""
        if unit in self._running:
            # Its first job was taken for a dead worker's.
            pause = timedelta(seconds=FIRST_BACKOFF_SECONDS)
            await jobs.defer(Deferral(unit=unit, due=self._clock.now() + pause))
            return
        state = self._running[unit] = _Unit(self, self._failed.get(unit, 0))
        change, again = self._changes.get(unit, 0), Deferral(unit=unit, due=self._clock.now(), queue=QUEUE)
        following: Deferral | None = again
        try:
            with state.scope:
                due = None if self.stopping else await self._slice(unit, state, epoch)
                if self.stopping and due is None:
                    # No worker has run it, or the lease has ended.
                    following = again
                else:
                    following = await self._following(unit, due)
        finally:
            del self._running[unit]
            with anyio.CancelScope(shield=True):
                await self._defer_for_sure(jobs, following)
        self._failed.pop(unit, None)
        if state.failures:
            self._failed[unit] = state.failures
        if following is None:
            _bound(self._quiet)
            self._quiet[unit] = (change, self._clock.monotonic() + _QUIET_SECONDS)

    async def _following(self, unit: WorkUnit, due: datetime | None) -> Deferral | None:
        """Return the job that follows a slice; None if nothing is left until the unit is changed."""
        refused_by = await self._worker.refused_by(unit)
        if refused_by is None:
            return None if due is None else Deferral(unit=unit, due=due)
        if refused_by:
            return Deferral(unit=unit, due=self._clock.now(), queue=queue_of(refused_by))
        # It is being handed over: the next worker with capacity takes it.
        pause = timedelta(seconds=self._config.change_poll_seconds)
        return Deferral(unit=unit, due=self._clock.now() + pause, queue=QUEUE)

    async def _defer_for_sure(self, jobs: Jobs, deferral: Deferral | None) -> None:
        """Defer a job, however long the database is down; a stop does not wait, and leaves it to the periodic task."""
        while deferral is not None:
            try:
                await jobs.defer(deferral)
                return
            except Exception as error:
                self._count_failure(error)
                self._log_throttle.failure("jobs_failed", _as_storage_error(error), "Could not defer a job.")
                if self.stopping:
                    raise
            await anyio.sleep(FIRST_BACKOFF_SECONDS)

    # ---------------------------------------------------------------------------------------- safety net

    async def _look_after(self, app: procrastinate.App, jobs: Jobs) -> None:
        """Take over the jobs of dead workers, and give a job to what is due and has none."""
        self._looked_after = self._clock.monotonic()
        await jobs.free_orphans()
        for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=self._config.lease_seconds):
            await self._replace(job, app, jobs)
        await app.job_manager.delete_old_jobs(
            _KEPT_HOURS, include_failed=True, include_cancelled=True, include_aborted=True
        )
        await self._give_jobs(jobs)

    async def _end_stuck(self, app: procrastinate.App, jobs: Jobs) -> None:
        """Replace jobs of this worker that have ended, but could not be marked so: nothing else would be done."""
        if self._worker_id is None:
            return
        doing = await app.job_manager.list_jobs_async(task=SLICE, status=Status.DOING.value, worker_id=self._worker_id)
        ended = {job.id: job for job in doing if job.id not in self._job_ids}
        # One that has just ended is marked in a moment.
        for identifier in ended.keys() & self._ended_ids:
            await self._replace(ended[identifier], app, jobs)
        self._ended_ids = set(ended)

    async def _replace(self, job: procrastinate.jobs.Job, app: procrastinate.App, jobs: Jobs) -> None:
        """End a job that no worker runs, after giving its unit another one."""
        if job.task_name == SLICE:
            args: dict[str, Any] = job.task_kwargs
            unit = WorkUnit(args["kind"], args["workspace_id"], args["unit_id"])
            await jobs.defer(Deferral(unit=unit, due=self._clock.now(), queue=QUEUE))
        await app.job_manager.finish_job(job, Status.ABORTED, delete_job=True)

    async def _give_jobs(self, jobs: Jobs) -> None:
        """Give a job to each unit that is due, has none, and did not say that it has nothing to do."""
        work, _ = await self._worker.due()
        now = self._clock.monotonic()
        self._quiet = {unit: quiet for unit, quiet in self._quiet.items() if quiet[1] > now}
        self._changes = {item.unit: item.change for item in work}
        due = {
            item.unit: item.due_at
            for item in work
            if item.due_at is not None and self._quiet.get(item.unit, (-1, 0.0))[0] < item.change
        }
        for unit in await jobs.without_jobs(due.keys()):
            await jobs.defer(Deferral(unit=unit, due=due[unit]))

    async def _released(self) -> None:
        """Have other workers take at once what waits for this one; else the periodic task sees to it."""
        with anyio.move_on_after(_RELEASE_SECONDS), suppress(psycopg.Error):
            async with await psycopg.AsyncConnection.connect(conninfo_of(self._url), autocommit=True) as connection:
                await connection.execute(FREE_ORPHANS)

    async def _watch_clock(self) -> None:
        steps = StepWatch(self._clock)
        while True:
            if self._note_clock_steps(steps):
                self._wake_all()
            await anyio.sleep(self._config.change_poll_seconds)

    # --------------------------------------------------------------------------------------------- units

    def _take_changes(self, changes: Sequence[WorkItem]) -> None:
        _bound(self._changes)
        for work in changes:
            self._changes[work.unit] = work.change
            state = self._running.get(work.unit)
            if state is not None:
                # Paused or changed elsewhere: a slice that waits for its slot must check again now.
                state.wake()

    def _wake_all(self) -> None:
        self._wake_up.set()
        for state in self._running.values():
            state.wake()

    def _active_units(self) -> int:
        return len(self._running)

    def _forget_units(self) -> None:
        self._running, self._failed, self._quiet, self._changes = {}, {}, {}, {}
        self._woken, self._worker_id, self._job_ids, self._ended_ids = set(), None, set(), set()
        self._looked_after, self._wake_up = self._clock.monotonic(), anyio.Event()


def _bound(known: dict[WorkUnit, Any]) -> None:
    """Forget all where it is too many: that costs a slice a unit, and no more."""
    if len(known) >= _MAX_KNOWN:
        known.clear()


def dispatcher_of(
    url: str,
    *,
    concurrency: int = 100,
    log_throttle: LogThrottle | None = None,
    instrumentation: Instrumentation | None = None,
) -> DispatcherFactory:
    """Return what makes the dispatcher of an engine: `Outreach(storage, dispatcher=dispatcher_of(url))`.

    Args:
        url: The storage's own database, in which `install` has made the tables.
        concurrency: How many slices run at a time.
        log_throttle: The engine's log; a new one by default.
        instrumentation: Observes a lost lease; none by default.

    Raises:
        ConfigError: The URL is not one of PostgreSQL.
    """
    conninfo_of(url)

    def make(parts: DispatcherParts) -> ProcrastinateDispatcher:
        return ProcrastinateDispatcher(
            parts, url=url, concurrency=concurrency, log_throttle=log_throttle, instrumentation=instrumentation
        )

    return make
