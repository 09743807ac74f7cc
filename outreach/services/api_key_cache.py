"""A cache of recently used API keys."""

from __future__ import annotations

from typing import Final

import attrs

from outreach.clock import Clock
from outreach.models.workspace import ApiAccess

_KEPT_SECONDS: Final = 0.5
"""Changes by other processes take effect within a second (docs/rules.md#due-work)."""

_MOST: Final = 10_000


@attrs.frozen(kw_only=True)
class LookupStart:
    """The start of a storage lookup.

    Attributes:
        at: Monotonic seconds, from which the answer ages.
        after: The number of `forget` calls before.
    """

    at: float
    after: int


class ApiKeyCache:
    """Caches what keys may do briefly, so that not every request reads it.

    Args:
        clock: Measures the age of entries.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._found: dict[str, tuple[ApiAccess, float]] = {}
        self._forgotten = 0

    def get(self, digest: str) -> ApiAccess | None:
        """Return what the key of a digest may do, if that is cached."""
        found = self._found.get(digest)
        if found is None:
            return None
        access, at = found
        if 0 <= self._clock.monotonic() - at < _KEPT_SECONDS:
            return access
        del self._found[digest]
        return None

    def asked(self) -> LookupStart:
        """Return the start of a lookup."""
        return LookupStart(at=self._clock.monotonic(), after=self._forgotten)

    def keep(self, digest: str, access: ApiAccess, asked: LookupStart) -> None:
        """Cache an answer, unless `forget` was called since the lookup started."""
        if asked.after != self._forgotten:
            return
        if len(self._found) >= _MOST:
            self._found.clear()
        self._found[digest] = (access, asked.at)

    def forget(self) -> None:
        """Drop all entries, after a key or a workspace has changed here."""
        self._found.clear()
        self._forgotten += 1
