"""Storages for the tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from outreach.core.clock import SystemClock
from outreach.storage.postgres import PostgresStorage, postgres_storage_from_url
from outreach.storage.sqlite import SqliteStorage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import make_audit_entry
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


def append(subject: str) -> Callable[[Transaction], str]:
    """Return an operation that appends an entry to the audit log, and returns its subject."""

    def operation(tx: Transaction) -> str:
        tx.audit.append(make_audit_entry(subject=subject))
        return subject

    return operation


def subjects(tx: Transaction) -> list[str]:
    """Return the subjects of the audit log, the oldest first."""
    return [entry.subject for entry in tx.audit.list(None)][::-1]
