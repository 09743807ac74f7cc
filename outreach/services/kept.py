"""What is kept in memory, as much as fits."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SizeBoundedCache(Generic[K, V]):
    """Values by key, up to so many bytes: who was not asked for the longest time goes first.

    Args:
        most_bytes: How much all values may have together, by the sizes that they are given with.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._bytes = 0
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def get(self, key: K) -> V | None:
        """Return a value that is kept."""
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def put(self, key: K, value: V, size: int) -> None:
        """Keep a value in the place of the one before; not one that is larger than an eighth of all."""
        self._drop(key)
        if size > self._most // 8:
            return
        self._values[key] = (value, size)
        self._bytes += size
        while self._bytes > self._most:
            self._drop(next(iter(self._values)))

    def _drop(self, key: K) -> None:
        _, size = self._values.pop(key, (None, 0))
        self._bytes -= size
