"""A storage in memory, for tests, simulations and trying things out."""

from __future__ import annotations

from outreach.storage.memory.storage import MemoryStorage

__all__ = ["MemoryStorage"]
