"""Identifiers: UUIDv7, monotonic within a process, from an injected clock and source of randomness."""

from __future__ import annotations

import random
import threading
import uuid
from collections.abc import Callable

from outreach.clock import Clock

IdSource = Callable[[], str]
"""Returns a new identifier, as text, each time it is called."""

_SEQUENCE_BITS = 12


class UuidV7Source:
    """Make UUIDv7 texts (RFC 9562, section 5.7) that sort in the order in which they were made.

    Within one millisecond the twelve `rand_a` bits count up (RFC 9562, section 6.2, method 1); when they run
    out, or the clock steps back, the timestamp part moves on by itself.

    Args:
        clock: Where the milliseconds come from.
        rng: Where the 62 random bits come from; pass `random.SystemRandom()` outside tests.
    """

    def __init__(self, *, clock: Clock, rng: random.Random) -> None:
        self._clock = clock
        self._rng = rng
        self._lock = threading.Lock()
        self._last = -1

    def __call__(self) -> str:
        """Return the next identifier."""
        milliseconds = int(self._clock.now().timestamp() * 1000)
        with self._lock:
            tick = max(milliseconds << _SEQUENCE_BITS, self._last + 1)
            self._last = tick
            tail = self._rng.getrandbits(62)
        stamp, sequence = tick >> _SEQUENCE_BITS, tick & ((1 << _SEQUENCE_BITS) - 1)
        value = (stamp << 80) | (0x7 << 76) | (sequence << 64) | (0b10 << 62) | tail
        return str(uuid.UUID(int=value))
