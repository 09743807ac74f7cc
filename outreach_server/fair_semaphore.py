"""FairSemaphore: so many at a time, and of those so many for each owner, whoever came first."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import anyio
import attrs

MAX_WAITING: Final = 16
"""How many of one owner may wait at a time: each keeps a connection, and the last would wait for all of them."""

WAIT_SECONDS: Final = 120.0
"""How long one waits at the most; few clients wait longer for an answer."""


class FairSemaphoreTimeout(Exception):
    """Somebody whose turn did not come: too many of his own wait, or he has waited for too long."""


@attrs.frozen(eq=False)
class _Waiting:
    owner: str
    called: anyio.Event = attrs.field(factory=anyio.Event)


class FairSemaphore:
    """Lets so many go on at a time; who has had his share lets those of others go before him.

    Args:
        most: How many turns there are.
        each: How many of them one owner may have.
    """

    def __init__(self, most: int, each: int) -> None:
        self._free = most
        self._each = each
        self._held: Counter[str] = Counter()
        self._queue: deque[_Waiting] = deque()

    @property
    def free(self) -> int:
        """How many turns nobody has."""
        return self._free

    @property
    def waiting(self) -> int:
        """How many wait for one."""
        return len(self._queue)

    @asynccontextmanager
    async def turn(self, owner: str) -> AsyncIterator[None]:
        """Wait for a turn, and hold it until the end.

        Raises:
            FairSemaphoreTimeout: It did not come.
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
        # It may have come in the very moment.
        if not waiting.called.is_set():
            raise FairSemaphoreTimeout

    def _call(self) -> None:
        """Give the free turns to those who have waited for longest and have not had their share."""
        for waiting in list(self._queue):
            if not self._free:
                return
            if self._held[waiting.owner] < self._each:
                self._queue.remove(waiting)
                self._free -= 1
                self._held[waiting.owner] += 1
                waiting.called.set()
