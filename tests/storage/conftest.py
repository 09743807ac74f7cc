"""Storages for the tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from outreach.clock import SystemClock
from outreach.storage.postgres import PostgresStorage, postgres_storage_from_url
from outreach.storage.sqlite import SqliteStorage
from tests import postgres
from tests.cutting_proxy import CuttingProxy


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Where a database may be made."""
    return tmp_path / "outreach.db"


@pytest.fixture
async def sqlite_storage(database: Path) -> AsyncIterator[SqliteStorage]:
    """An empty SQLite database."""
    async with SqliteStorage(database, clock=SystemClock()) as storage:
        yield storage


@pytest.fixture
def url() -> str:
    """A database of PostgreSQL that is as good as new."""
    return postgres.empty_database()


@pytest.fixture
def proxy() -> Iterator[CuttingProxy]:
    """A way to the server of PostgreSQL that can be cut."""
    with CuttingProxy(postgres.server().port) as made:
        yield made


def opened(url: str) -> PostgresStorage:
    """Return a storage on PostgreSQL, not yet entered."""
    return postgres_storage_from_url(url, clock=SystemClock())
