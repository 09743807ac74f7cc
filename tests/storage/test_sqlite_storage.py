from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from outreach.core.clock import SystemClock
from outreach.storage.sqlite import SqliteStorage
from outreach.storage.sqlite.memory import empty_database
from outreach.testing.storage_contract import StorageContract


@pytest.mark.anyio
class TestSqliteStorage(StorageContract):
    """The storage in a file keeps the contract that every storage keeps."""

    @pytest.fixture
    def open_storage(self, tmp_path: Path) -> Callable[[], SqliteStorage]:
        """Return what opens the one database of the test, which is migrated: migrating takes longer than most tests."""
        path = tmp_path / "outreach.db"
        path.write_bytes(empty_database())
        return lambda: SqliteStorage(path, clock=SystemClock())
