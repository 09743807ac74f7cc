"""The time, as the engine sees it: injected, so that tests and simulations own it."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Where the engine reads the time; nothing else in it does.

    `now` may jump (the operating system sets it); `monotonic` never goes back. Leases and waits are measured
    on `monotonic`, calendar rules on `now`.
    """

    def now(self) -> datetime:
        """Return the present moment, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds on a clock that never goes back; only differences mean anything."""
        ...


class SystemClock:
    """The operating system's clocks."""

    def now(self) -> datetime:
        """Return the present moment, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds on the system's monotonic clock."""
        return time.monotonic()


def to_text(moment: datetime) -> str:
    """Return a moment as fixed-width ISO 8601 in UTC with `Z`: `2026-11-20T16:10:25.000000Z`.

    The width is fixed so that stored texts sort as the moments do.
    """
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def from_text(text: str) -> datetime:
    """Return the moment that `to_text` wrote."""
    return datetime.fromisoformat(text)
