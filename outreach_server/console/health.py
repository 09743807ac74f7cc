"""The status of workspaces, read at most every few seconds however many pages show it."""

from __future__ import annotations

from typing import Final

from outreach import EngineStatus, Outreach
from outreach.protocols import Clock

FRESH_SECONDS: Final = 5.0
MAX_KEPT: Final = 100
"""Workspaces whose status is kept."""


class StatusCache:
    """Keeps the status of workspaces for a moment.

    Args:
        clock: Where the time comes from.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[str, tuple[float, EngineStatus]] = {}

    async def of(self, engine: Outreach, workspace_id: str) -> EngineStatus:
        """Return the status of a workspace, as it was at most `FRESH_SECONDS` ago."""
        now = self._clock.monotonic()
        kept = self._kept.get(workspace_id)
        if kept is not None and now - kept[0] < FRESH_SECONDS:
            return kept[1]
        status = await engine.status(workspace_id)
        self._kept.pop(workspace_id, None)
        self._kept[workspace_id] = (now, status)
        if len(self._kept) > MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        return status
