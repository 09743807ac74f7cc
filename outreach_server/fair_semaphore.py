"""A semaphore with a limit per owner, first come, first served."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import anyio
import attrs

MAX_WAITING: Final = 16
"""How many of one owner may wait at a time: each holds a connection."""

WAIT_SECONDS: Final = 120.0
"""The longest wait; few clients wait longer for a response."""


class FairSemaphoreTimeout(Exception):
    """No turn: too many of the same owner wait, or the wait was too long."""


@attrs.frozen(eq=False)
class _Waiting:
    owner: str
    called: anyio.Event = attrs.field(factory=anyio.Event)


class FairSemaphore:
    """Grants a number of turns at a time; an owner at its limit lets others go first.

    Args:
        most: All turns.
        each: Turns of one owner.
    """

    def __init__(self, most: int, each: int) -> None:
        self._free = most
        self._each = each
        self._held: Counter[str] = Counter()
        self._queue: deque[_Waiting] = deque()

    @property
    def free(self) -> int:
        """The free turns."""
        return self._free

    @property
    def waiting(self) -> int:
        """How many wait for a turn."""
        return len(self._queue)

    @asynccontextmanager
    async def turn(self, owner: str) -> AsyncIterator[None]:
        """Wait for a turn, and hold it until the end of the context.

        Raises:
            FairSemaphoreTimeout: There was none in time.
        """
        waiting = _Waiting(owner)
        self._queue.append(waiting)
        self._call()
        try:
            if not waiting.called.is_set():
                await self._wait(waiting)
            yield
        finally:
            if waiting.called.is_set():
                self._free += 1
                self._held[owner] -= 1
                if not self._held[owner]:
                    del self._held[owner]
            else:
                self._queue.remove(waiting)
            self._call()

    async def _wait(self, waiting: _Waiting) -> None:
        if sum(other.owner == waiting.owner for other in self._queue) > MAX_WAITING:
            raise FairSemaphoreTimeout
        with anyio.move_on_after(WAIT_SECONDS):
            await waiting.called.wait()
        # It may have come at the same moment.
        if not waiting.called.is_set():
            raise FairSemaphoreTimeout

    def _call(self) -> None:
        """Give the free turns to the longest-waiting whose owners are below their limit."""
        for waiting in list(self._queue):
            if not self._free:
                return
            if self._held[waiting.owner] < self._each:
                self._queue.remove(waiting)
                self._free -= 1
                self._held[waiting.owner] += 1
                waiting.called.set()
