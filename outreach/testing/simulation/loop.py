"""An event loop in which nobody ever waits: when nothing is ready, the time jumps to what is due next."""

from __future__ import annotations

import asyncio
import selectors
from datetime import UTC, datetime, timedelta
from typing import Final

START: Final = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
"""A Monday at noon: the moment at which every simulation begins."""


class Deadlock(Exception):
    """Nothing is ready and nothing is due: everything waits for something that never comes."""


class _JumpingSelector(selectors.DefaultSelector):
    """Lets the loop's own wake-ups through, and turns waiting into a jump of the loop's time."""

    jump: float = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready now; add what would have been waited to the jump."""
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise Deadlock("Nothing is ready and nothing is due.")
        self.jump += max(timeout, 0.0)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An asyncio loop with a time of its own, which starts at 0 and moves only when everything waits."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return the virtual seconds since the start."""
        return self._jumping.jump


class VirtualClock:
    """The loop's time as the engine's clock."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def now(self) -> datetime:
        """Return the virtual moment."""
        return START + timedelta(seconds=round(self._loop.time(), 6))

    def monotonic(self) -> float:
        """Return the virtual seconds since the start."""
        return self._loop.time()
