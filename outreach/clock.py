"""The time, as the engine sees it: injected, so that tests and simulations own it."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_STEP: Final = timedelta(seconds=1)
"""A clock that moves by less than this is being slewed, or read a moment late."""

_AT_ONCE_SECONDS: Final = 0.1
_LOOKS: Final = 10


class Clock(Protocol):
    """Where the engine reads the time; nothing else in it does.

    `now` may jump (the operating system sets it); `monotonic` never goes back. Leases and waits are measured
    on `monotonic`, calendar rules on `now`.
    """

    def now(self) -> datetime:
        """Return the present moment, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds on a clock that never goes back; only differences mean anything."""
        ...


class SystemClock:
    """The operating system's clocks."""

    def now(self) -> datetime:
        """Return the present moment, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds on the system's monotonic clock."""
        return time.monotonic()


class StepWatch:
    """Tells by how much the wall clock was set, by looking at both clocks again and again.

    Args:
        clock: The clock that is looked at, for the first time now.

    Attributes:
        looked_at: What the wall clock showed at the last look.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset = self._look()

    def step(self) -> timedelta:
        """Return how far the wall clock was set since the last look, back or forth; nothing for less than a second."""
        before, self._offset = self._offset, self._look()
        step = self._offset - before
        return step if abs(step) >= _STEP else timedelta()

    def _look(self) -> timedelta:
        began = self._clock.monotonic()
        self.looked_at = self._clock.now()
        for _ in range(_LOOKS):
            if self._clock.monotonic() - began < _AT_ONCE_SECONDS:
                break
            # A process that stood still between the two would take that for a step.
            began = self._clock.monotonic()
            self.looked_at = self._clock.now()
        return self.looked_at - _EPOCH - timedelta(seconds=began)


def format_timestamp(moment: datetime) -> str:
    """Return a moment as fixed-width ISO 8601 in UTC with `Z`: `2026-11-20T16:10:25.000000Z`.

    The width is fixed so that stored texts sort as the moments do.
    """
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return moment.isoformat(timespec="microseconds")[:-6] + "Z"


def parse_timestamp(text: str) -> datetime:
    """Return the moment that `format_timestamp` wrote."""
    return datetime.fromisoformat(text)
