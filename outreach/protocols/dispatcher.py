"""What the engine asks of a dispatcher: to decide when which unit is worked on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Protocol

import attrs

from outreach.models.work import Unit


@attrs.frozen(kw_only=True)
class DispatcherHealth:
    """How a dispatcher is.

    Attributes:
        dispatching: Whether it holds the right to dispatch now.
        epoch: The epoch of that right; None without it.
        active_units: Units being worked on at this moment.
        failures: Slices that ended in an unexpected error since the start.
        last_error: Class name and time of the latest of those; None when there was none.
        refused: Why it does not dispatch here at all; None when nothing forbids it.
    """

    dispatching: bool
    epoch: int | None
    active_units: int
    failures: int
    last_error: str | None
    refused: str | None = None


class SliceRunner(Protocol):
    """Does the work on one unit for a while."""

    async def run_slice(self, unit: Unit, *, epoch: int, until: float) -> datetime | None:
        """Work on a unit until nothing is due, or until `until` on the monotonic clock.

        Returns:
            When the unit is due next; None when nothing is left until somebody touches it.
        """
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

    def wake(self, unit: Unit) -> None:
        """Have a unit looked at soon; cheap, never waits."""
        ...

    async def stop(self, *, grace_seconds: float) -> None:
        """Start nothing new, wait for what is in flight, and end `run`."""
        ...

    def health(self) -> DispatcherHealth:
        """Return how it is."""
        ...


WakeListener = Callable[[Unit], None]
