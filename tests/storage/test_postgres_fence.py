"""The fence: without it two processes would decide on the same rows side by side, and both commit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Final

import psycopg
import pytest

from outreach.errors import StorageError
from outreach.ledger.leases import leases
from outreach.ledger.leases.leases import SINGLES, Wanted
from outreach.models.work import DatabaseHome
from outreach.storage.postgres.connect import PostgresConnection
from outreach.storage.postgres.transactions import FencedTransactions
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import NOW, make_worker, make_workspace
from outreach.testing.storage_tables.base_contract import THIS_WORKSPACE
from tests import postgres
from tests.storage.conftest import opened

pytestmark = pytest.mark.anyio

_WAITING: Final = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = '{name}' AND wait_event_type = 'Lock' AND query LIKE '%fence%'
"""


def begin_without_fence(self: FencedTransactions) -> None:
    """Begin a transaction and read the fence, but do not take it."""
    connection: PostgresConnection = self._pool.getconn()
    self._connection = self._session.backend.connection = connection
    cursor = connection.execute("BEGIN; SELECT version FROM fence WHERE id = 1")
    cursor.nextset()
    [(self._version,)] = cursor.fetchall()
    self._session.backend.known_version += 1


def claiming(epoch: int, has_read: threading.Event, go_on: threading.Event) -> Callable[[Transaction], bool]:
    """Return an operation that claims for a worker, and waits before its commit."""
    wanted = Wanted(workspace_id=THIS_WORKSPACE, campaign=None)

    def operation(tx: Transaction) -> bool:
        [granted] = leases.claim_all(tx, [wanted], epoch=epoch, now=NOW)
        has_read.set()
        assert go_on.wait(60)
        return granted is not None

    return operation


@pytest.mark.parametrize(("fenced", "granted"), [(True, 1), (False, 2)], ids=["fence", "no fence"])
async def test_one_worker_is_granted_what_two_ask_for_at_the_same_time(
    url: str, monkeypatch: pytest.MonkeyPatch, *, fenced: bool, granted: int
) -> None:
    """docs/delivery-contract.md#rule-11: with the fence alone; without it both processes get the claim."""
    if not fenced:
        monkeypatch.setattr(FencedTransactions, "begin", begin_without_fence)
    waiting = _WAITING.format(name=url.rpartition("/")[2])
    async with opened(url) as one, opened(url) as two:

        def given(tx: Transaction) -> None:
            tx.workspaces.insert(make_workspace(id=THIS_WORKSPACE))
            for epoch in (1, 2):
                tx.workers.put(make_worker(epoch=epoch, place=epoch))

        await one.write(given)
        read, go_on = [threading.Event(), threading.Event()], threading.Event()
        try:
            async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
                asked = []
                for number, storage in enumerate((one, two)):
                    operation = claiming(number + 1, read[number], go_on)
                    asked.append(tasks.create_task(storage.write(operation)))
                    while not read[number].is_set():
                        [(blocked,)] = await asyncio.to_thread(postgres.server().execute, waiting)
                        if blocked:
                            break
                # The second one has read beside the first, or waits for it.
                go_on.set()
        finally:
            go_on.set()
        assert sum(task.result() for task in asked) == granted
        claim = await one.read(lambda tx: tx.claims.get(THIS_WORKSPACE, SINGLES))
        assert claim is not None
        assert asked[claim.epoch - 1].result()


async def test_transactions_that_wait_for_each_other_are_not_taken_for_restored_rows(url: str) -> None:
    """The fence that one has waited for was written by the other, which it names; so it is after a rollback."""
    home = DatabaseHome(host="here", path="database")

    def failing(tx: Transaction) -> None:
        tx.workspaces.insert(make_workspace(name="Undone"))
        raise ValueError

    async with opened(url) as one, opened(url) as two, opened(url) as three:
        await one.write(lambda tx: tx.leases.set_home(home))
        for _ in range(20):
            writes = [storage.write(lambda _: None) for storage in (one, two, three)]
            undone = [storage.write(failing) for storage in (one, two)]
            answers = await asyncio.gather(*writes, *undone, return_exceptions=True)
            assert [type(answer) for answer in answers] == [type(None)] * 3 + [ValueError] * 2
        postgres.server().execute("VACUUM (FULL, FREEZE) outreach.fence", url.rpartition("/")[2])
        await two.write(lambda _: None)
        assert await one.read(lambda tx: tx.leases.home()) == home
        # Another program's write is found.
        postgres.server().execute("UPDATE outreach.fence SET version = version + 1", url.rpartition("/")[2])
        await two.write(lambda _: None)
        found = await one.read(lambda tx: tx.leases.home())
        assert found is not None
        assert found.state == "restored"


@pytest.mark.parametrize("comes_back", [True, False])
async def test_a_transaction_that_waits_while_the_fence_is_restored_takes_the_restored_one(
    url: str, *, comes_back: bool
) -> None:
    """An update that has waited for a row that was deleted then finds no row, though another one is there by now."""
    name = url.rpartition("/")[2]
    waiting = _WAITING.format(name=name)
    home = DatabaseHome(host="here", path="database")
    async with opened(url) as storage:
        await storage.write(lambda tx: tx.leases.set_home(home))
        with psycopg.connect(url, autocommit=True) as raw:
            with raw.transaction():
                kept = raw.execute("DELETE FROM outreach.fence RETURNING *").fetchall()
                write = asyncio.ensure_future(storage.write(lambda tx: tx.leases.home()))
                async with asyncio.timeout(60):
                    while await asyncio.to_thread(postgres.server().execute, waiting) != [(1,)]:
                        assert not write.done()
                if comes_back:
                    raw.cursor().executemany("INSERT INTO outreach.fence VALUES (%s, %s, %s)", kept)
            if not comes_back:
                with pytest.raises(StorageError, match="FenceMissing: the row of the table fence is missing"):
                    await write
                raw.cursor().executemany("INSERT INTO outreach.fence VALUES (%s, %s, %s)", kept)
        if comes_back:
            await write
        found = await storage.write(lambda tx: tx.leases.home())
        assert found is not None
        assert found.state == "restored"
