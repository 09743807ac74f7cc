"""The fence: without it two processes would decide on the same rows side by side, and both commit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import attrs
import psycopg
import pytest

from outreach.errors import StorageError
from outreach.ledger.leases import leases
from outreach.ledger.leases.leases import SINGLES, Wanted
from outreach.models.work import DatabaseHome
from outreach.protocols.storage import Within
from outreach.storage.postgres import postgres_storage_from_url, transactions
from outreach.storage.postgres.connect import PostgresConnection
from outreach.storage.postgres.transactions import FencedTransactions
from outreach.storage.unit_of_work import Transaction
from outreach.storage.unit_of_work.kinds import everything_changed
from outreach.testing.builders import NOW, make_dispatch, make_message, make_worker, make_workspace
from outreach.testing.clock import ManualClock
from outreach.testing.storage_tables.base_contract import OTHER_WORKSPACE, THIS_WORKSPACE
from tests import postgres
from tests.storage.conftest import Gate, append, is_blocked, opened, subjects, within

pytestmark = pytest.mark.anyio

A, B, C = THIS_WORKSPACE, OTHER_WORKSPACE, "0195554e-0000-7000-8000-00000000feed"


def begin_without_fence(self: FencedTransactions, workspace_ids: frozenset[str] | None = None) -> None:
    """Begin a transaction, but take no fence."""
    connection: PostgresConnection = self._pool.getconn()
    self._connection = self._session.backend.connection = connection
    connection.execute("BEGIN")
    self._session.backend.changed = everything_changed


def claiming(epoch: int, has_read: threading.Event, go_on: threading.Event) -> Callable[[Transaction], bool]:
    """Return an operation that claims for a worker, and waits before its commit."""
    wanted = Wanted(workspace_id=THIS_WORKSPACE, campaign=None)

    def operation(tx: Transaction) -> bool:
        [granted] = leases.claim_all(tx, [wanted], epoch=epoch, now=NOW)
        has_read.set()
        assert go_on.wait(60)
        return granted is not None

    return operation


@pytest.mark.parametrize("workspace_ids", [None, {A}], ids=["for all", "within"])
@pytest.mark.parametrize(("fenced", "granted"), [(True, 1), (False, 2)], ids=["fence", "no fence"])
async def test_one_worker_is_granted_what_two_ask_for_at_the_same_time(
    url: str, monkeypatch: pytest.MonkeyPatch, workspace_ids: set[str] | None, *, fenced: bool, granted: int
) -> None:
    """docs/delivery-contract.md#rule-11: with the fence alone; without it both processes get the claim."""
    if not fenced:
        monkeypatch.setattr(FencedTransactions, "begin", begin_without_fence)
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
                    operation = within(workspace_ids, claiming(number + 1, read[number], go_on))
                    asked.append(tasks.create_task(storage.write(operation)))
                    while not (read[number].is_set() or await asyncio.to_thread(is_blocked, url)):
                        pass
                # The second one has read beside the first, or waits for it.
                go_on.set()
        finally:
            go_on.set()
        assert sum(task.result() for task in asked) == granted
        claim = await one.read(lambda tx: tx.claims.get(THIS_WORKSPACE, SINGLES))
        assert claim is not None
        assert asked[claim.epoch - 1].result()


@pytest.mark.parametrize(
    ("first", "second", "side_by_side"),
    [
        ({A}, {B}, True),
        ({A}, {A}, False),
        ({A, B}, {B, C}, False),
        ({A}, None, False),
        (None, {A}, False),
    ],
)
async def test_transactions_wait_for_each_other_if_they_may_write_in_the_same_workspace(
    url: str, first: set[str] | None, second: set[str] | None, *, side_by_side: bool
) -> None:
    """Others run at the same time, in two processes."""
    async with asyncio.timeout(60), opened(url) as one, opened(url) as two:
        with Gate() as before, Gate() as after:
            writes = [asyncio.create_task(one.write(within(first, before)))]
            await before.wait_entered()
            writes.append(asyncio.create_task(two.write(within(second, after))))
            while not (after.entered.is_set() or await asyncio.to_thread(is_blocked, url)):
                pass
            assert after.entered.is_set() == side_by_side
        await asyncio.gather(*writes)


@pytest.mark.parametrize("workspace_ids", [None, {A}], ids=["for all", "within"])
async def test_transactions_that_wait_for_each_other_are_not_taken_for_restored_rows(
    url: str, workspace_ids: set[str] | None
) -> None:
    """The fence that one has waited for was written by the other, which it names; so it is after a rollback."""
    home = DatabaseHome(host="here", path="database")

    def failing(tx: Transaction) -> None:
        tx.workspaces.insert(make_workspace(name="Undone"))
        raise ValueError

    nothing = within(workspace_ids, lambda _: None)
    async with opened(url) as one, opened(url) as two, opened(url) as three:
        await one.write(lambda tx: tx.leases.set_home(home))
        for _ in range(20):
            writes = [storage.write(nothing) for storage in (one, two, three)]
            undone = [storage.write(within(workspace_ids, failing)) for storage in (one, two)]
            answers = await asyncio.gather(*writes, *undone, return_exceptions=True)
            assert [type(answer) for answer in answers] == [type(None)] * 3 + [ValueError] * 2
        postgres.server().execute("VACUUM (FULL, FREEZE) outreach.fence", url.rpartition("/")[2])
        await two.write(nothing)
        assert await one.read(lambda tx: tx.leases.home()) == home
        # Another program's write is found.
        postgres.server().execute("UPDATE outreach.fence SET version = version + 1", url.rpartition("/")[2])
        await two.write(nothing)
        found = await one.read(lambda tx: tx.leases.home())
        assert found is not None
        assert found.state == "restored"


@pytest.mark.parametrize("comes_back", [True, False])
async def test_a_transaction_that_waits_while_the_fence_is_restored_takes_the_restored_one(
    url: str, *, comes_back: bool
) -> None:
    """An update that has waited for a row that was deleted then finds no row, though another one is there by now."""
    home = DatabaseHome(host="here", path="database")
    async with opened(url) as storage:
        await storage.write(lambda tx: tx.leases.set_home(home))
        with psycopg.connect(url, autocommit=True) as raw:
            with raw.transaction():
                kept = raw.execute("DELETE FROM outreach.fence RETURNING *").fetchall()
                write = asyncio.ensure_future(storage.write(lambda tx: tx.leases.home()))
                async with asyncio.timeout(60):
                    while not await asyncio.to_thread(is_blocked, url):
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


@pytest.mark.parametrize("covers", [False, True])
async def test_an_identifier_that_another_workspace_stores_meanwhile_is_found(url: str, *, covers: bool) -> None:
    """Also where the transaction then covers that workspace, whose rows it would take for its own."""
    made = {
        one: make_dispatch(workspace_id=one, campaign_id=None, position=None, message_id=f"M-{one}")
        for one in (THIS_WORKSPACE, OTHER_WORKSPACE)
    }
    found: dict[str, list[int]] = {one: [] for one in made}
    has_read, go_on = threading.Event(), threading.Event()

    def given(tx: Transaction) -> None:
        for one, dispatch in made.items():
            tx.workspaces.insert(make_workspace(id=one))
            tx.messages.insert(make_message(id=f"M-{one}", workspace_id=one))
            tx.dispatches.insert(dispatch)

    def storing(workspace_id: str) -> Within[None]:
        def operation(tx: Transaction) -> None:
            others = tx.dispatches.with_provider_id("twilio", "X")
            found[workspace_id].append(len(others))
            if workspace_id == THIS_WORKSPACE and not go_on.is_set():
                has_read.set()
                assert go_on.wait(60)
            if not others:
                tx.dispatches.update(attrs.evolve(made[workspace_id], provider_id="X"))

        return Within([workspace_id], operation)

    async with postgres_storage_from_url(url, clock=ManualClock()) as one, opened(url) as two:
        await one.write(given)
        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            tasks.create_task(one.write(storing(THIS_WORKSPACE)))
            if covers:
                tasks.create_task(one.write(Within([OTHER_WORKSPACE], lambda _: None)))
            try:
                await asyncio.to_thread(has_read.wait, 60)
                await two.write(storing(OTHER_WORKSPACE))
            finally:
                go_on.set()
    assert found == {THIS_WORKSPACE: [0, 1], OTHER_WORKSPACE: [0]}


async def test_a_transaction_of_a_workspace_needs_the_fence_too(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its row nothing is written; with a restored one the database is marked."""
    monkeypatch.setattr(transactions, "BUSY_SECONDS", 0.0)
    home = DatabaseHome(host="here", path="database")
    async with opened(url) as storage:
        await storage.write(lambda tx: tx.leases.set_home(home))
        with psycopg.connect(url, autocommit=True) as raw:
            kept = raw.execute("DELETE FROM outreach.fence RETURNING *").fetchall()
            with pytest.raises(StorageError, match="FenceMissing: the row of the table fence is missing"):
                await storage.write(within({A}, append("lost")))
            raw.cursor().executemany("INSERT INTO outreach.fence VALUES (%s, %s, %s)", kept)
        await storage.write(within({A}, append("kept")))
        assert await storage.read(subjects) == ["kept"]
        found = await storage.read(lambda tx: tx.leases.home())
        assert found is not None
        assert found.state == "restored"
