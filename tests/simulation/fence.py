"""The fences of a database that several processes write to, one for each workspace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from functools import partial
from typing import Final

from tests.simulation.faults import Fault

_IDLE_SECONDS: Final = 10.0
"""After this long the server ends a transaction without a word, and its connection."""


class Turn:
    """One transaction's time at its fences.

    Args:
        workspace_ids: The workspaces whose fences it takes; None for all.
    """

    def __init__(self, workspace_ids: frozenset[str] | None = None) -> None:
        self._workspace_ids = workspace_ids
        self._begun = asyncio.Event()
        self._limit: asyncio.TimerHandle | None = None
        self.is_over = False

    @property
    def has_begun(self) -> bool:
        """Whether it has its fences, or had them."""
        return self._begun.is_set()

    def begin(self, lose: Callable[[], None]) -> None:
        """Give it its fences, and have them lost after a while unless it is over by then."""
        self._begun.set()
        # In no process's context: the server's timer goes on where a process stands still.
        self._limit = asyncio.get_running_loop().call_later(_IDLE_SECONDS, lose, context=Context())

    def end(self) -> None:
        """End it."""
        self.is_over = True
        if self._limit is not None:
            self._limit.cancel()

    async def wait(self) -> None:
        """Wait until it begins."""
        await self._begun.wait()

    def excludes(self, other: Turn) -> bool:
        """Return whether the other one must wait for this one."""
        if self._workspace_ids is None or other._workspace_ids is None:
            return True
        return not self._workspace_ids.isdisjoint(other._workspace_ids)


class Fences:
    """Let a transaction begin once those that came before it, and share a workspace with it, are over.

    Attributes:
        lost_at: When one that stood still has last lost its fences, by the loop's time: until then others waited.
    """

    def __init__(self) -> None:
        self.lost_at = 0.0
        self._turns: list[Turn] = []

    async def take(self, note: Callable[[Fault], None], workspace_ids: frozenset[str] | None = None) -> Turn:
        """Wait for the fences of workspaces, or of all, and take them; one who stands still loses them to the others.

        Args:
            note: Called for a wait, for a turn beside others, and for fences that were lost.
            workspace_ids: The workspaces; None for all.
        """
        turn = Turn(workspace_ids)
        self._turns.append(turn)
        self._begin_next(note)
        if not turn.has_begun:
            note("waited_at_fence")
        try:
            await turn.wait()
        except BaseException:
            self.give_back(turn, note)
            raise
        if sum(other.has_begun for other in self._turns) > 1:
            note("beside_others")
        return turn

    def give_back(self, turn: Turn, note: Callable[[Fault], None]) -> None:
        """Give the fences back, unless they are lost already."""
        if turn in self._turns:
            self._turns.remove(turn)
        turn.end()
        self._begin_next(note)

    def _begin_next(self, note: Callable[[Fault], None]) -> None:
        def lose(turn: Turn) -> None:
            note("fence_lost")
            self.lost_at = asyncio.get_running_loop().time()
            self.give_back(turn, note)

        for place, turn in enumerate(self._turns):
            if not turn.has_begun and not any(other.excludes(turn) for other in self._turns[:place]):
                turn.begin(partial(lose, turn))
