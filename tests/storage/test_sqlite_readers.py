from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from outreach.errors import StorageError
from outreach.protocols.storage import OneQuery
from outreach.storage.sqlite import SqliteStorage
from outreach.storage.unit_of_work import Transaction
from outreach.storage.unit_of_work.kinds import ALL_WORKSPACES
from tests.storage.sqlite_support import appending, opened, subjects

pytestmark = pytest.mark.anyio


class Hold:
    """A read that takes its snapshot, then stays until it is let go."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.opened = threading.Event()

    def __call__(self, tx: Transaction) -> tuple[list[str], list[str]]:
        """Read, wait, read again."""
        before = subjects(tx)
        self.entered.set()
        assert self.opened.wait(10)
        return before, subjects(tx)


async def test_a_read_is_one_snapshot(sqlite_storage: SqliteStorage) -> None:
    """Writes beside it go through and are not seen by it."""
    hold = Hold()
    task = asyncio.create_task(sqlite_storage.read(hold))
    await asyncio.to_thread(hold.entered.wait, 10)
    with anyio.fail_after(10):
        await sqlite_storage.write(appending("new"))
    hold.opened.set()
    assert await task == ([], [])
    assert await sqlite_storage.read(subjects) == ["new"]


async def test_a_long_read_leaves_the_others_a_connection(sqlite_storage: SqliteStorage) -> None:
    """One read that takes long delays no other."""
    hold = Hold()
    task = asyncio.create_task(sqlite_storage.read(hold))
    await asyncio.to_thread(hold.entered.wait, 10)
    with anyio.fail_after(10):
        for _ in range(5):
            assert await sqlite_storage.read(subjects) == []
    hold.opened.set()
    await task


async def test_reads_that_wait_are_served_in_turn(sqlite_storage: SqliteStorage) -> None:
    """First come, first served, when every connection is busy."""
    holds = [Hold(), Hold()]
    busy = [asyncio.create_task(sqlite_storage.read(hold)) for hold in holds]
    for hold in holds:
        await asyncio.to_thread(hold.entered.wait, 10)
    order: list[int] = []

    def noting(number: int) -> Callable[[Transaction], None]:
        return lambda _: order.append(number)

    waiting = [asyncio.create_task(sqlite_storage.read(noting(number))) for number in range(10)]
    await asyncio.sleep(0)
    holds[0].opened.set()
    await asyncio.gather(*waiting)
    holds[1].opened.set()
    await asyncio.gather(*busy)
    assert order == list(range(10))


async def test_one_query_waits_for_no_long_reads(sqlite_storage: SqliteStorage) -> None:
    """It sees what was committed last."""
    holds = [Hold(), Hold()]
    busy = [asyncio.create_task(sqlite_storage.read(hold)) for hold in holds]
    for hold in holds:
        await asyncio.to_thread(hold.entered.wait, 10)
    with anyio.fail_after(5):
        before = await sqlite_storage.read(OneQuery(lambda tx: tx.stops.count(ALL_WORKSPACES)))
        await sqlite_storage.write(lambda tx: tx.stops.increment(ALL_WORKSPACES))
        assert await sqlite_storage.read(OneQuery(lambda tx: tx.stops.count(ALL_WORKSPACES))) == before + 1
    for hold in holds:
        hold.opened.set()
    await asyncio.gather(*busy)


async def test_one_query_waits_where_it_cannot_be_read_at_once(sqlite_storage: SqliteStorage) -> None:
    """Such as while the log is being repaired; and it writes nothing on either way."""
    count = OneQuery(lambda tx: tx.stops.count(ALL_WORKSPACES))
    with pytest.raises(StorageError, match="may only read"):
        await sqlite_storage.read(OneQuery(lambda tx: tx.stops.increment(ALL_WORKSPACES)))
    before = await sqlite_storage.read(count)
    assert sqlite_storage._quick_reader is not None
    sqlite_storage._quick_reader.connection.close()
    assert await sqlite_storage.read(count) == before
    with pytest.raises(StorageError, match="may only read"):
        await sqlite_storage.read(OneQuery(lambda tx: tx.stops.increment(ALL_WORKSPACES)))


async def test_a_cancelled_read_gives_its_connection_back(sqlite_storage: SqliteStorage) -> None:
    """However many callers go away, reading goes on."""
    holds = [Hold(), Hold()]
    busy = [asyncio.create_task(sqlite_storage.read(hold)) for hold in holds]
    for hold in holds:
        await asyncio.to_thread(hold.entered.wait, 10)
    for task in busy:
        task.cancel()
    waiting = asyncio.create_task(sqlite_storage.read(subjects))
    for hold in holds:
        hold.opened.set()
    with anyio.fail_after(10):
        assert await waiting == []
    results = await asyncio.gather(*busy, return_exceptions=True)
    assert all(isinstance(result, asyncio.CancelledError) for result in results)


async def test_no_snapshot_stays_behind(sqlite_storage: SqliteStorage, database: Path) -> None:
    """After a read the log can be taken into the file: nobody holds on to it."""
    await sqlite_storage.write(appending("one"))
    await asyncio.gather(*(sqlite_storage.read(subjects) for _ in range(4)))
    with pytest.raises(ValueError, match="mine"):
        await sqlite_storage.read(_fail)
    with opened(database) as other:
        busy, _, _ = other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert busy == 0


def _fail(tx: Transaction) -> None:
    subjects(tx)
    raise ValueError("mine")
