"""The fences that simulated transactions take, and transactions that go on in steps."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tests.simulation.fence import Fences, Turn
from tests.simulation.statements import Abandoned, Stepped

pytestmark = pytest.mark.anyio


async def begun(fences: Fences, *wanted: Sequence[str] | None) -> tuple[list[asyncio.Task[Turn]], list[bool]]:
    """Take fences one after the other; return who waits for them, and which of them have them."""
    tasks = [
        asyncio.create_task(fences.take(lambda _: None, None if ids is None else frozenset(ids))) for ids in wanted
    ]
    await asyncio.sleep(0.01)
    return tasks, [task.done() for task in tasks]


async def test_transactions_of_different_workspaces_do_not_wait_for_each_other() -> None:
    """Those that share one do, in the order in which they came."""
    tasks, have = await begun(Fences(), ["a"], ["b"], ["b", "c"], ["c"])
    assert have == [True, True, False, False]
    for task in tasks:
        task.cancel()


async def test_a_transaction_for_all_workspaces_is_alone() -> None:
    """It waits for all, and those that come after it wait for it."""
    fences = Fences()
    tasks, have = await begun(fences, ["a"], None, ["b"])
    assert have == [True, False, False]
    fences.give_back(tasks[0].result(), lambda _: None)
    assert not tasks[2].done()
    fences.give_back(await tasks[1], lambda _: None)
    await tasks[2]


async def test_one_that_no_longer_waits_keeps_nobody_waiting() -> None:
    """As when its process is killed."""
    fences = Fences()
    tasks, _ = await begun(fences, ["a"], ["a", "b"], ["b"])
    tasks[1].cancel()
    await tasks[2]
    assert tasks[1].cancelled()


def test_work_stops_where_it_may_and_goes_on_when_its_owner_says_so() -> None:
    """What it returns or raises comes to its owner."""
    done: list[int] = []

    def work() -> str:
        done.append(1)
        stepped.stop()
        done.append(2)
        return "done"

    stepped = Stepped(work)
    assert done == []
    assert not stepped.step()
    assert done == [1]
    assert stepped.step()
    assert (done, stepped.result()) == ([1, 2], "done")


def test_abandoned_work_ends_where_it_has_stopped() -> None:
    """With an error that no operation takes for one of its own."""
    done: list[int] = []

    def work() -> None:
        stepped.stop()
        done.append(1)

    stepped = Stepped(work)
    stepped.step()
    stepped.abandon()
    with pytest.raises(Abandoned):
        stepped.result()
    assert done == []
