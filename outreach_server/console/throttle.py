"""How many requests a session may send."""

from __future__ import annotations

from collections import Counter
from typing import Final

from outreach.protocols import Clock

REQUESTS_PER_SECOND: Final = 20


class SessionThrottle:
    """Counts the requests of each session in each second.

    Args:
        clock: Where the time comes from.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._second = 0
        self._counts: Counter[str] = Counter()

    def admits(self, subject: str) -> bool:
        """Count a request, and return whether it is within the limit."""
        second = int(self._clock.monotonic())
        if second != self._second:
            self._second = second
            self._counts.clear()
        self._counts[subject] += 1
        return self._counts[subject] <= REQUESTS_PER_SECOND
