"""Data that many pages of a workspace show, read at most every few seconds however many show it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

from outreach import Outreach
from outreach.protocols import Clock

T = TypeVar("T")

FRESH_SECONDS: Final = 5.0
MAX_KEPT: Final = 100
"""The most workspaces whose health is kept."""


class WorkspaceCache(Generic[T]):
    """Keeps something of each workspace for a moment.

    Args:
        clock: The source of time.
        read: Reads it.
    """

    def __init__(self, clock: Clock, read: Callable[[Outreach, str], Awaitable[T]]) -> None:
        self._clock = clock
        self._read = read
        self._kept: dict[str, tuple[float, T]] = {}

    async def of(self, engine: Outreach, workspace_id: str) -> T:
        """Return it as it was at most `FRESH_SECONDS` ago."""
        now = self._clock.monotonic()
        kept = self._kept.get(workspace_id)
        if kept is not None and now - kept[0] < FRESH_SECONDS:
            return kept[1]
        found = await self._read(engine, workspace_id)
        self._kept.pop(workspace_id, None)
        self._kept[workspace_id] = (now, found)
        if len(self._kept) > MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        return found
