"""Storages for the tests."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, Self, TypeVar

import pytest

from outreach.core.clock import SystemClock
from outreach.protocols.instrumentation import Instrumentation
from outreach.protocols.storage import Operation, Within
from outreach.storage.postgres import PostgresStorage, postgres_storage_from_url
from outreach.storage.sqlite import SqliteStorage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import make_audit_entry
from tests import postgres
from tests.cutting_proxy import CuttingProxy

T = TypeVar("T")

_BLOCKED: Final = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = '{name}' AND wait_event_type = 'Lock'
"""


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


def within(workspace_ids: Iterable[str] | None, operation: Operation[T]) -> Operation[T]:
    """Return the operation as one that writes in these workspaces only; as it is for None."""
    return operation if workspace_ids is None else Within(workspace_ids, operation)


class Gate:
    """An operation that stays in the writer's thread until it is let go; as a context, it is at the end.

    Args:
        operation: What it does before; by default it appends "gate" to the audit log.

    Attributes:
        runs: How often it has been run.
    """

    def __init__(self, operation: Operation[Any] | None = None) -> None:
        self.entered = threading.Event()
        self.opened = threading.Event()
        self.runs = 0
        self._operation = append("gate") if operation is None else operation

    def __call__(self, tx: Transaction) -> Any:
        """Run the operation, then wait."""
        result = self._operation(tx)
        self.runs += 1
        self.entered.set()
        assert self.opened.wait(60)
        return result

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.opened.set()

    async def wait_entered(self) -> None:
        """Wait until it runs."""
        assert await asyncio.to_thread(self.entered.wait, 60)


async def settle() -> None:
    """Let tasks that have just been started queue their operations."""
    for _ in range(5):
        await asyncio.sleep(0)


def is_blocked(url: str) -> bool:
    """Return whether a transaction of a database waits for another one."""
    [(count,)] = postgres.server().execute(_BLOCKED.format(name=url.rpartition("/")[2]))
    return bool(count)


class Told(Instrumentation):
    """Notes what it is told.

    Attributes:
        committed: How many operations each transaction had that was committed.
        failed: The same of each that failed, with the error.
    """

    def __init__(self) -> None:
        self.committed: list[int] = []
        self.failed: list[tuple[int, str]] = []

    def transaction_committed(self, *, operations: int, seconds: float, queued: int) -> None:
        """Note a group."""
        self.committed.append(operations)

    def transaction_failed(self, *, operations: int, error: str) -> None:
        """Note a group."""
        self.failed.append((operations, error))
