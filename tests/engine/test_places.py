from __future__ import annotations

import anyio
import attrs
import pytest
from anyio.lowlevel import checkpoint

from outreach.providers.http.request_gate import FairLimiter
from outreach.testing.scripted import ScriptedCarrier, accept, hang
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.conftest import OpenStorage
from tests.engine.rig import QUICK, WakeSignal, contacts, dispatching, given_workspace, reaches, start_campaign

pytestmark = pytest.mark.virtual_time


def _filled(places: FairLimiter, account: str) -> int:
    """Take all places that an account gets, and return how many those are."""
    taken = 0
    while places.acquire_nowait(account):
        taken += 1
    return taken


@pytest.mark.parametrize(("most", "alone"), [(1, 1), (2, 2), (4, 3), (100, 75)])
async def test_an_account_alone_gets_three_quarters(most: int, alone: int) -> None:
    """What it leaves is for accounts that hold little; where there is hardly anything, somebody still gets it."""
    places = FairLimiter(most)
    assert _filled(places, "a") == alone


async def test_however_many_accounts_do_not_answer_something_is_left_for_another() -> None:
    """Each of them gets less than the one before, and all together never more than there are."""
    places = FairLimiter(100)
    taken = [_filled(places, f"silent {number}") for number in range(2)]
    assert taken == [75, 19]
    assert _filled(places, "other") > 0
    total = sum(taken) + sum(_filled(places, f"more {number}") for number in range(1000))
    assert total <= 100


async def test_the_accounts_of_a_provider_that_does_not_answer_leave_a_tenth_to_other_providers() -> None:
    """However many workspaces use it."""
    places = FairLimiter(1000)
    silent = sum(_filled(places, f"workspace {number}/silent") for number in range(200))
    assert silent == 900
    assert _filled(places, "workspace 0/other") == 75
    places.release("workspace 0/silent", 1)
    assert _filled(places, "workspace 0/silent") == 0


async def test_accounts_that_wait_take_turns() -> None:
    """One whose queue never empties does not take every permit that is released."""
    places = FairLimiter(4)
    order: list[str] = []

    async def wait(account: str) -> None:
        if await places.acquire_within(account, 60.0):
            order.append(account)

    assert _filled(places, "busy") == 3
    assert _filled(places, "second") == 1
    async with anyio.create_task_group() as tasks:
        for account in ("third", "third", "third", "fourth"):
            tasks.start_soon(wait, account)
            await checkpoint()
        for number in range(1, 3):
            places.release("busy", 1)
            while len(order) < number:
                await checkpoint()
        assert order == ["third", "fourth"]
        tasks.cancel_scope.cancel()


async def test_who_waits_gets_what_is_given_back_in_turn() -> None:
    """First come, first served within an account; nobody overtakes who waits."""
    places = FairLimiter(1)
    order: list[int] = []

    async def wait(number: int) -> None:
        assert await places.acquire("a", WakeSignal())
        order.append(number)

    assert places.acquire_nowait("a")
    async with anyio.create_task_group() as tasks:
        for number in range(3):
            tasks.start_soon(wait, number)
            await checkpoint()
        for number in range(3):
            places.release("a", 1)
            assert not places.acquire_nowait("a")
            with anyio.fail_after(30):
                while len(order) <= number:
                    await checkpoint()
    assert order == [0, 1, 2]


async def test_who_waits_for_several_gets_them_at_once() -> None:
    """As soon as they are there, or after a moment what there is then; nobody overtakes."""
    places = FairLimiter(8)
    got: dict[str, int] = {}

    async def wait(name: str, wanted: int) -> None:
        got[name] = await places.acquire("a", WakeSignal(), wanted=wanted)

    assert await places.acquire("a", WakeSignal(), wanted=4) == 4
    assert await places.acquire("a", WakeSignal(), wanted=4) == 2
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait, "first", 3)
        await checkpoint()
        tasks.start_soon(wait, "second", 6)
        await checkpoint()
        with anyio.fail_after(30):
            for _ in range(3):
                assert not got
                places.release("a", 1)
            while "first" not in got:
                await checkpoint()
            assert got == {"first": 3}
            places.release("a", 2)
            while "second" not in got:  # noqa: ASYNC110 - another task adds to it
                await anyio.sleep(0.01)
    assert got == {"first": 3, "second": 2}


async def test_a_stop_ends_every_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first waiter checks for a stop all the time. The next one checks as soon as it is the first."""
    monkeypatch.setattr("outreach.providers.http.request_gate._OTHERS_CHECK_SECONDS", 3600.0)
    places, wake_signal = FairLimiter(1), WakeSignal()
    assert places.acquire_nowait("a")
    results: list[int] = []

    async def wait() -> None:
        results.append(await places.acquire("a", wake_signal, wanted=2))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(wait)
            await checkpoint()
            wake_signal.stopping = True
    assert results == [0] * 20


async def test_a_wait_that_is_cancelled_or_stopped_keeps_no_place() -> None:
    """A slice that is cancelled or stopped while it waits leaves the place to the next, granted or not."""
    places = FairLimiter(1)
    assert places.acquire_nowait("a")
    stopped = WakeSignal()
    results: list[bool] = []

    async def wait(wake_signal: WakeSignal) -> None:
        results.append(bool(await places.acquire("a", wake_signal)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait, stopped)
        async with anyio.create_task_group() as cancelled:
            cancelled.start_soon(wait, WakeSignal())
            await checkpoint()
            cancelled.cancel_scope.cancel()
        stopped.stopping = True
    assert results == [False]
    async with anyio.create_task_group() as cancelled:
        cancelled.start_soon(wait, WakeSignal())
        await checkpoint()
        # Granted and cancelled at once.
        places.release("a", 1)
        cancelled.cancel_scope.cancel()
    assert places.acquire_nowait("a") or results == [False, True]


async def test_a_limited_wait_for_one_place_gets_it_in_turn_or_not_at_all() -> None:
    """A waiter that is too late or cancelled holds up no other, and keeps no place."""
    places = FairLimiter(1)
    assert await places.acquire_within("a", 0.0)
    got: list[str] = []

    async def wait(name: str, seconds: float) -> None:
        if await places.acquire_within("a", seconds):
            got.append(name)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait, "late", 1.0)
        async with anyio.create_task_group() as cancelled:
            cancelled.start_soon(wait, "cancelled", 60.0)
            await checkpoint()
            tasks.start_soon(wait, "second", 60.0)
            tasks.start_soon(wait, "third", 60.0)
            await anyio.sleep(2)
            # Cancelled, and granted before it could leave.
            cancelled.cancel_scope.cancel()
            places.release("a", 1)
        with anyio.fail_after(30):
            while not got:
                await checkpoint()
            assert got == ["second"]
            assert not places.acquire_nowait("a")
            places.release("a", 1)
            while len(got) < 2:
                await checkpoint()
    assert got == ["second", "third"]
    assert places.held == 1


async def test_a_provider_that_does_not_answer_delays_no_campaign_of_another(open_storage: OpenStorage) -> None:
    """Field, test 18: as many silent campaigns as would fill all places leave some to the others."""
    config = attrs.evolve(QUICK, max_requests_in_flight=8, stop_grace_seconds=0.05)
    carrier = ScriptedCarrier(lambda message: hang() if message.from_number == "+14155550198" else accept())
    async with dispatching(open_storage(clock_of_loop()), carrier=carrier, config=config) as rig:
        workspace = await given_workspace(rig.engine)
        for number in range(10):
            await start_campaign(
                rig.engine,
                workspace,
                contacts(5, first=100 + 10 * number),
                carrier="telnyx",
                from_number="+14155550198",
            )
        await rig.carrier.wait_for_requests(6)
        well = await start_campaign(rig.engine, workspace, 5)
        await reaches(rig.engine, well, "completed")
