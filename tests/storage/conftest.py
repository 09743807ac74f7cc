"""Storages for the tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from outreach.clock import SystemClock
from outreach.storage.sqlite import SqliteStorage


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Where a database may be made."""
    return tmp_path / "outreach.db"


@pytest.fixture
async def sqlite_storage(database: Path) -> AsyncIterator[SqliteStorage]:
    """An empty SQLite database."""
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        yield storage
