from __future__ import annotations

import anyio
import attrs
import pytest

from outreach_server import fair_semaphore as module
from outreach_server.fair_semaphore import FairSemaphore, FairSemaphoreTimeout

pytestmark = pytest.mark.anyio


@attrs.define(eq=False)
class Visitor:
    """Somebody who takes a turn and holds it until he is told to go."""

    owner: str
    inside: anyio.Event = attrs.field(factory=anyio.Event)
    go: anyio.Event = attrs.field(factory=anyio.Event)
    gone: anyio.Event = attrs.field(factory=anyio.Event)

    async def visit(self, turns: FairSemaphore) -> None:
        """Come, stay, and go."""
        async with turns.turn(self.owner):
            self.inside.set()
            await self.go.wait()
        self.gone.set()


async def test_one_owner_has_his_share_and_no_more() -> None:
    """Those of others go before his third; when one of his ends, his next one is in."""
    turns = FairSemaphore(4, 2)
    mine = [Visitor("a") for _ in range(4)]
    others = [Visitor("b"), Visitor("c"), Visitor("d")]
    async with anyio.create_task_group() as tasks:
        for visitor in (*mine, *others):
            tasks.start_soon(visitor.visit, turns)
        await anyio.wait_all_tasks_blocked()
        assert [visitor.inside.is_set() for visitor in mine] == [True, True, False, False]
        assert [visitor.inside.is_set() for visitor in others] == [True, True, False]
        assert (turns.free, turns.waiting) == (0, 3)
        others[0].go.set()
        await others[0].gone.wait()
        await anyio.wait_all_tasks_blocked()
        assert [visitor.inside.is_set() for visitor in (*mine[2:], others[2])] == [False, False, True]
        mine[0].go.set()
        await anyio.wait_all_tasks_blocked()
        assert [visitor.inside.is_set() for visitor in mine[2:]] == [True, False]
        for visitor in (*mine, *others):
            visitor.go.set()
    assert (turns.free, turns.waiting) == (4, 0)


async def test_a_cancelled_visitor_keeps_no_turn() -> None:
    """Neither while it waits nor while it has one."""
    turns = FairSemaphore(1, 1)
    first, second, third = Visitor("a"), Visitor("b"), Visitor("c")
    async with anyio.create_task_group() as tasks:
        async with anyio.create_task_group() as leaving:
            leaving.start_soon(first.visit, turns)
            leaving.start_soon(second.visit, turns)
            await anyio.wait_all_tasks_blocked()
            leaving.cancel_scope.cancel()
        tasks.start_soon(third.visit, turns)
        await third.inside.wait()
        third.go.set()
    assert not second.inside.is_set()
    assert (turns.free, turns.waiting) == (1, 0)


async def test_so_many_of_one_owner_wait_and_for_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """One too many is told at once, and who has waited for too long; neither leaves anything behind."""
    monkeypatch.setattr(module, "MAX_WAITING", 2)
    turns = FairSemaphore(1, 1)
    first, waiting, other = Visitor("a"), [Visitor("a"), Visitor("a")], Visitor("b")
    async with anyio.create_task_group() as tasks:
        for visitor in (first, *waiting, other):
            tasks.start_soon(visitor.visit, turns)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(FairSemaphoreTimeout):
            async with turns.turn("a"):
                pass
        assert (turns.free, turns.waiting) == (0, 3)
        monkeypatch.setattr(module, "WAIT_SECONDS", 0.01)
        with pytest.raises(FairSemaphoreTimeout):
            async with turns.turn("c"):
                pass
        assert (turns.free, turns.waiting) == (0, 3)
        for visitor in (first, *waiting, other):
            visitor.go.set()
    assert (turns.free, turns.waiting) == (1, 0)
