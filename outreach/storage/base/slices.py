"""How much one operation writes: nothing interrupts it, so that everybody else waits for its end."""

from __future__ import annotations

from typing import Final, TypeVar

from outreach.core.clock import Clock
from outreach.protocols.storage import Operation
from outreach.storage.unit_of_work import Transaction

T = TypeVar("T")

SLICE_SECONDS: Final = 0.025
"""How long an operation of many rows lasts."""

_LEAST_PORTION: Final = 3
"""An operation is at least this fraction of the largest: what it costs besides its rows must stay a small part."""

_IDLE_SECONDS: Final = 0.01
"""An operation that waits no longer than this for its turn keeps nobody waiting."""

_REMEMBERED: Final = 0.8
"""How much of what was measured before counts beside an operation."""


class SliceSize:
    """How many rows an operation may write to last `SLICE_SECONDS`, by how long the last ones took.

    Args:
        clock: Measures the operations.
        most: Rows of the largest.
        largest_alone: Whether it may be the largest while nobody else writes.
    """

    def __init__(self, clock: Clock, *, most: int, largest_alone: bool = False) -> None:
        self._clock = clock
        self._most = most
        self._largest_alone = largest_alone
        self._waited = 0.0
        self._rows = 0.0
        self._took = 0.0

    def rows(self) -> int:
        """Return how many rows the next operation may write."""
        alone = self._largest_alone and self._waited <= _IDLE_SECONDS
        if alone or self._took * self._most <= SLICE_SECONDS * self._rows:
            return self._most
        return max(int(SLICE_SECONDS * self._rows / self._took), self._most // _LEAST_PORTION, 1)

    def measured(self, operation: Operation[T], rows: int) -> Operation[T]:
        """Return an operation that writes some rows, to be queued now, as one whose time is measured."""
        queued = self._clock.monotonic()

        def measure(tx: Transaction) -> T:
            begun = self._clock.monotonic()
            result = operation(tx)
            self._waited = begun - queued
            self._rows = self._rows * _REMEMBERED + rows
            self._took = self._took * _REMEMBERED + self._clock.monotonic() - begun
            return result

        return measure
