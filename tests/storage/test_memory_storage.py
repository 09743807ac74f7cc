"""The memory storage keeps the contract, and what is special to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from outreach.errors import StorageError
from outreach.models.settings import TimeWindow
from outreach.protocols.storage import Storage
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import (
    WORKSPACE_ID,
    make_agent,
    make_business_hours,
    make_campaign,
    make_workspace,
)
from outreach.testing.storage_contract import StorageContract
from outreach.testing.storage_tables.base_contract import publish


@pytest.mark.anyio
class TestMemoryStorage(StorageContract):
    """The contract."""

    @pytest.fixture
    def open_storage(self) -> Callable[[], Storage]:
        """Return the same storage each time: the object is the database."""
        storage = MemoryStorage()
        return lambda: storage


def test_no_part_of_the_contract_hides_a_test_of_another() -> None:
    """The suite is put together from parts: each test's name is in one of them only."""
    names = Counter(name for part in StorageContract.__mro__ for name in vars(part) if name.startswith("test_"))
    assert names
    assert [name for name, count in names.items() if count > 1] == []


@pytest.mark.anyio
async def test_a_storage_that_is_not_open_refuses_everything() -> None:
    """Before it is opened, and after the last one who uses it has closed it."""
    storage = MemoryStorage()

    async def assert_refused() -> None:
        with pytest.raises(StorageError, match="not open"):
            await storage.write(lambda tx: tx.workspaces.insert(make_workspace()))
        with pytest.raises(StorageError, match="not open"):
            await storage.read(lambda tx: tx.workspaces.list())

    await assert_refused()
    async with storage:
        async with storage:
            pass
        await storage.write(lambda tx: tx.workspaces.insert(make_workspace()))
    await assert_refused()


@pytest.mark.anyio
async def test_two_storages_share_nothing() -> None:
    """Neither data nor lock."""
    async with MemoryStorage() as one, MemoryStorage() as two:
        await one.write(lambda tx: tx.workspaces.insert(make_workspace()))
        assert list(await two.read(lambda tx: tx.workspaces.list())) == []
        assert await one.lock.acquire()
        assert await two.lock.acquire()


def test_memory_is_at_home_nowhere() -> None:
    """There is no place that a copy of it could be taken to."""
    assert MemoryStorage().lock.home() is None


@pytest.mark.anyio
async def test_every_operation_lets_others_run_first() -> None:
    """Reads and writes yield once, as those of a real database do."""
    async with MemoryStorage() as storage:
        for ask in (storage.read, storage.write):
            ran: list[str] = []

            async def other(ran: list[str] = ran) -> None:
                ran.append("other")

            async with anyio.create_task_group() as group:
                group.start_soon(other)
                await ask(lambda _, ran=ran: ran.append("operation"))  # type: ignore[misc]
            assert ran == ["other", "operation"]


@pytest.mark.anyio
async def test_a_caller_that_was_cancelled_before_does_nothing() -> None:
    """Cancellation comes before an operation, never within or after it."""
    async with MemoryStorage() as storage:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await storage.write(lambda tx: tx.workspaces.insert(make_workspace()))
        assert scope.cancelled_caught
        assert list(await storage.read(lambda tx: tx.workspaces.list())) == []

        def insert_and_cancel(tx: Transaction) -> str:
            tx.workspaces.insert(make_workspace())
            scope.cancel()
            return "done"

        with anyio.CancelScope() as scope:
            assert await storage.write(insert_and_cancel) == "done"
        assert len(await storage.read(lambda tx: tx.workspaces.list())) == 1


@pytest.mark.anyio
async def test_a_transaction_that_has_ended_refuses_writes() -> None:
    """One that leaks out of its operation cannot change anything any more."""
    leaked: list[Transaction] = []
    async with MemoryStorage() as storage:
        await storage.write(leaked.append)
        with pytest.raises(StorageError, match="only read"):
            leaked[0].workspaces.insert(make_workspace())
        assert list(await storage.read(lambda tx: tx.workspaces.list())) == []


@pytest.mark.anyio
async def test_even_an_interrupt_undoes_the_operation() -> None:
    """What is no Exception undoes as well."""

    def interrupt(tx: Transaction) -> None:
        tx.agents.insert(make_agent())
        raise GeneratorExit

    async with MemoryStorage() as storage:
        await storage.write(lambda tx: tx.workspaces.insert(make_workspace()))
        with pytest.raises(GeneratorExit):
            await storage.write(interrupt)
        assert list(await storage.read(lambda tx: tx.agents.list(WORKSPACE_ID))) == []


@pytest.mark.anyio
async def test_business_hours_are_nobody_elses_to_change() -> None:
    """The schedule is copied when it is written and when it is read."""
    schedule: dict[str, tuple[TimeWindow, ...]] = {"monday": ()}
    campaign = make_campaign(business_hours=make_business_hours(schedule=schedule))
    async with MemoryStorage() as storage:
        await storage.write(lambda tx: tx.workspaces.insert(make_workspace()))
        await storage.write(lambda tx: publish(tx, campaign))
        schedule["tuesday"] = ()
        for _ in range(2):
            read: Any = await storage.read(lambda tx: tx.campaigns.get(WORKSPACE_ID, campaign.id))
            assert read.business_hours == make_business_hours(schedule={"monday": ()})
            read.business_hours.schedule.clear()


@pytest.mark.anyio
async def test_a_bulk_operation_waits_for_those_that_come_meanwhile() -> None:
    """Others that keep coming go first; once they are done, it runs."""
    order: list[str] = []
    async with MemoryStorage() as storage:

        async def bulk() -> None:
            await storage.write(lambda _: order.append("bulk"), bulk=True)

        async def chain() -> None:
            for _ in range(3):
                await storage.write(lambda _: order.append("urgent"))

        async with anyio.create_task_group() as group:
            group.start_soon(bulk)
            group.start_soon(chain)
            await checkpoint()
    assert order == ["urgent"] * 3 + ["bulk"]
