"""The protocol of dispatchers, which decide when which unit is worked on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import attrs

from outreach.protocols.storage import WakeUps

if TYPE_CHECKING:
    from outreach.core.clock import Clock
    from outreach.core.config import EngineConfig
    from outreach.core.log_throttle import LogThrottle
    from outreach.models.health import DispatcherHealth
    from outreach.models.work import WorkItem, WorkUnit
    from outreach.protocols.carrier import ReportSink
    from outreach.protocols.instrumentation import Instrumentation


class WakeSignal(Protocol):
    """Lets a slice wait until it is woken."""

    @property
    def stopping(self) -> bool:
        """Whether the slice must start nothing new and return."""
        ...

    async def wait(self, seconds: float) -> None:
        """Wait; return sooner when the unit was woken or the dispatcher stops."""
        ...


class SliceRunner(Protocol):
    """Works on one unit for a while."""

    async def serve(self, *, task_status: Any = ...) -> None:
        """Own the requests that slices leave in flight, until cancelled."""
        ...

    async def run_slice(self, unit: WorkUnit, *, epoch: int, until: float, wake_signal: WakeSignal) -> datetime | None:
        """Work on a unit until nothing is due, or until `until` on the monotonic clock.

        Requests in flight at the end of the slice continue, and their outcomes are recorded.

        Returns:
            When the unit is due next; None if nothing is left until it is changed.

        Raises:
            LeaseLost: The epoch is no longer the current one.
        """
        ...

    async def drain(self, *, grace_seconds: float) -> None:
        """Wait for the requests in flight; after the grace, record the rest as unknown."""
        ...


class Worker(Protocol):
    """The lease of a worker, and the feed of due work."""

    @property
    def lease_seconds_left(self) -> float:
        """How long the lease lasts without being renewed."""
        ...

    async def acquire(self, *, on_integrity_check: Callable[[], None] = ...) -> int | None:
        """Take a lease without waiting; return its epoch, or None while there are as many workers as allowed.

        Args:
            on_integrity_check: Called before the slow database check after a crash, on the event loop. A caller that
                waits for the dispatcher to be ready must not wait for the check.

        Raises:
            DispatchRefused: Dispatch is disabled for this database here.
        """
        ...

    async def renew(self, epoch: int) -> None:
        """Renew the lease.

        Raises:
            LeaseLost: It has ended, and others may drive what this worker drove.
        """
        ...

    def note_set_back(self, back: timedelta) -> None:
        """Note how far the clock was set back; the next `renew` corrects the times stored since."""
        ...

    async def release(self) -> None:
        """End the lease, and leave to others what this worker drives."""
        ...

    async def settle_kept(self) -> None:
        """Record the outcomes that could not be recorded while the database was away, trying until all are.

        A worker also does so with its heartbeats; a dispatcher that ends calls it within the rest of its grace. Where
        the right was refused there are no heartbeats, and it may call it at once.
        """
        ...

    async def due(self) -> tuple[Sequence[WorkItem], int]:
        """Return all work with a due time, and the highest change number; another worker may drive some of it."""
        ...

    async def since(self, change: int) -> Sequence[WorkItem]:
        """Return the changes after a number; beside other workers also, now and then, what is due without a worker."""
        ...

    async def refused_by(self, unit: WorkUnit) -> int | None:
        """Return why the last slice of a unit did nothing, where that was because of other workers.

        Returns:
            The epoch of the worker that drives it; 0 if that is being handed over; None if the slice was not refused.
        """
        ...

    async def sweep(self) -> None:
        """Delete a slice of garbage: leftovers of failed loads, expired keys."""
        ...


@runtime_checkable
class ReportSource(Protocol):
    """An adapter that receives reports itself."""

    @property
    def name(self) -> str:
        """The name in the log."""
        ...

    async def listen(self, sink: ReportSink) -> None:
        """Pass on reports as they arrive, until cancelled."""
        ...


@attrs.frozen(kw_only=True)
class DispatcherParts:
    """The parts that the engine passes to a factory of dispatchers.

    Attributes:
        worker: The right to dispatch, and the feed of what is due.
        runner: Does the work on one unit for a while.
        sources: Adapters that receive reports without a callback; call `listen` of each while `run` runs.
        report: Takes their reports: pass it to `ReportSource.listen`.
        clock: The source of time.
        config: How long a slice is (`time_slice_seconds`), and how often the feed is read (`change_poll_seconds`), the
            lease renewed (`heartbeat_interval_seconds`), the right asked for again (`lock_retry_seconds`) and what
            nobody needs swept (`cleanup_interval_seconds`).
        wake_ups: Wait by it for the next reading of the feed: `await wake_ups.wait("work", poll_seconds=…)` returns
            sooner when another process has changed something since the last wait, where commits are notified.
    """

    worker: Worker
    runner: SliceRunner
    sources: Sequence[ReportSource]
    report: ReportSink
    clock: Clock
    config: EngineConfig
    wake_ups: WakeUps = attrs.field(factory=WakeUps)


class Dispatcher(Protocol):
    """Drives runners. `outreach.testing.dispatcher_contract` tests one for all of this.

    - `run` returns only after cancellation or `stop`; errors of runners never leave it.
    - One slice at a time works on a unit.
    - A unit that is woken during its slice is worked on again after it.
    - `stop` starts no new requests and lets running ones end within its grace; it also ends a wait for the right.
    - A refused database (`DispatchRefused`) is not asked for again; `health` says why. Earlier answers of providers
      are recorded all the same (`settle_kept`).
    - However `run` ends, it drains the runner, and releases the right last.
    """

    async def run(self, *, task_status: Any = ...) -> None:
        """Work until stopped; report ready through `task_status.started()`."""
        ...

    def wake(self, unit: WorkUnit) -> None:
        """Have a unit worked on soon; never waits. An error is logged, because the feed has the unit as well."""
        ...

    async def stop(self, *, grace_seconds: float) -> None:
        """Start nothing new, wait for requests in flight, and end `run`; return when it has ended."""
        ...

    def health(self) -> DispatcherHealth:
        """Return the dispatcher's health."""
        ...


DispatcherFactory: TypeAlias = Callable[[DispatcherParts], Dispatcher]
"""Makes the dispatcher of an engine that is opened to dispatch: `Outreach(dispatcher=...)`."""


class DispatcherPlugin(Protocol):
    """A dispatcher that the configuration names, and its tables in the engine's database; all block on the database."""

    def dispatcher_of(
        self, url: str, *, concurrency: int, log_throttle: LogThrottle, instrumentation: Instrumentation
    ) -> DispatcherFactory:
        """Return what makes the dispatcher of an engine.

        Args:
            url: The engine's database.
            concurrency: How many slices run at a time.
            log_throttle: The engine's log.
            instrumentation: Observes a lost lease.

        Raises:
            ConfigError: It cannot work in this database.
        """
        ...

    def conninfo_of(self, url: str) -> str:
        """Return how a library connects to the database of a URL.

        Raises:
            ConfigError: The dispatcher cannot work in this database.
        """
        ...

    def install(self, url: str) -> Sequence[str]:
        """Make its tables, or bring them up to date; return the names of the steps."""
        ...

    def pending_steps(self, url: str) -> Sequence[str]:
        """Return the names of the steps that `install` would take."""
        ...

    def require(self, url: str) -> None:
        """Check that no step is pending.

        Raises:
            DatabaseOlder: One is.
        """
        ...
