"""What the engine asks of a dispatcher: to decide when which unit is worked on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol, runtime_checkable

from outreach.models.status import DispatcherHealth
from outreach.models.work import WorkItem, WorkUnit
from outreach.protocols.carrier import ReportSink


class WakeSignal(Protocol):
    """How a slice waits, so that it can be told to look again."""

    @property
    def stopping(self) -> bool:
        """Whether the slice must start nothing new and return."""
        ...

    async def wait(self, seconds: float) -> None:
        """Wait; return sooner when the unit was woken or the dispatcher stops."""
        ...


class SliceRunner(Protocol):
    """Does the work on one unit for a while."""

    async def serve(self, *, task_status: Any = ...) -> None:
        """Hold the requests that slices leave in flight, until it is cancelled."""
        ...

    async def run_slice(self, unit: WorkUnit, *, epoch: int, until: float, wake_signal: WakeSignal) -> datetime | None:
        """Work on a unit until nothing is due, or until `until` on the monotonic clock.

        Requests that are in flight when the slice ends go on; their outcomes are recorded all the same.

        Returns:
            When the unit is due next; None when nothing is left until somebody touches it.

        Raises:
            LeaseLost: The epoch is not the present one any more.
        """
        ...

    async def drain(self, *, grace_seconds: float) -> None:
        """Wait for the requests in flight; after the grace, record those that are left as unknown."""
        ...


class Worker(Protocol):
    """The right to dispatch, and the feed of what is due."""

    @property
    def lease_seconds_left(self) -> float:
        """How long the right lasts without being renewed."""
        ...

    async def acquire(self, *, on_integrity_check: Callable[[], None] = ...) -> int | None:
        """Take the right to dispatch, without waiting for it; return the epoch, or None while another has it.

        Args:
            on_integrity_check: Called when that will take long: after a crash the database is looked through first.

        Raises:
            DispatchRefused: Nothing may ever be dispatched from this database here.
        """
        ...

    async def renew(self, epoch: int) -> None:
        """Keep the right.

        Raises:
            LeaseLost: Another worker has it.
        """
        ...

    def note_set_back(self, back: timedelta) -> None:
        """Note how far the clock was set back: the next `renew` corrects what the database has noted since."""
        ...

    async def release(self) -> None:
        """Give the right back."""
        ...

    async def due(self) -> tuple[Sequence[WorkItem], int]:
        """Return everything that has a due time, and the highest change number."""
        ...

    async def since(self, change: int) -> Sequence[WorkItem]:
        """Return what has changed after a number, by change."""
        ...

    async def sweep(self) -> None:
        """Clear away a slice of what nobody needs: leftovers of loads that died, keys that expired."""
        ...


@runtime_checkable
class ReportSource(Protocol):
    """An adapter that hears of things by itself."""

    @property
    def name(self) -> str:
        """The name under which it is logged."""
        ...

    async def listen(self, sink: ReportSink) -> None:
        """Hand in reports as they come, until it is cancelled."""
        ...


class Dispatcher(Protocol):
    """Drives runners.

    - `run` returns only when it is cancelled or `stop` was called; errors of runners never leave it.
    - A unit is worked on by one slice at a time.
    - A unit that is woken while its slice runs is worked on again after it.
    - `stop` lets running requests end, within its grace, and starts no new ones.
    """

    async def run(self, *, task_status: Any = ...) -> None:
        """Work until stopped; report ready through `task_status.started()`."""
        ...

    def wake(self, unit: WorkUnit) -> None:
        """Have a unit looked at soon; cheap, never waits."""
        ...

    async def stop(self, *, grace_seconds: float) -> None:
        """Start nothing new, wait for what is in flight, and end `run`; return when it has ended."""
        ...

    def health(self) -> DispatcherHealth:
        """Return how it is."""
        ...
