"""The fence of a database that several processes write to, as PostgreSQL's storage takes it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Final

from tests.simulation.faults import Fault

_IDLE_SECONDS: Final = 10.0
"""After this long the server ends a transaction without a word, and its connection."""


class Turn:
    """One transaction's time at the fence."""

    def __init__(self) -> None:
        self._over = asyncio.Event()
        self._limit: asyncio.TimerHandle | None = None

    @property
    def is_over(self) -> bool:
        """Whether it has given the fence back, or lost it."""
        return self._over.is_set()

    def limit(self, lose: Callable[[], None]) -> None:
        """Have it lost after a while unless it is over by then."""
        # In no process's context: the server's timer goes on where a process stands still.
        self._limit = asyncio.get_running_loop().call_later(_IDLE_SECONDS, lose, context=Context())

    def end(self) -> None:
        """End it."""
        if self._limit is not None:
            self._limit.cancel()
        self._over.set()

    async def wait(self) -> None:
        """Wait until it is over."""
        await self._over.wait()


class Fence:
    """Lets one transaction at a time begin: the others wait until it has been committed."""

    def __init__(self) -> None:
        self._turn: Turn | None = None

    async def take(self, note: Callable[[Fault], None]) -> Turn:
        """Wait for the fence and take it; one who stands still loses it to the others.

        Args:
            note: Told of a wait, and of a fence that was lost.
        """
        if self._turn is not None:
            note("waited_at_fence")
        while self._turn is not None:
            await self._turn.wait()
        turn = self._turn = Turn()

        def lose() -> None:
            note("fence_lost")
            self.give_back(turn)

        turn.limit(lose)
        return turn

    def give_back(self, turn: Turn) -> None:
        """Give the fence back, unless it is lost already."""
        if self._turn is turn:
            self._turn = None
        turn.end()
