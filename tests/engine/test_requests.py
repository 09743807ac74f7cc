from __future__ import annotations

from datetime import timedelta

import pytest

from outreach import InvalidRequest
from outreach.errors import RequestInProgress
from outreach.http import StoredAnswer
from outreach.ledger.access import idempotency
from outreach.ledger.access.idempotency import RUNNING_LEASE, KeyClaim
from outreach.protocols.storage import Storage
from outreach.testing.builders import NOW
from outreach.testing.storage_tables.base_contract import OTHER_WORKSPACE, THIS_WORKSPACE, TICK
from tests.engine.given import SECOND

pytestmark = pytest.mark.virtual_time

ANSWER = StoredAnswer(body=b"1")

DAY = timedelta(hours=24)


async def test_the_first_request_of_a_key_is_its_own_and_a_second_waits_then_replays(storage: Storage) -> None:
    """docs/interface.md#safe-retry: while the first runs the second waits; then it gets the first answer."""
    assert (await _begin(storage, "a")).state == "mine"
    assert (await _begin(storage, "b")).state == "wait"
    assert (await _begin(storage, "a")).state == "mine"
    answer = StoredAnswer(body=b"{}", location="/calls/1")
    await _finish(storage, answer)
    assert await _begin(storage, "b") == KeyClaim(state="replay", answer=answer)


@pytest.mark.parametrize("finished", [False, True])
async def test_the_same_key_with_another_body_is_refused(storage: Storage, finished: bool) -> None:
    """docs/interface.md#safe-retry: another body is a 400, whether the first still runs or not."""
    await _begin(storage, "a")
    if finished:
        await _finish(storage)
    with pytest.raises(InvalidRequest) as caught:
        await _begin(storage, "b", fingerprint="other")
    assert caught.value.details[0].path == "Idempotency-Key"


async def test_keys_of_other_workspaces_and_operations_do_not_meet(storage: Storage) -> None:
    """docs/interface.md#safe-retry: by workspace, operation and key."""
    await _begin(storage, "a")
    assert (await _begin(storage, "b", workspace_id=OTHER_WORKSPACE)).state == "mine"
    assert (await _begin(storage, "c", operation="other")).state == "mine"
    assert (await _begin(storage, "d", key="other")).state == "mine"


async def test_a_key_is_forgotten_after_its_time(storage: Storage) -> None:
    """docs/interface.md#safe-retry: for 24 h; then the key is new, also for another body."""
    await _begin(storage, "a")
    await _finish(storage)
    assert (await _begin(storage, "b", after=DAY - TICK)).state == "replay"
    assert (await _begin(storage, "b", after=DAY, fingerprint="other")).state == "mine"


async def test_a_request_that_died_is_taken_over_and_cannot_finish_any_more(storage: Storage) -> None:
    """One token may finish: a request that came back after another took its key over makes nothing."""
    await _begin(storage, "a")
    assert (await _begin(storage, "b", after=RUNNING_LEASE - TICK)).state == "wait"
    assert (await _begin(storage, "b", after=RUNNING_LEASE)).state == "mine"
    for operation in (
        lambda tx: idempotency.renew_claim(tx, THIS_WORKSPACE, "op", "key", token="a", now=NOW),
        lambda tx: idempotency.store_answer(tx, THIS_WORKSPACE, "op", "key", token="a", answer=ANSWER, now=NOW),
    ):
        with pytest.raises(RequestInProgress):
            await storage.write(operation)
    await storage.write(lambda tx: idempotency.release_claim(tx, THIS_WORKSPACE, "op", "key", token="a"))
    assert (await _begin(storage, "c", after=RUNNING_LEASE + SECOND)).state == "wait"


async def test_a_long_request_keeps_its_key(storage: Storage) -> None:
    """A load that goes on keeps its key, chunk by chunk."""
    await _begin(storage, "a")
    await storage.write(
        lambda tx: idempotency.renew_claim(tx, THIS_WORKSPACE, "op", "key", token="a", now=NOW + RUNNING_LEASE)
    )
    assert (await _begin(storage, "b", after=RUNNING_LEASE * 2 - TICK)).state == "wait"


async def test_a_fuller_answer_does_not_bring_back_who_was_erased(storage: Storage) -> None:
    """Who waits for it is told, and nothing is made again; a request without an answer has nothing to erase."""

    async def erase() -> None:
        await storage.write(lambda tx: idempotency.erase_answer(tx, THIS_WORKSPACE, "op", "key"))

    async def finish(settled: bool) -> None:
        answer = StoredAnswer(body=b"+14155557777", location="/14155557777")
        await _finish(storage, answer, settled=settled)

    await erase()
    await _begin(storage, "a")
    await erase()
    await finish(settled=False)
    await erase()
    assert (await _begin(storage, "b")).state == "wait"
    await finish(settled=True)
    with pytest.raises(InvalidRequest, match="erased since"):
        await _begin(storage, "b")
    stored = await storage.read(lambda tx: tx.requests.stored(THIS_WORKSPACE, "op", "key"))
    assert stored is not None
    assert "14155557777" not in str(stored)


@pytest.mark.parametrize("back", [timedelta(hours=1), timedelta(days=400)])
async def test_a_clock_that_is_set_back_makes_nobody_wait_longer_than_for_a_dead_request(
    storage: Storage, back: timedelta
) -> None:
    """What has an answer replays it at once; what died is taken over a minute after somebody has asked."""
    await _begin(storage, "a", key="answered")
    await _finish(storage, key="answered")
    assert (await _begin(storage, "b", key="answered", after=-back)).state == "replay"
    await _begin(storage, "a")
    assert (await _begin(storage, "b", after=-back)).state == "wait"
    assert (await _begin(storage, "b", after=RUNNING_LEASE - TICK - back)).state == "wait"
    assert (await _begin(storage, "b", after=RUNNING_LEASE - back)).state == "mine"


async def _finish(storage: Storage, answer: StoredAnswer = ANSWER, *, key: str = "key", settled: bool = True) -> None:
    await storage.write(
        lambda tx: idempotency.store_answer(
            tx, THIS_WORKSPACE, "op", key, token="a", answer=answer, now=NOW, settled=settled
        )
    )


async def _begin(
    storage: Storage,
    token: str,
    *,
    workspace_id: str = THIS_WORKSPACE,
    operation: str = "op",
    key: str = "key",
    fingerprint: str = "print",
    after: timedelta = timedelta(),
) -> KeyClaim:
    return await storage.write(
        lambda tx: idempotency.claim_key(
            tx, workspace_id, operation, key, fingerprint=fingerprint, token=token, now=NOW + after, keep=DAY
        )
    )
