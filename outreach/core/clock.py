"""The sources of time and of ids (UUIDv7), injected so that tests and simulations control them."""

from __future__ import annotations

import random
import threading
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


_WITHOUT_SUMMER_TIME: Final = frozenset({"EST", "GMT", "GMT+0", "GMT-0", "GMT0", "Greenwich", "MST"})
"""Zones without summer time whose names people also use for places that have it."""


def is_contact_zone(name: str) -> bool:
    """Return whether a time zone tells the clocks of a contact; `EST` does not, because New York has summer time."""
    return is_zone(name) and name not in _WITHOUT_SUMMER_TIME


IdSource = Callable[[], str]
"""Returns a new id at each call."""

_SEQUENCE_BITS = 12
_RANDOM_BITS = 62
_DRAWN_AT_ONCE = 64
"""Ids whose random bits are read together, because calls of the system's source are slow."""


class UuidV7Source:
    """Makes UUIDv7 texts (RFC 9562, section 5.7) that sort in the order of their creation.

    Within one millisecond the twelve `rand_a` bits count up (RFC 9562, section 6.2, method 1); if they run out, or the
    clock steps back, the timestamp advances by itself.

    Args:
        clock: The source of milliseconds.
        rng: The source of the 62 random bits; `random.SystemRandom()` outside tests.
    """

    def __init__(self, *, clock: Clock, rng: random.Random) -> None:
        self._clock = clock
        self._rng = rng
        self._lock = threading.Lock()
        self._last = -1
        self._drawn = 0
        self._left = 0

    def __call__(self) -> str:
        """Return the next id."""
        milliseconds = int(self._clock.now().timestamp() * 1000)
        with self._lock:
            tick = max(milliseconds << _SEQUENCE_BITS, self._last + 1)
            self._last = tick
            tail = self._random_bits()
        stamp, sequence = tick >> _SEQUENCE_BITS, tick & ((1 << _SEQUENCE_BITS) - 1)
        # As `str(uuid.UUID(…))` writes it, in a third of the time.
        last = f"{(0b10 << 62) | tail:016x}"
        first = f"{stamp:012x}"
        return f"{first[:8]}-{first[8:]}-7{sequence:03x}-{last[:4]}-{last[4:]}"

    def _random_bits(self) -> int:
        if not self._left:
            self._drawn, self._left = self._rng.getrandbits(_RANDOM_BITS * _DRAWN_AT_ONCE), _DRAWN_AT_ONCE
        self._left -= 1
        tail = self._drawn & ((1 << _RANDOM_BITS) - 1)
        self._drawn >>= _RANDOM_BITS
        return tail
