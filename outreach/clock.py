"""The time, as the engine sees it: injected, so that tests and simulations own it."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SET_BACK: Final = timedelta(seconds=1)
"""What the clock loses by less than this is being slewed, or read a moment late."""


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
    """Tells whether the wall clock was set back, by looking at both clocks again and again.

    Args:
        clock: The clock that is looked at, for the first time now.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset = self._look()

    def set_back(self) -> bool:
        """Return whether the wall clock was set back by a second or more since the last look."""
        before, self._offset = self._offset, self._look()
        return self._offset <= before - _SET_BACK

    def _look(self) -> timedelta:
        return self._clock.now() - _EPOCH - timedelta(seconds=self._clock.monotonic())


def to_text(moment: datetime) -> str:
    """Return a moment as fixed-width ISO 8601 in UTC with `Z`: `2026-11-20T16:10:25.000000Z`.

    The width is fixed so that stored texts sort as the moments do.
    """
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return moment.isoformat(timespec="microseconds")[:-6] + "Z"


def from_text(text: str) -> datetime:
    """Return the moment that `to_text` wrote."""
    return datetime.fromisoformat(text)
