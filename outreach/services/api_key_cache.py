"""API keys that were asked for a moment ago."""

from __future__ import annotations

from typing import Final

import attrs

from outreach.clock import Clock
from outreach.models.workspace import Workspace

_KEPT_SECONDS: Final = 0.5
"""What another process changes is noticed within a second (docs/rules.md#due-work)."""

_MOST: Final = 10_000


@attrs.frozen(kw_only=True)
class LookupStart:
    """When storage was asked for a key.

    Attributes:
        at: Seconds on the monotonic clock: from then on the answer ages.
        after: How often everything had been forgotten.
    """

    at: float
    after: int


class ApiKeyCache:
    """Keeps the workspaces of keys for a moment, so that a request does not read them again.

    Args:
        clock: Where their age is measured.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._found: dict[str, tuple[Workspace, float]] = {}
        self._forgotten = 0

    def get(self, digest: str) -> Workspace | None:
        """Return the workspace of a key's digest, where it is known."""
        found = self._found.get(digest)
        if found is None:
            return None
        workspace, at = found
        if 0 <= self._clock.monotonic() - at < _KEPT_SECONDS:
            return workspace
        del self._found[digest]
        return None

    def asked(self) -> LookupStart:
        """Note that storage is about to be asked."""
        return LookupStart(at=self._clock.monotonic(), after=self._forgotten)

    def keep(self, digest: str, workspace: Workspace, asked: LookupStart) -> None:
        """Keep an answer, unless something has been changed since storage was asked."""
        if asked.after != self._forgotten:
            return
        if len(self._found) >= _MOST:
            self._found.clear()
        self._found[digest] = (workspace, asked.at)

    def forget(self) -> None:
        """Forget all: a key or a workspace has been changed here."""
        self._found.clear()
        self._forgotten += 1
