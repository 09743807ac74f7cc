from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import anyio
import pytest

from outreach import NewWorkspace, Outreach, Workspace, WorkspaceUpdate
from outreach.errors import RateLimited, StorageBusy, Unauthorized
from outreach.http import RateLimitState
from outreach.ledger.access import request_limits as limits
from outreach.ledger.access.request_limits import Grant, UnsettledRequests
from outreach.protocols.storage import Storage
from outreach.services.tenants import request_limits as service
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import NOW, make_workspace
from outreach.testing.clock import ManualClock
from outreach.testing.storage_tables.base_contract import OTHER_WORKSPACE, THIS_WORKSPACE, TICK

pytestmark = pytest.mark.anyio

T = TypeVar("T")
MINUTE = timedelta(seconds=60)


# ------------------------------------------------------------------------------------------- the operation


async def test_blocks_are_counted_before_they_are_used(storage: Storage) -> None:
    """docs/interface.md#request-limit: what is likely to come is granted too, but a part of what is left at most."""
    await _limit(storage, 100)
    assert await _grant(storage, wanted=50) == Grant(limit=100, count=12, ungranted=88, since=NOW)
    assert await _grant(storage, needed=30) == Grant(limit=100, count=30, ungranted=58, since=NOW)
    assert await _grant(storage, wanted=3) == Grant(limit=100, count=3, ungranted=55, since=NOW)
    assert await _grant(storage, needed=60) == Grant(limit=100, count=55, ungranted=0, since=NOW)
    assert await _grant(storage, after=MINUTE - TICK) == Grant(limit=100, count=0, ungranted=0, since=NOW)
    assert await _grant(storage, after=MINUTE) == Grant(limit=100, count=1, ungranted=99, since=NOW + MINUTE)


async def test_a_limit_is_the_workspaces_own_and_may_be_none(storage: Storage) -> None:
    """docs/interface.md#5: one limit per workspace; None means none."""
    await _limit(storage, 1)
    await storage.write(lambda tx: tx.workspaces.update(make_workspace(id=OTHER_WORKSPACE, request_limit=None)))
    assert await storage.write(lambda tx: limits.grant(tx, OTHER_WORKSPACE, needed=1, wanted=0, now=NOW)) is None
    granted = await _grant(storage)
    assert granted is not None
    assert (granted.count, granted.ungranted) == (1, 0)


async def test_a_wall_clock_that_was_put_back_locks_nobody_out(storage: Storage) -> None:
    """A minute from the future is not believed."""
    await _limit(storage, 1)
    await _grant(storage, after=timedelta(hours=24))
    granted = await _grant(storage)
    assert granted is not None
    assert granted.count == 1


@pytest.mark.parametrize("behind", [timedelta(seconds=0.1), timedelta(seconds=1)])
async def test_a_node_whose_clock_is_a_little_behind_begins_no_minute_of_its_own(
    storage: Storage, behind: timedelta
) -> None:
    """What another one has just granted counts, though by its own clock that minute has not begun."""
    await _limit(storage, 100)
    await _grant(storage, needed=90)
    granted = await _grant(storage, needed=90, after=-behind)
    assert granted == Grant(limit=100, count=10, ungranted=0, since=NOW)
    assert granted.is_current(NOW - behind)
    assert granted.reset_seconds(NOW - behind) == 60


@pytest.mark.parametrize(
    ("unused", "uncounted", "left"),
    [
        (UnsettledRequests(count=4, since=NOW), None, 93),
        (UnsettledRequests(count=4, since=NOW - TICK), None, 89),
        (None, UnsettledRequests(count=5, since=NOW), 84),
        (None, UnsettledRequests(count=5, since=NOW - MINUTE), 89),
        (None, UnsettledRequests(count=500, since=NOW), 0),
    ],
)
async def test_what_was_not_settled_is(
    storage: Storage, unused: UnsettledRequests | None, uncounted: UnsettledRequests | None, left: int
) -> None:
    """What is given back is another's; what was let in counts afterwards; of another minute neither does."""
    await _limit(storage, 100)
    await _grant(storage, needed=10)
    granted = await _grant(storage, unused=unused, uncounted=uncounted)
    assert granted is not None
    assert granted.ungranted == left


# --------------------------------------------------------------------------------------------- the service


async def test_a_minutes_requests_may_come_in_one_burst_and_no_more(clocked: Clocked) -> None:
    """docs/interface.md#request-limit: N a minute, all in one burst; then 429 until the minute ends."""
    async with clocked.engine() as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme", request_limit=100))
        quotas = [await engine.http.count_request(workspace) for _ in range(100)]
        assert quotas == [RateLimitState(limit=100, remaining=n, reset_seconds=60) for n in reversed(range(100))]
        clocked.clock.advance(59.5)
        with pytest.raises(RateLimited) as caught:
            await engine.http.count_request(workspace)
        assert (caught.value.limit, caught.value.retry_after_seconds) == (100, 1)
        clocked.clock.advance(0.5)
        again = await engine.http.count_request(workspace)
        assert again is not None
        assert again.remaining == 99


async def test_most_requests_are_counted_without_a_write(clocked: Clocked, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of campaigns writes nothing as a rule."""
    async with clocked.engine() as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme", request_limit=600))
        writes = 0
        write = engine._storage.write

        async def counted(operation: Callable[[Transaction], T], *, bulk: bool = False) -> T:
            nonlocal writes
            writes += 1
            return await write(operation, bulk=bulk)

        monkeypatch.setattr(engine._storage, "write", counted)
        for _ in range(7):
            await engine.http.count_request(workspace)
        assert writes == 1
        for _ in range(593):
            await engine.http.count_request(workspace)
        assert writes < 600 / 8


@pytest.mark.parametrize("limit", [1, 3, 10, 100, 600])
async def test_processes_together_never_exceed_the_limit(clocked: Clocked, limit: int) -> None:
    """Every request that is let in was counted before; what one process holds unused is little."""
    async with AsyncExitStack() as stack:
        engines = [await stack.enter_async_context(clocked.engine()) for _ in range(3)]
        workspace = await engines[0].workspaces.create(NewWorkspace(name="Acme", request_limit=limit))
        taken = 0
        for number in range(limit * 2):
            try:
                await engines[number % 3].http.count_request(workspace)
            except RateLimited:
                continue
            taken += 1
        assert limit * 0.75 <= taken <= limit
        if limit <= 10:
            assert taken == limit


async def test_many_requests_at_once_never_exceed_the_limit(engine: Outreach) -> None:
    """The count is exact also when the requests come together."""
    workspace = await engine.workspaces.create(NewWorkspace(name="Acme", request_limit=10))
    refused = 0

    async def request() -> None:
        nonlocal refused
        try:
            await engine.http.count_request(workspace)
        except RateLimited:
            refused += 1

    async with anyio.create_task_group() as tasks:
        for _ in range(25):
            tasks.start_soon(request)
    assert refused == 15


async def test_a_changed_limit_counts_at_once(engine: Outreach) -> None:
    """docs/rules.md#due-work: it takes effect in the running server; what was granted before is given back."""
    workspace = await engine.workspaces.create(NewWorkspace(name="Acme", request_limit=200))
    for _ in range(5):
        await engine.http.count_request(workspace)
    lower = await engine.workspaces.update(workspace.id, WorkspaceUpdate(request_limit=6))
    assert (await engine.http.count_request(lower)) is not None
    with pytest.raises(RateLimited):
        await engine.http.count_request(lower)
    higher = await engine.workspaces.update(workspace.id, WorkspaceUpdate(request_limit=7))
    assert (await engine.http.count_request(higher)) is not None
    with pytest.raises(RateLimited):
        await engine.http.count_request(higher)
    free = await engine.workspaces.update(workspace.id, WorkspaceUpdate(request_limit=None))
    assert await engine.http.count_request(free) is None


async def test_a_limit_that_is_gone_is_none(clocked: Clocked) -> None:
    """Another process has lifted it; this one has read the workspace before that."""
    async with clocked.engine() as engine, clocked.engine() as other:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme", request_limit=1))
        await other.workspaces.update(workspace.id, WorkspaceUpdate(request_limit=None))
        for _ in range(3):
            assert await engine.http.count_request(workspace) is None


async def test_a_foreign_lock_stops_no_request(clocked: Clocked, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was granted is spent; then an eighth of the rest is let in, and counted when that can be written again."""
    monkeypatch.setattr(service, "_WAIT_SECONDS", 0.1)
    monkeypatch.setattr(service, "_MAX_WAIT_SECONDS", 0.2)
    monkeypatch.setattr(service, "_SETTLING_SECONDS", 0.1)
    async with clocked.engine() as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme", request_limit=160))
        await engine.http.count_request(workspace)
        with clocked.locked():
            let_in = await _until_busy(engine, workspace)
        block = service._FIRST_BLOCK
        assert let_in == block - 1 + (160 - block) // 8
        with anyio.fail_after(30):
            while engine._rate_limits._allowances[workspace.id].request is not None:  # noqa: ASYNC110 - nothing announces it
                await anyio.sleep(0.01)
        quota = await engine.http.count_request(workspace)
        assert quota is not None
        assert quota.remaining == 160 - 1 - let_in - 1


async def test_processes_settle_before_more_is_granted(clocked: Clocked, monkeypatch: pytest.MonkeyPatch) -> None:
    """What each has let in uncounted is counted before one of them takes the rest."""
    monkeypatch.setattr(service, "_WAIT_SECONDS", 0.1)
    monkeypatch.setattr(service, "_MAX_WAIT_SECONDS", 0.2)
    async with clocked.engine() as first, clocked.engine() as second:
        workspace = await first.workspaces.create(NewWorkspace(name="Acme", request_limit=80))
        with clocked.locked():
            taken = await _until_busy(first, workspace) + await _until_busy(second, workspace)
        assert taken == 20
        for engine in (first, second):
            while True:
                try:
                    await engine.http.count_request(workspace)
                except RateLimited:
                    break
                except StorageBusy:
                    await anyio.sleep(0.05)
                    continue
                taken += 1
        assert taken == 80


async def test_a_minute_that_begins_under_a_foreign_lock(clocked: Clocked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each minute has its own; one that is used up stays so."""
    async with clocked.engine() as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme", request_limit=80))
        small = await engine.workspaces.create(NewWorkspace(name="Small", request_limit=1))
        await engine.http.count_request(small)
        monkeypatch.setattr(service, "_WAIT_SECONDS", 0.05)
        monkeypatch.setattr(service, "_MAX_WAIT_SECONDS", 0.1)
        with clocked.locked():
            with pytest.raises(RateLimited):
                await engine.http.count_request(small)
            for _ in range(2):
                assert await _until_busy(engine, workspace) == 10
                clocked.clock.advance(60)
            with pytest.raises(StorageBusy):
                await engine.http.count_request(small)


async def test_a_key_is_looked_up_now_and_then(clocked: Clocked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Revoked elsewhere, it is worthless within a second; revoked here, at once."""
    async with clocked.engine() as engine, clocked.engine() as other:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme"))
        keys = [await engine.api_keys.create(workspace.id) for _ in range(2)]
        reads = 0
        read = engine._storage.read

        async def counted(operation: Callable[[Transaction], T]) -> T:
            nonlocal reads
            reads += 1
            return await read(operation)

        monkeypatch.setattr(engine._storage, "read", counted)
        for _ in range(10):
            assert (await engine.api_keys.authenticate(keys[0].api_key)).workspace.id == workspace.id
        assert reads == 1
        await other.api_keys.revoke(workspace.id, keys[0].id)
        clocked.clock.advance(0.99)
        with pytest.raises(Unauthorized):
            await engine.api_keys.authenticate(keys[0].api_key)
        await engine.api_keys.authenticate(keys[1].api_key)
        changed = await engine.workspaces.update(workspace.id, WorkspaceUpdate(name="Other"))
        assert (await engine.api_keys.authenticate(keys[1].api_key)).workspace == changed
        await engine.api_keys.revoke(workspace.id, keys[1].id)
        with pytest.raises(Unauthorized):
            await engine.api_keys.authenticate(keys[1].api_key)


async def test_an_answer_from_before_a_change_is_not_kept(clocked: Clocked, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is revoked while it is being looked up is not believed for longer than that."""
    async with clocked.engine() as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme"))
        key = await engine.api_keys.create(workspace.id)
        read = engine._storage.read

        async def overtaken(operation: Callable[[Transaction], T]) -> T:
            found = await read(operation)
            await engine.api_keys.revoke(workspace.id, key.id)
            return found

        monkeypatch.setattr(engine._storage, "read", overtaken)
        await engine.api_keys.authenticate(key.api_key)
        monkeypatch.undo()
        with pytest.raises(Unauthorized):
            await engine.api_keys.authenticate(key.api_key)


# ------------------------------------------------------------------------------------------------ the rest


class Clocked:
    """Engines over one file, as in several processes, under one clock."""

    def __init__(self, path: Path) -> None:
        self.clock = ManualClock(NOW)
        self._path = path

    @asynccontextmanager
    async def engine(self) -> AsyncIterator[Outreach]:
        """Open one."""
        async with Outreach.open(f"sqlite:///{self._path}", clock=self.clock) as engine:
            yield engine

    def locked(self) -> ForeignLock:
        """Hold the database as another program may."""
        return ForeignLock(self._path)


class ForeignLock:
    """A foreign write lock."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, *_: object) -> None:
        with closing(self._connection):
            self._connection.execute("ROLLBACK")


@pytest.fixture
def clocked(tmp_path: Path) -> Clocked:
    """A place for engines."""
    return Clocked(tmp_path / "outreach.db")


async def _until_busy(engine: Outreach, workspace: Workspace) -> int:
    for count in range(1000):
        try:
            await engine.http.count_request(workspace)
        except StorageBusy:
            return count
    raise AssertionError("it was let in without end")


async def _limit(storage: Storage, limit: int) -> None:
    await storage.write(lambda tx: tx.workspaces.update(make_workspace(request_limit=limit)))


async def _grant(
    storage: Storage,
    *,
    needed: int = 1,
    wanted: int = 0,
    after: timedelta = timedelta(),
    unused: UnsettledRequests | None = None,
    uncounted: UnsettledRequests | None = None,
) -> Grant | None:
    return await storage.write(
        lambda tx: limits.grant(
            tx, THIS_WORKSPACE, needed=needed, wanted=wanted, now=NOW + after, unused=unused, uncounted=uncounted
        )
    )
