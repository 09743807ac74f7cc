"""Clocks that a test moves."""

from __future__ import annotations

from datetime import datetime, timedelta

from outreach.core.clock import Clock, in_utc
from outreach.testing.builders import NOW
from outreach.testing.virtual_time import clock_of_loop

__all__ = ["ManualClock", "ShiftedClock"]


class ManualClock:
    """A clock that stands still until a test moves it.

    Args:
        start: Its first moment, aware.
    """

    def __init__(self, start: datetime = NOW) -> None:
        self._now = in_utc(start)
        self._monotonic = 0.0

    def now(self) -> datetime:
        """Return the moment at which the clock stands."""
        return self._now

    def monotonic(self) -> float:
        """Return how many seconds it has been moved forward in all."""
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Let time pass.

        Raises:
            ValueError: The seconds are negative; `set` is for a wall clock that is put back.
        """
        if seconds < 0:
            raise ValueError("Time does not pass backwards; use set() for a wall clock that is put back.")
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds

    def set(self, moment: datetime) -> None:
        """Set the wall clock, forward or back; `monotonic` does not notice."""
        self._now = in_utc(moment)


class ShiftedClock:
    """A clock that runs and can be set ahead: for an engine in real time.

    Args:
        start: What it shows at first; None for what the clock that makes it run shows.
        clock: The clock that makes it run; None for that of the loop, which is the system's where time is not virtual.
    """

    def __init__(self, start: datetime | None = None, *, clock: Clock | None = None) -> None:
        self._clock = clock or clock_of_loop()
        self._shift = timedelta() if start is None else start - self._clock.now()
        self._slept = 0.0

    def now(self) -> datetime:
        """Return the present moment, shifted."""
        return self._clock.now() + self._shift

    def monotonic(self) -> float:
        """Return the seconds of the clock that makes it run; moving the wall clock does not change them."""
        return self._clock.monotonic() + self._slept

    def advance(self, seconds: float) -> None:
        """Have time pass, as in a machine that sleeps meanwhile."""
        self._shift += timedelta(seconds=seconds)
        self._slept += seconds

    def shift(self, delta: timedelta) -> None:
        """Move the wall clock, forward or back."""
        self._shift += delta
