from __future__ import annotations

from datetime import timedelta

import anyio
import pytest

from outreach import Answer, InvalidRequest, Outreach, RateLimited, RequestInProgress, WorkspaceChange
from outreach.operations import requests
from outreach.operations.requests import RUNNING_LEASE, Begun, Quota
from outreach.protocols.storage import Storage
from outreach.testing.builders import NOW, make_workspace
from outreach.testing.storage_tables.base_contract import HERE, THERE, TICK
from tests.engine.given import SECOND

pytestmark = pytest.mark.anyio

DAY = timedelta(hours=24)


async def test_a_minutes_requests_may_come_in_one_burst_and_no_more(storage: Storage) -> None:
    """Design, section 3, request limit: N a minute, all in one burst; then 429 until the minute ends."""
    await storage.write(lambda tx: tx.workspaces.update(make_workspace(request_limit=3)))
    quotas = [await _take(storage) for _ in range(3)]
    assert quotas == [Quota(limit=3, remaining=n, reset_seconds=60) for n in (2, 1, 0)]
    with pytest.raises(RateLimited) as caught:
        await _take(storage, after=timedelta(seconds=59.5))
    assert (caught.value.limit, caught.value.retry_after_seconds) == (3, 1)
    with pytest.raises(RateLimited):
        await _take(storage, after=timedelta(seconds=60) - TICK)
    again = await _take(storage, after=timedelta(seconds=60))
    assert again is not None
    assert again.remaining == 2


async def test_a_limit_is_the_workspaces_own_and_may_be_none(storage: Storage) -> None:
    """Interface, section 5: one limit per workspace; None means none."""
    await storage.write(lambda tx: tx.workspaces.update(make_workspace(request_limit=1)))
    await storage.write(lambda tx: tx.workspaces.update(make_workspace(id=THERE, request_limit=None)))
    await _take(storage)
    assert await storage.write(lambda tx: requests.take(tx, THERE, now=NOW)) is None
    with pytest.raises(RateLimited):
        await _take(storage)


async def test_a_wall_clock_that_was_put_back_locks_nobody_out(storage: Storage) -> None:
    """A window from the future is not believed."""
    await storage.write(lambda tx: tx.workspaces.update(make_workspace(request_limit=1)))
    await _take(storage, after=DAY)
    assert await _take(storage) is not None


async def test_a_changed_limit_counts_at_once(engine: Outreach) -> None:
    """Design, section 8: a limit changed takes effect in the running server."""
    workspace = await engine.workspaces.create("Acme", request_limit=1)
    await engine.requests.take(workspace.id)
    with pytest.raises(RateLimited):
        await engine.requests.take(workspace.id)
    await engine.workspaces.update(workspace.id, WorkspaceChange(request_limit=2))
    assert await engine.requests.take(workspace.id) is not None
    await engine.workspaces.update(workspace.id, WorkspaceChange(request_limit=None))
    assert await engine.requests.take(workspace.id) is None


async def test_many_requests_at_once_never_exceed_the_limit(engine: Outreach) -> None:
    """The count is exact also when the requests come together."""
    workspace = await engine.workspaces.create("Acme", request_limit=10)
    refused = 0

    async def request() -> None:
        nonlocal refused
        try:
            await engine.requests.take(workspace.id)
        except RateLimited:
            refused += 1

    async with anyio.create_task_group() as tasks:
        for _ in range(25):
            tasks.start_soon(request)
    assert refused == 15


async def test_the_first_request_of_a_key_is_its_own_and_a_second_waits_then_replays(storage: Storage) -> None:
    """Design, section 3, safe retry: while the first runs the second waits; then it gets the first answer."""
    assert (await _begin(storage, "a")).state == "mine"
    assert (await _begin(storage, "b")).state == "wait"
    assert (await _begin(storage, "a")).state == "mine"
    answer = Answer(body=b"{}", location="/calls/1")
    await storage.write(lambda tx: requests.finish(tx, HERE, "op", "key", token="a", answer=answer, now=NOW))
    assert await _begin(storage, "b") == Begun(state="replay", answer=answer)


@pytest.mark.parametrize("finished", [False, True])
async def test_the_same_key_with_another_body_is_refused(storage: Storage, finished: bool) -> None:
    """Design, section 3, safe retry: another body is a 400, whether the first still runs or not."""
    await _begin(storage, "a")
    if finished:
        await storage.write(
            lambda tx: requests.finish(tx, HERE, "op", "key", token="a", answer=Answer(body=b"1"), now=NOW)
        )
    with pytest.raises(InvalidRequest) as caught:
        await _begin(storage, "b", fingerprint="other")
    assert caught.value.details[0].path == "Idempotency-Key"


async def test_keys_of_other_workspaces_and_operations_do_not_meet(storage: Storage) -> None:
    """Design, section 3, safe retry: by workspace, operation and key."""
    await _begin(storage, "a")
    assert (await _begin(storage, "b", workspace_id=THERE)).state == "mine"
    assert (await _begin(storage, "c", operation="other")).state == "mine"
    assert (await _begin(storage, "d", key="other")).state == "mine"


async def test_a_key_is_forgotten_after_its_time(storage: Storage) -> None:
    """Design, section 3, safe retry: for 24 h; then the key is new, also for another body."""
    await _begin(storage, "a")
    await storage.write(lambda tx: requests.finish(tx, HERE, "op", "key", token="a", answer=Answer(body=b"1"), now=NOW))
    assert (await _begin(storage, "b", after=DAY - TICK)).state == "replay"
    assert (await _begin(storage, "b", after=DAY, fingerprint="other")).state == "mine"


async def test_a_request_that_died_is_taken_over_and_cannot_finish_any_more(storage: Storage) -> None:
    """One token may finish: a request that came back after another took its key over makes nothing."""
    await _begin(storage, "a")
    assert (await _begin(storage, "b", after=RUNNING_LEASE - TICK)).state == "wait"
    assert (await _begin(storage, "b", after=RUNNING_LEASE)).state == "mine"
    for operation in (
        lambda tx: requests.keep(tx, HERE, "op", "key", token="a", now=NOW),
        lambda tx: requests.finish(tx, HERE, "op", "key", token="a", answer=Answer(body=b"1"), now=NOW),
    ):
        with pytest.raises(RequestInProgress):
            await storage.write(operation)
    await storage.write(lambda tx: requests.give_up(tx, HERE, "op", "key", token="a"))
    assert (await _begin(storage, "c", after=RUNNING_LEASE + SECOND)).state == "wait"


async def test_a_long_request_keeps_its_key(storage: Storage) -> None:
    """A load that goes on keeps its key, chunk by chunk."""
    await _begin(storage, "a")
    await storage.write(lambda tx: requests.keep(tx, HERE, "op", "key", token="a", now=NOW + RUNNING_LEASE))
    assert (await _begin(storage, "b", after=RUNNING_LEASE * 2 - TICK)).state == "wait"


async def _take(storage: Storage, *, after: timedelta = timedelta()) -> Quota | None:
    return await storage.write(lambda tx: requests.take(tx, HERE, now=NOW + after))


async def _begin(
    storage: Storage,
    token: str,
    *,
    workspace_id: str = HERE,
    operation: str = "op",
    key: str = "key",
    fingerprint: str = "print",
    after: timedelta = timedelta(),
) -> Begun:
    return await storage.write(
        lambda tx: requests.begin(
            tx, workspace_id, operation, key, fingerprint=fingerprint, token=token, now=NOW + after, keep=DAY
        )
    )
