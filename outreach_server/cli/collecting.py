"""Lists of the engine as a command shows them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TypeVar

T = TypeVar("T")


async def collect(found: AsyncIterator[T], limit: int | None = None) -> list[T]:
    """Return the items of a list, or the first so many."""
    items: list[T] = []
    if limit is None or limit > 0:
        async for item in found:
            items.append(item)
            if len(items) == limit:
                break
    return items
