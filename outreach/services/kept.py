"""A cache with a limit in bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SizeBoundedCache(Generic[K, V]):
    """Values by key, up to a number of bytes; the least recently used go first.

    Args:
        most_bytes: The limit for all values together, by the sizes given to `put`.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._bytes = 0
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def get(self, key: K) -> V | None:
        """Return a cached value, if any."""
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def put(self, key: K, value: V, size: int) -> None:
        """Cache a value, unless it is larger than an eighth of the limit."""
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
