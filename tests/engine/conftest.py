"""Fixtures of the engine's tests: in memory, and in turns on each storage where they ask for one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from outreach import Outreach, Workspace
from outreach.core.clock import Clock
from outreach.protocols.storage import Storage
from outreach.storage.postgres import postgres_storage_from_url
from outreach.storage.sqlite import SqliteStorage
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.testing.builders import make_workspace
from outreach.testing.clock import ManualClock
from outreach.testing.storage_tables.base_contract import OTHER_WORKSPACE, THIS_WORKSPACE
from outreach.testing.virtual_time import clock_of_loop
from tests import postgres
from tests.engine.rig import given_workspace

OpenStorage = Callable[[Clock], Storage]


_TURN = pytest.mark.turn(20, "the engine is the same in memory")


@pytest.fixture(params=["memory", pytest.param("sqlite", marks=_TURN), pytest.param("postgres", marks=_TURN)])
def open_storage(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenStorage:
    """Return what makes a storage, not yet entered, on a database of its own."""
    if request.param == "memory":
        return lambda clock: MemoryStorage(clock=clock)
    if request.param == "postgres":
        url = postgres.empty_database()

        def open_database(clock: Clock) -> Storage:
            postgres.tell_time_by(clock, monkeypatch)
            return postgres_storage_from_url(url, clock=clock)

        return open_database
    return lambda clock: SqliteStorage(tmp_path / "engine.db", clock=clock)


@pytest.fixture
def clock() -> ManualClock:
    """Return a clock that the test moves."""
    return ManualClock()


@pytest.fixture
async def storage(open_storage: OpenStorage, clock: ManualClock) -> AsyncIterator[Storage]:
    """Open a database that holds two workspaces."""
    async with open_storage(clock) as storage:
        await given_workspaces(storage)
        yield storage


async def given_workspaces(storage: Storage) -> None:
    """Write two workspaces."""
    for workspace in (make_workspace(id=THIS_WORKSPACE), make_workspace(id=OTHER_WORKSPACE, name="Other")):
        await storage.write(lambda tx, workspace=workspace: tx.workspaces.insert(workspace))  # type: ignore[misc]


@pytest.fixture
async def engine(open_storage: OpenStorage) -> AsyncIterator[Outreach]:
    """Open an engine that does not dispatch, on the system's clock."""
    clock = clock_of_loop()
    async with Outreach(open_storage(clock), clock=clock) as engine:
        yield engine


@pytest.fixture
async def workspace(engine: Outreach) -> Workspace:
    """Make a sandbox without a request limit."""
    return await given_workspace(engine)
