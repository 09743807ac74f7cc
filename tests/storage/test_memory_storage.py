"""The memory storage keeps the contract, and what is special to it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from outreach.protocols.storage import Storage
from outreach.storage.memory import MemoryStorage
from outreach.testing.storage_contract import StorageContract


class TestMemoryStorage(StorageContract):
    """The contract."""

    @pytest.fixture
    def open_storage(self) -> Callable[[], Storage]:
        """Return the same storage each time: the object is the database."""
        storage = MemoryStorage()
        return lambda: storage
