"""The contract of a storage, on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from outreach.core.clock import SystemClock
from outreach.storage.postgres import postgres_storage_from_url
from outreach.testing.storage_contract import StorageContract
from tests import postgres


@pytest.mark.anyio
@pytest.mark.sample(10, together=True)
class TestPostgresStorage(StorageContract):
    """All of it."""

    @pytest.fixture
    def open_storage(self) -> Callable[[], object]:
        """Storages over one database."""
        url = postgres.empty_database()
        return lambda: postgres_storage_from_url(url, clock=SystemClock())
