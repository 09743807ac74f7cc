"""The sending number that is free first among many, found without reading all of them each time."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from heapq import heapify, heappop, heappush


class FreeFirst:
    """Sending numbers, each with a rank: of those that are free at the same time, the one with the lowest is first.

    Args:
        ranked: Ranks, no two the same, and their numbers.
        free_at: Returns when a number is free: later than before if it was used meanwhile, never earlier.
    """

    def __init__(self, ranked: Iterable[tuple[int, str]], free_at: Callable[[str], datetime]) -> None:
        self._free_at = free_at
        self._numbers = dict(ranked)
        # Each rank is in one of the two. A moment in `_busy` may be too early, where the number was used meanwhile.
        self._busy = [(free_at(number), rank) for rank, number in self._numbers.items()]
        heapify(self._busy)
        self._free: list[int] = []
        self._free_until = datetime.min.replace(tzinfo=UTC)

    def __bool__(self) -> bool:
        """Return whether there are numbers."""
        return bool(self._numbers)

    def first(self, moment: datetime, from_rank: int = 0) -> tuple[int, str]:
        """Return the rank and the number that is free first from a moment on.

        Ranks below `from_rank` come after all others. A call's moment is never earlier than that of the one before.
        """
        self._free_until = max(self._free_until, moment)
        while True:
            while self._busy and (not self._free or self._busy[0][0] <= self._free_until):
                free_at, rank = heappop(self._busy)
                self._free_until = max(self._free_until, free_at)
                insort(self._free, rank)
            place = bisect_left(self._free, from_rank) % len(self._free)
            rank = self._free[place]
            free_at = self._free_at(self._numbers[rank])
            if free_at <= self._free_until:
                return rank, self._numbers[rank]
            del self._free[place]
            heappush(self._busy, (free_at, rank))

    def replace(self, rank: int, by: int | None) -> None:
        """Give the number that was returned with a rank another rank, or drop it."""
        number = self._numbers.pop(rank)
        del self._free[bisect_left(self._free, rank)]
        if by is not None:
            self._numbers[by] = number
            heappush(self._busy, (self._free_at(number), by))
