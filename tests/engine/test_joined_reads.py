"""What several services read at the same time comes from one snapshot."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import pytest

from outreach import InvalidRequest, NewWorkspace, NotFound, Outreach
from outreach.errors import StorageBusy
from outreach.server_support import JoinedReads
from outreach.storage.sqlite.memory import MemoryStorage

pytestmark = pytest.mark.anyio


class Counted:
    """Counts the snapshots that are read, and may refuse one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.refuses = False
        read = MemoryStorage.read

        async def counted(storage: MemoryStorage, operation: Any) -> Any:
            self.count += 1
            if self.refuses:
                raise StorageBusy("Another process writes.")
            return await read(storage, operation)

        monkeypatch.setattr(MemoryStorage, "read", counted)


@pytest.fixture
def snapshots(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """The count of the snapshots that are read."""
    return Counted(monkeypatch)


async def together(*calls: Coroutine[Any, Any, object]) -> None:
    """Run calls together, but not for ever."""
    async with asyncio.timeout(60), JoinedReads() as reads:
        for call in calls:
            reads.start(call)


async def test_calls_that_read_once_share_one_snapshot(snapshots: Counted) -> None:
    """Alone each takes one of its own."""
    async with Outreach.open("memory://") as engine:
        made = [await engine.workspaces.create(NewWorkspace(name=name)) for name in "abc"]
        before = snapshots.count
        async with JoinedReads() as reads:
            found = [reads.start(engine.workspaces.get(one.id)) for one in made]
        assert [one.result() for one in found] == made
        assert snapshots.count == before + 1
        assert await engine.workspaces.get(made[0].id) == made[0]
        assert snapshots.count == before + 2


async def test_calls_that_read_again_share_each_round(snapshots: Counted) -> None:
    """One of them may be done before, and one may begin several reads at once."""
    async with Outreach.open("memory://") as engine:
        made = (await engine.workspaces.create(NewWorkspace(name="a"))).id

        async def names(rounds: int, width: int) -> list[str]:
            names = []
            for _ in range(rounds):
                found = await asyncio.gather(*(engine.workspaces.get(made) for _ in range(width)))
                names += [one.name for one in found]
            return names

        before = snapshots.count
        async with JoinedReads() as reads:
            found = [reads.start(names(rounds, width)) for rounds, width in ((1, 1), (3, 2), (2, 3))]
        assert ["".join(one.result()) for one in found] == ["a", "a" * 6, "a" * 6]
        assert snapshots.count == before + 3


async def test_a_call_that_waits_for_something_else_holds_nobody_up_for_good() -> None:
    """The reads of the others follow once it is done."""
    async with Outreach.open("memory://") as engine:
        made = await engine.workspaces.create(NewWorkspace(name="a"))
        async with asyncio.timeout(10), JoinedReads() as reads:
            reads.start(asyncio.sleep(0.01))
            found = reads.start(engine.workspaces.get(made.id))
        assert found.result() == made


async def test_a_refusal_is_of_its_call_alone_and_ends_the_block() -> None:
    """It comes as it is, not in a group."""
    async with Outreach.open("memory://") as engine:
        made = await engine.workspaces.create(NewWorkspace(name="a"))

        async def forgiving() -> str:
            try:
                await engine.workspaces.get("none")
            except NotFound:
                return (await engine.workspaces.get(made.id)).name
            return ""

        async with JoinedReads() as reads:
            found, other = reads.start(forgiving()), reads.start(engine.workspaces.get(made.id))
        assert (found.result(), other.result()) == ("a", made)

        async def slow() -> None:
            await engine.workspaces.get(made.id)
            await asyncio.sleep(3600)

        with pytest.raises(NotFound):
            await together(engine.workspaces.get("none"), slow())


async def test_a_call_that_fails_before_it_reads_ends_the_others(snapshots: Counted) -> None:
    """They wait for a read that is not made any more."""
    async with Outreach.open("memory://") as engine:
        made = await engine.workspaces.create(NewWorkspace(name="a"))
        before = snapshots.count
        with pytest.raises(InvalidRequest):
            await together(engine.workspaces.get(made.id), engine.campaigns.list(made.id, limit=0))
        assert snapshots.count == before


async def test_an_error_of_the_database_is_of_all(snapshots: Counted) -> None:
    """Each call gets it, and the block raises it."""
    async with Outreach.open("memory://") as engine:
        made = await engine.workspaces.create(NewWorkspace(name="a"))
        snapshots.refuses = True
        with pytest.raises(StorageBusy):
            await together(engine.workspaces.get(made.id), engine.workspaces.get(made.id))


async def test_what_outlasts_the_block_reads_by_itself() -> None:
    """A call may begin something that others wait for, too."""
    async with Outreach.open("memory://") as engine:
        made = await engine.workspaces.create(NewWorkspace(name="a"))
        go, begun = asyncio.Event(), []

        async def later() -> str:
            await go.wait()
            return (await engine.workspaces.get(made.id)).name

        async def begin() -> None:
            begun.append(asyncio.create_task(later()))

        async with JoinedReads() as reads:
            reads.start(begin())
        go.set()
        async with asyncio.timeout(10):
            assert await begun[0] == "a"


@pytest.mark.parametrize("how", ["waiting", "within"])
@pytest.mark.parametrize("turns", [1, 2])
async def test_a_block_that_is_cancelled_begins_no_read(snapshots: Counted, how: str, turns: int) -> None:
    """Nothing is left that nobody waits for, whether its calls have begun or not."""
    async with Outreach.open("memory://") as engine:
        made = await engine.workspaces.create(NewWorkspace(name="a"))
        before, cleaned = snapshots.count, []

        async def reading() -> None:
            try:
                await engine.workspaces.get(made.id)
                await engine.workspaces.get(made.id)
            finally:
                cleaned.append(made.id)

        async def block() -> None:
            async with JoinedReads() as reads:
                reads.start(reading())
                reads.start(reading())
                if how == "within":
                    await asyncio.sleep(3600)

        task = asyncio.create_task(block())
        # The calls begin in the second one, and their read after that.
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        async with asyncio.timeout(10):
            with pytest.raises(asyncio.CancelledError):
                await task
        assert (len(cleaned), snapshots.count) == (2, before)
        gc.collect()


async def test_a_call_is_started_in_vain_after_another_has_failed() -> None:
    """The error of the first one is raised."""
    async with Outreach.open("memory://") as engine:
        made = await engine.workspaces.create(NewWorkspace(name="a"))

        async def failing() -> None:
            raise StorageBusy("Another process writes.")

        async def block() -> None:
            async with asyncio.timeout(10), JoinedReads() as reads:
                reads.start(failing())
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(3600)
                reads.start(engine.workspaces.get(made.id))

        with pytest.raises(StorageBusy):
            await block()
        gc.collect()
