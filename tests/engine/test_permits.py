"""Permits for intents and requests hold over all workers of a database (docs/delivery-contract.md#rule-1)."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import attrs
import pytest

from outreach.errors import LeaseLost
from outreach.ledger.leases import leases
from outreach.ledger.sending import intents as permits
from outreach.ledger.sending.intents import Permits
from outreach.models.states import DispatchState
from outreach.protocols.storage import Storage
from outreach.providers.http.request_gate import FairLimiter
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import make_worker
from outreach.testing.scripted import ScriptedCarrier, accept, hang
from outreach.testing.virtual_time import clock_of_loop
from tests.engine import rig
from tests.engine.rig import QUICK, Rig, WakeSignal, dispatching, given_campaign, given_workspace, until

pytestmark = pytest.mark.virtual_time

MOST = Permits(intents=10, requests=20)
NONE = Permits(intents=0, requests=0)


async def _share(storage: Storage, epoch: int, in_use: Permits = NONE, *, most: Permits = MOST) -> tuple[int, int]:
    portion = await storage.write(lambda tx: permits.share_permits(tx, epoch, most=most, in_use=in_use))
    return portion.intents, portion.requests


async def _noted(storage: Storage) -> list[tuple[int, int]]:
    rows = await storage.read(lambda tx: tx.workers.list())
    return [(row.intent_permits, row.request_permits) for row in rows]


async def _join(storage: Storage, epoch: int) -> None:
    await storage.write(lambda tx: tx.workers.put(make_worker(epoch=epoch, place=epoch)))


async def test_a_worker_alone_has_them_all(storage: Storage) -> None:
    """And one whose lease has ended has none."""
    await _join(storage, 1)
    assert await _share(storage, 1) == (10, 20)
    with pytest.raises(LeaseLost):
        await _share(storage, 2)


async def test_a_newcomer_has_one_of_each_until_the_others_have_given_back_what_is_more_than_their_portion(
    storage: Storage,
) -> None:
    """Nobody counts on what another one may still have, so that all together never have more than there are."""
    await _join(storage, 1)
    await _share(storage, 1)
    await _join(storage, 2)
    assert await _share(storage, 2) == (1, 1)
    # The first one learns of it: until its next heartbeat it may still have what it had.
    assert await _share(storage, 1, Permits(intents=10, requests=20)) == (5, 10)
    assert await _share(storage, 2, Permits(intents=1, requests=1)) == (1, 1)
    # Of one kind it has let go, of the other it still holds more than its portion.
    assert await _share(storage, 1, Permits(intents=5, requests=17)) == (5, 10)
    assert await _share(storage, 2, Permits(intents=1, requests=1)) == (5, 3)
    assert await _noted(storage) == [(5, 17), (5, 3)]
    assert await _share(storage, 1, Permits(intents=5, requests=10)) == (5, 10)
    assert await _share(storage, 2, Permits(intents=5, requests=3)) == (5, 10)


async def test_what_a_worker_had_is_shared_out_when_its_lease_ends(storage: Storage) -> None:
    """In order or not: by then what it left is unknown, and counts no more."""
    for epoch in (1, 2):
        await _join(storage, epoch)
        await _share(storage, epoch, Permits(intents=5, requests=10))
    await storage.write(lambda tx: leases.end_worker(tx, 1))
    assert await _share(storage, 2, Permits(intents=5, requests=10)) == (10, 20)


@pytest.mark.parametrize("count", [2, 3, 7, 16])
async def test_all_together_have_no_more_than_there_are_and_one_for_each_that_joins(
    storage: Storage, count: int
) -> None:
    """Whatever they hold when others join; with more workers than permits, each has one."""
    most = Permits(intents=5, requests=8)
    held: dict[int, Permits] = {}
    for epoch in range(1, count + 1):
        await _join(storage, epoch)
        held[epoch] = NONE
        for each in (*range(epoch, 0, -1), *range(1, epoch)):
            allowed = await _share(storage, each, held[each], most=most)
            # Each takes all that it may have, and gives nothing back.
            taken = Permits(intents=allowed[0], requests=allowed[1])
            held[each] = Permits(
                intents=max(held[each].intents, taken.intents), requests=max(held[each].requests, taken.requests)
            )
            assert min(allowed) >= 1
        intents, requests = (sum(noted) for noted in zip(*await _noted(storage), strict=True))
        assert intents <= most.intents + epoch - 1
        assert requests <= most.requests + epoch - 1
        assert sum(each.intents for each in held.values()) <= intents
        assert sum(each.requests for each in held.values()) <= requests


async def test_a_limiter_that_becomes_smaller_grants_nothing_until_enough_was_given_back() -> None:
    """Places that are held stay held. When the limiter becomes larger again, a waiting call gets them."""
    places = FairLimiter(8)
    assert sum(places.acquire_nowait("a") for _ in range(9)) == 6
    places.resize(3)
    assert (places.in_use, places.has_capacity("b"), places.acquire_nowait("b")) == (6, False, False)
    places.release("a", 4)
    assert places.in_use == 3
    assert places.acquire_nowait("b")
    assert not places.acquire_nowait("a")
    got: list[int] = []

    async def wait() -> None:
        got.append(await places.acquire("a", WakeSignal(), wanted=2))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.sleep(1)
        assert not got
        places.resize(8)
        await anyio.sleep(1)
        assert got == [2]


# ------------------------------------------------------------------------------------------- two engines


FEW = attrs.evolve(QUICK, max_queued_intents=4, max_requests_in_flight=8, provider_timeout_seconds=20.0)


async def _on_their_way(storage: Storage, *rigs: Rig) -> Sequence[int]:
    """Return how many intents each worker has without an outcome, and check what holds of them at any time."""
    open_of = {each.dispatcher.health().epoch or 0: 0 for each in rigs}
    rows = await storage.read(lambda tx: tx.workers.list())

    def operation(tx: Transaction) -> Sequence[int]:
        return [dispatch.epoch for dispatch in tx.dispatches.abandoned((), limit=1000)]

    for epoch in await storage.read(operation):
        open_of[epoch] = open_of.get(epoch, 0) + 1
    assert sum(open_of.values()) <= 4 + 8 + 2 * (len(rows) - 1)
    for row in rows:
        assert open_of.get(row.epoch, 0) <= row.intent_permits + row.request_permits
    return list(open_of.values())


async def test_what_two_engines_have_on_their_way_is_no_more_than_one_may_have() -> None:
    """A provider that does not answer leaves as much unknown, however many workers ask it; also as one joins."""
    storage = MemoryStorage(clock=clock_of_loop(), workers=2)
    silent = True
    answers = [ScriptedCarrier(lambda _: hang() if silent else accept()) for _ in range(2)]
    async with dispatching(storage, config=FEW, carrier=answers[0]) as one:
        workspace = await given_workspace(one.engine)
        campaigns = [
            await given_campaign(one.engine, workspace, rig.contacts(30, first=100 * number)) for number in range(6)
        ]
        for campaign in campaigns:
            await one.engine.campaigns.start(workspace.id, campaign.id)
        # Three quarters of eight: the rest is for other accounts.
        await answers[0].wait_for_requests(6)
        async with dispatching(storage, config=FEW, carrier=answers[1]) as two:
            for _ in range(75):
                await _on_their_way(storage, one, two)
                await anyio.sleep(0.2)
            # Each has its portion, of which the account gets three quarters.
            assert [len(each.requests) > 0 for each in answers] == [True, True]
            silent = False
            await until(lambda: _noted(storage), lambda found: found == [(2, 4), (2, 4)], timeout_seconds=60)
            for campaign in campaigns:

                async def ended(of: str = campaign.id) -> bool:
                    found = await one.engine.campaigns.list_dispatches(workspace.id, of, 0)
                    await _on_their_way(storage, one, two)
                    return bool(found) and {dispatch.state for dispatch in found} <= {
                        DispatchState.ACCEPTED,
                        DispatchState.UNKNOWN,
                    }

                await until(ended, timeout_seconds=300)
        await until(lambda: _noted(storage), lambda found: found == [(4, 8)])
