from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from outreach.core.clock import SystemClock
from outreach.storage.sqlite import SqliteStorage
from outreach.testing.storage_contract import StorageContract


@pytest.mark.anyio
class TestSqliteStorage(StorageContract):
    """The storage in a file keeps the contract that every storage keeps."""

    @pytest.fixture
    def open_storage(self, tmp_path: Path) -> Callable[[], SqliteStorage]:
        """Return what opens the one database of the test."""
        return lambda: SqliteStorage(tmp_path / "outreach.db", clock=SystemClock())
