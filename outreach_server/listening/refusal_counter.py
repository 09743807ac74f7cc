"""Logs events that may happen a thousand times a second: one line, then a count per minute."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

EVERY_SECONDS: Final = 60.0


class RefusalCounter:
    """Logs the first of many similar events, and then their number.

    Args:
        log: The logger.
        action: The line's `action`.
        message: What has happened.
        now: Seconds on a monotonic clock.
    """

    def __init__(
        self, log: logging.Logger, action: str, message: str, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._log = log
        self._action = action
        self._message = message
        self._now = now
        self._logged_at: float | None = None
        self._count = 0

    def add(self) -> None:
        """Count an event; log the count, at most once a minute."""
        self._count += 1
        if self._logged_at is None or self._now() - self._logged_at >= EVERY_SECONDS:
            self._log_count()

    def look(self) -> None:
        """Log the events since the last line, at most once a minute; call it regularly."""
        if self._logged_at is None or self._now() - self._logged_at < EVERY_SECONDS:
            return
        if self._count:
            self._log_count()
        else:
            self._logged_at = None

    def _log_count(self) -> None:
        now = self._now()
        # Not always a minute: the next event of a refusal that is over may come days later.
        seconds = 0.0 if self._logged_at is None else now - self._logged_at
        more = "" if self._count == 1 else f" ({self._count} times in the last {seconds:,.0f} s)"
        self._log.warning("%s%s", self._message, more, extra={"action": self._action, "count": self._count})
        self._logged_at, self._count = now, 0
