"""The source of time, injected so that tests and simulations control it."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from typing import Final, Protocol, TypeVar
from zoneinfo import available_timezones

T = TypeVar("T")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_STEP: Final = timedelta(seconds=1)
"""Smaller steps of a clock are slewing or a late read."""

_TOGETHER: Final = timedelta(seconds=0.1)
"""Clocks that differ by less count as equal: the round trip to a database takes part of the difference."""

_AT_ONCE_SECONDS: Final = 0.1
_LOOKS: Final = 10


class Clock(Protocol):
    """The engine's only source of time.

    `now` may jump, because the operating system sets it; `monotonic` never goes back. Leases and waits use `monotonic`,
    calendar rules `now`.
    """

    def now(self) -> datetime:
        """Return the current time, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds on a clock that never goes back; only differences have a meaning."""
        ...


class SystemClock:
    """The operating system's clocks."""

    def now(self) -> datetime:
        """Return the current time, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds on the system's monotonic clock."""
        return time.monotonic()


class SharedClock:
    """The clock of a database, which several machines share: this machine's, set right by it.

    Args:
        clock: This machine's.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._behind = timedelta()

    def now(self) -> datetime:
        """Return the time of the database, as far as it is known."""
        return self._clock.now() + self._behind

    def monotonic(self) -> float:
        """Return seconds on this machine's monotonic clock."""
        return self._clock.monotonic()

    def follow(self, database_now: Callable[[], datetime]) -> None:
        """Compare this machine's clock with the database's, and go by the database's from now on."""
        before = self._clock.now()
        there = database_now()
        after = self._clock.now()
        together = before - _TOGETHER <= there <= after + _TOGETHER
        self._behind = timedelta() if together else there - after


class StepWatch:
    """Detects steps of the wall clock, by comparing both clocks.

    Args:
        clock: The clock, first read now.

    Attributes:
        looked_at: The wall clock at the last look.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset = self._look()

    def step(self) -> timedelta:
        """Return how far the wall clock was set since the last look, back or forth; zero for less than a second."""
        before, self._offset = self._offset, self._look()
        step = self._offset - before
        return step if abs(step) >= _STEP else timedelta()

    def _look(self) -> timedelta:
        began = self._clock.monotonic()
        self.looked_at = self._clock.now()
        for _ in range(_LOOKS):
            if self._clock.monotonic() - began < _AT_ONCE_SECONDS:
                break
            # A process suspended between the two reads would see a step.
            began = self._clock.monotonic()
            self.looked_at = self._clock.now()
        return self.looked_at - _EPOCH - timedelta(seconds=began)


def in_utc(moment: T) -> T:
    """Return an aware time in UTC, and anything else as it is.

    Python adds to a time of an IANA zone by the wall clock: over a change of summer time the result is an hour off.
    """
    if isinstance(moment, datetime) and moment.utcoffset() is not None:
        return moment.astimezone(UTC)
    return moment


def format_timestamp(moment: datetime) -> str:
    """Return a time as fixed-width ISO 8601 in UTC with `Z`: `2026-11-20T16:10:25.000000Z`.

    The fixed width makes stored texts sort by time.
    """
    return _format_utc(moment if moment.tzinfo is UTC else moment.astimezone(UTC))


@lru_cache(maxsize=64)
def _format_utc(moment: datetime) -> str:
    # Nine of ten moments of a transaction are those of a few rows before.
    return moment.isoformat(timespec="microseconds")[:-6] + "Z"


def parse_timestamp(text: str) -> datetime:
    """Return the time that `format_timestamp` wrote."""
    return datetime.fromisoformat(text)


_NOT_ZONES: Final = frozenset({"localtime", "Factory", "posixrules"})
"""Files that some systems keep among the zones."""


@cache
def zone_names() -> frozenset[str]:
    """Return the names of all time zones, as spelled in the database."""
    return frozenset(available_timezones()) - _NOT_ZONES


def is_zone(name: str) -> bool:
    """Return whether a time zone exists.

    The name never reaches the file system, so that neither `../x` nor, where file names ignore case, `europe/berlin`
    does.
    """
    return name in zone_names()
