"""Operations of different workspaces, which processes run side by side: what they read, and in which order they end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import attrs
import psycopg
import pytest

from outreach.errors import StorageBusy, StorageUnreachable
from outreach.models.states import DispatchState
from outreach.models.work import DatabaseHome, WorkItem, WorkUnit
from outreach.protocols.storage import Operation
from outreach.storage.base import writer
from outreach.storage.postgres import PostgresStorage, pool, transactions
from outreach.storage.postgres.connect import FENCE_KEY, NUMBERS_KEY
from outreach.storage.postgres.transactions import FencedTransactions, fence_key
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import (
    NOW,
    make_agent,
    make_dispatch,
    make_message,
    make_trail_entry,
    make_workspace,
)
from outreach.testing.storage_tables.base_contract import OTHER_WORKSPACE, THIS_WORKSPACE
from tests import postgres
from tests.cutting_proxy import CuttingProxy
from tests.storage.conftest import Gate, Told, append, is_blocked, opened, settle, subjects, within

pytestmark = pytest.mark.anyio

A, B, C = THIS_WORKSPACE, OTHER_WORKSPACE, "0195554e-0000-7000-8000-00000000feed"


@pytest.fixture
async def other(url: str) -> Any:
    """Another process's storage, which has written the workspaces A and B, and where the database is."""

    def given(tx: Transaction) -> None:
        for workspace_id in (A, B):
            tx.workspaces.insert(make_workspace(id=workspace_id, name="written"))
        tx.leases.set_home(DatabaseHome(host="written", path="database"))

    async with opened(url) as made:
        await made.write(given)
        yield made


def change_by_hand(url: str) -> None:
    """Change rows by SQL. No process notices it, so one that returns the new values has read the rows again."""
    with psycopg.connect(url, autocommit=True) as raw:
        raw.execute("UPDATE outreach.workspaces SET name = 'by hand'")
        raw.execute("UPDATE outreach.home SET host = 'by hand'")


def texts(*workspace_ids: str) -> Operation[dict[str, str]]:
    """Return an operation that returns the names of workspaces, and, without one, the database's host."""

    def operation(tx: Transaction) -> dict[str, str]:
        home = tx.leases.home()
        found = [tx.workspaces.get(workspace_id) for workspace_id in workspace_ids]
        return {one.id: one.name for one in found if one is not None} | {"": "" if home is None else home.host}

    return operation


async def read_texts(storage: PostgresStorage, *, for_all: bool) -> dict[str, str]:
    """Return the texts by one operation for all, or by one of each workspace."""
    if for_all:
        return await storage.write(texts(A, B))
    return await storage.write(within({A}, texts(A))) | await storage.write(within({B}, texts(B)))


@pytest.mark.parametrize("then_for_all", [False, True])
@pytest.mark.parametrize("first_for_all", [False, True])
@pytest.mark.parametrize("others", [{A}, {B}, {A, B}, None])
async def test_rows_are_read_again_where_another_process_has_written(
    url: str, other: PostgresStorage, others: set[str] | None, *, first_for_all: bool, then_for_all: bool
) -> None:
    """Rows of the other workspaces are kept. A write for all workspaces may have changed any row."""
    async with opened(url) as storage:
        await read_texts(storage, for_all=first_for_all)
        await other.write(within(others, append("other")))
        change_by_hand(url)
        read_again = {A, B, ""} if others is None else others
        expected = {one: "by hand" if one in read_again else "written" for one in (A, B, "")}
        assert await read_texts(storage, for_all=then_for_all) == expected


@pytest.mark.parametrize("for_all", [False, True])
async def test_a_process_that_has_seen_many_workspaces_reads_more_again(
    url: str, other: PostgresStorage, monkeypatch: pytest.MonkeyPatch, *, for_all: bool
) -> None:
    """It keeps no count of each, and no row that others may have changed."""
    monkeypatch.setattr(transactions, "_MAX_KNOWN", 0)
    async with opened(url) as storage:
        await read_texts(storage, for_all=for_all)
        await other.write(within({A, B}, append("other")))
        change_by_hand(url)
        found = await read_texts(storage, for_all=True)
        assert (found[A], found[B]) == ("by hand", "by hand")
        assert await read_texts(storage, for_all=False) == found


@pytest.mark.parametrize(
    ("first", "second", "is_free", "groups"),
    [({A}, {B}, True, [2]), ({A}, {B}, False, [1, 1]), ({A}, None, True, [1, 1]), (None, {B}, True, [2])],
    ids=["free", "taken", "for all", "within all"],
)
async def test_an_operation_joins_a_group_unless_it_would_wait(
    url: str,
    other: PostgresStorage,
    monkeypatch: pytest.MonkeyPatch,
    first: set[str],
    second: set[str] | None,
    *,
    is_free: bool,
    groups: list[int],
) -> None:
    """For the fence of its workspace: then the group is committed without it."""
    monkeypatch.setattr(writer, "GROUP_SECONDS", 3600.0)
    told, storage = Told(), opened(url)
    storage.observe(told)
    async with asyncio.timeout(60), storage:
        with Gate() as gate, Gate() as taken:
            holding = [] if is_free else [asyncio.create_task(other.write(within(second, taken)))]
            if holding:
                await taken.wait_entered()
            writes = [asyncio.create_task(storage.write(within(first, gate)))]
            await gate.wait_entered()
            writes.append(asyncio.create_task(storage.write(within(second, append("second")))))
            await settle()
            gate.opened.set()
            await writes[0]
            assert is_free or not writes[1].done()
        await asyncio.gather(*writes, *holding)
    assert told.committed == groups


async def test_a_workspace_that_joins_a_group_is_read_as_others_have_left_it(
    url: str, other: PostgresStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And only where they have written."""
    monkeypatch.setattr(writer, "GROUP_SECONDS", 3600.0)
    told, storage = Told(), opened(url)
    storage.observe(told)
    async with asyncio.timeout(60), storage:
        await read_texts(storage, for_all=False)
        with Gate() as gate:
            tasks = [asyncio.create_task(storage.write(within({C}, gate)))]
            await gate.wait_entered()
            await other.write(within({A}, append("other")))
            change_by_hand(url)
            reads = [asyncio.create_task(storage.write(within({one}, texts(one)))) for one in (A, B)]
            await settle()
        found_a, found_b = await asyncio.gather(*reads)
        await asyncio.gather(*tasks)
    assert (found_a[A], found_b[B]) == ("by hand", "written")
    assert told.committed[-1] == 3


async def test_an_operation_at_which_the_connection_is_lost_runs_with_its_group_again(
    url: str, proxy: CuttingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had not begun to run, and is not forgotten."""
    cover, cuts = FencedTransactions.cover, 0

    def cut_once(self: FencedTransactions, workspace_ids: frozenset[str] | None) -> bool:
        nonlocal cuts
        cuts += 1
        if cuts == 1:
            proxy.cut_all()
        return cover(self, workspace_ids)

    monkeypatch.setattr(FencedTransactions, "cover", cut_once)
    monkeypatch.setattr(writer, "GROUP_SECONDS", 3600.0)
    async with asyncio.timeout(60), opened(url.replace(f":{postgres.server().port}/", f":{proxy.port}/")) as storage:
        with Gate() as gate:
            first = asyncio.create_task(storage.write(within({A}, gate)))
            await gate.wait_entered()
            second = asyncio.create_task(storage.write(within({B}, append("second"))))
            await settle()
        await asyncio.gather(first, second)
        assert (gate.runs, await storage.read(subjects)) == (2, ["gate", "second"])


# ------------------------------------------------------------------------------------------------- numbers


def scheduling(workspace_id: str, unit_id: str, then: Callable[[Transaction], object]) -> Operation[None]:
    """Return an operation whose writes are numbered, and which then does something else."""

    def operation(tx: Transaction) -> None:
        tx.work.schedule(WorkUnit("message", workspace_id, unit_id), NOW)
        tx.trail.append(make_trail_entry(workspace_id=workspace_id))
        then(tx)

    return operation


async def numbered(storage: PostgresStorage, url: str) -> list[list[str]]:
    """Return the workspaces of changed units, and of the entries of the trail, in the order of their numbers."""
    changed = await storage.read(lambda tx: tx.work.since(0))
    trail = postgres.server().execute("SELECT workspace_id FROM outreach.trail ORDER BY number", url.rpartition("/")[2])
    return [[it.unit.workspace_id for it in changed], [workspace_id for (workspace_id,) in trail]]


def open_intent(tx: Transaction) -> None:
    """Open a dispatch of a message in workspace A."""
    message = make_message()
    tx.messages.insert(message)
    tx.dispatches.insert(make_dispatch(message_id=message.id))


def query_what_is_pending(tx: Transaction) -> None:
    """Ask for messages while one is not written yet."""
    tx.messages.insert(make_message())
    tx.messages.last_reply(A, "+1", "help")


@pytest.mark.parametrize(
    "then",
    [lambda _: None, lambda tx: tx.agents.insert(make_agent()), open_intent, query_what_is_pending],
    ids=["nothing", "row", "intent", "query"],
)
async def test_numbers_are_in_the_order_of_the_commits(
    url: str, other: PostgresStorage, then: Callable[[Transaction], object]
) -> None:
    """They are drawn at the end, whatever is written before: nobody waits for one that has not ended."""
    async with asyncio.timeout(60), opened(url) as storage:
        with Gate(scheduling(A, "1", then)) as gate:
            first = asyncio.create_task(storage.write(within({A}, gate)))
            await gate.wait_entered()
            await other.write(within({B}, scheduling(B, "2", lambda _: None)))
        await first
        assert await numbered(storage, url) == [[B, A]] * 2


async def test_a_transaction_that_has_drawn_numbers_holds_up_those_that_draw_some(
    url: str, other: PostgresStorage
) -> None:
    """And no others; so it does from where it asks for one."""
    async with asyncio.timeout(60), opened(url) as storage:
        with Gate(scheduling(A, "1", lambda tx: tx.work.last_change())) as gate:
            writes = [asyncio.create_task(storage.write(within({A}, gate)))]
            await gate.wait_entered()
            await other.write(within({B}, lambda tx: tx.agents.insert(make_agent(workspace_id=B))))
            writes.append(asyncio.create_task(other.write(within({B}, scheduling(B, "2", lambda _: None)))))
            while not await asyncio.to_thread(is_blocked, url):
                assert not writes[1].done()
        await asyncio.gather(*writes)
        assert await numbered(storage, url) == [[A, B]] * 2


async def test_a_reader_that_goes_by_change_numbers_misses_nothing(url: str) -> None:
    """While three processes write in workspaces of their own."""
    count = 60

    async def write_in(storage: PostgresStorage, workspace_id: str) -> None:
        for number in range(count):
            await storage.write(within({workspace_id}, scheduling(workspace_id, str(number), lambda _: None)))

    async with asyncio.timeout(60), opened(url) as one, opened(url) as two, opened(url) as three:
        writing = asyncio.gather(*map(write_in, (one, two, three), (A, B, C)))
        found: list[WorkItem] = []
        while len(found) < 3 * count:
            has_ended = writing.done()
            last = found[-1].change if found else 0
            found += await one.read(partial(_since, change=last))
            assert len(found) == 3 * count or not has_ended
        await writing
    assert {tuple(it.unit) for it in found} == {
        ("message", w, str(number)) for w in (A, B, C) for number in range(count)
    }


def _since(tx: Transaction, change: int) -> Iterable[WorkItem]:
    return tx.work.since(change)


# ------------------------------------------------------------------------------------------------- answers


async def test_an_identifier_that_two_workspaces_are_given_at_the_same_time_is_found_by_the_second(
    url: str, other: PostgresStorage
) -> None:
    """It runs again, and once it has found it, it is not refused any more."""
    intents = {}

    def given(tx: Transaction) -> None:
        for workspace_id in (A, B):
            message = make_message(workspace_id=workspace_id)
            intents[workspace_id] = make_dispatch(workspace_id=workspace_id, message_id=message.id)
            tx.messages.insert(message)
            tx.dispatches.insert(intents[workspace_id])

    def answered(workspace_id: str, tx: Transaction) -> list[str]:
        before = [found.workspace_id for found in tx.dispatches.with_provider_id("twilio", "SM1")]
        intent = intents[workspace_id]
        tx.dispatches.update(attrs.evolve(intent, provider_id="SM1", state=DispatchState.ACCEPTED))
        return before

    await other.write(given)
    async with asyncio.timeout(60), opened(url) as storage:
        with Gate(partial(answered, A)) as first, Gate(partial(answered, B)) as second:
            writes = [asyncio.create_task(storage.write(within({A}, first)))]
            writes.append(asyncio.create_task(other.write(within({B}, second))))
            await first.wait_entered()
            await second.wait_entered()
            first.opened.set()
            assert await writes[0] == []
        assert await writes[1] == [A]
    assert (first.runs, second.runs) == (1, 2)


# ------------------------------------------------------------------------------------------------- failures


@pytest.mark.parametrize("bulk_seconds", [30.0, 0.0])
async def test_a_fence_that_stands_still_fails_those_that_need_it(
    url: str, monkeypatch: pytest.MonkeyPatch, bulk_seconds: float
) -> None:
    """All of them together, but for bulk work, which waits for longer; others go on."""
    monkeypatch.setattr(writer, "BULK_SECONDS", bulk_seconds)
    told, storage = Told(), opened(f"{url}?options=-c%20lock_timeout%3D50")
    storage.observe(told)
    async with asyncio.timeout(60), storage:
        with psycopg.connect(url) as raw:
            raw.execute(f"SELECT pg_advisory_xact_lock_shared({FENCE_KEY}), pg_advisory_xact_lock({fence_key(A)})")
            with Gate() as gate:
                others = [asyncio.create_task(storage.write(within({C}, gate)))]
                await gate.wait_entered()
                bulk = asyncio.create_task(storage.write(within({A}, append("bulk")), bulk=True))
                failing = [asyncio.create_task(storage.write(within(ids, append("x")))) for ids in ({A}, {A, B}, None)]
                others.append(asyncio.create_task(storage.write(within({B}, append("other")))))
                await settle()
            answers = await asyncio.gather(*failing, return_exceptions=True)
            assert [type(answer) for answer in answers] == [StorageBusy] * 3
            await asyncio.gather(*others)
            waits = bulk_seconds > 0
            assert [failed for failed in told.failed if failed[0]] == [(3 if waits else 4, "LockNotAvailable")]
        if waits:
            await bulk
        else:
            with pytest.raises(StorageBusy):
                await bulk
        assert await storage.read(subjects) == ["gate", "other", "bulk"][: 3 if waits else 2]


async def test_a_transaction_for_all_that_stands_still_fails_operations_in_all_workspaces_together(url: str) -> None:
    """All wait for the same lock: one timeout fails them all, and no other waits for a timeout of its own."""
    told, storage = Told(), opened(f"{url}?options=-c%20lock_timeout%3D200")
    storage.observe(told)
    async with asyncio.timeout(60), storage:
        with psycopg.connect(url) as raw:
            raw.execute(f"SELECT pg_advisory_xact_lock({FENCE_KEY})")
            failing = [asyncio.create_task(storage.write(within(ids, append("x")))) for ids in ({A}, {B}, {C}, None)]
            answers = await asyncio.gather(*failing, return_exceptions=True)
        assert [type(answer) for answer in answers] == [StorageBusy] * 4
        assert [failed for failed in told.failed if failed[0]] == [(4, "LockNotAvailable")]
        await storage.write(within({A}, append("later")))


async def test_bulk_work_waits_for_the_lock_of_the_numbers_longer_than_other_work(url: str) -> None:
    """The lock is taken at the commit, when the operation has run already."""

    def numbered(workspace_id: str, subject: str) -> Operation[None]:
        def operation(tx: Transaction) -> None:
            append(subject)(tx)
            tx.work.schedule(WorkUnit("message", workspace_id, subject), None)

        return operation

    storage = opened(f"{url}?options=-c%20lock_timeout%3D50")
    async with asyncio.timeout(60), storage:
        with psycopg.connect(url) as raw:
            raw.execute(f"SELECT pg_advisory_xact_lock({NUMBERS_KEY})")
            # As after urgent operations that it let go first: it goes first now, but not again and again.
            assert storage._open is not None
            storage._open.groups._groups_since_bulk = writer.BULK_AFTER_GROUPS
            bulk = asyncio.create_task(storage.write(within({A}, numbered(A, "bulk")), bulk=True))
            with pytest.raises(StorageBusy):
                await storage.write(within({B}, numbered(B, "x")))
            assert not bulk.done()
        await bulk
        assert await storage.read(subjects) == ["bulk"]


async def test_a_server_that_is_away_fails_all_that_wait(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs of all workspaces fail together: each would wait for the same server."""
    queued, asked = threading.Event(), 0

    def away(self: pool.Pool, timeout: float | None = None) -> None:
        nonlocal asked
        assert queued.wait(60)
        asked += 1
        raise psycopg.OperationalError("connection refused")

    async with asyncio.timeout(60), opened(url) as storage:
        with monkeypatch.context() as patched:
            patched.setattr(transactions, "BUSY_SECONDS", 0.0)
            patched.setattr(pool.Pool, "getconn", away)
            writes = [
                asyncio.create_task(storage.write(within(ids, append("away")), bulk=bulk))
                for ids, bulk in (({A}, False), ({B}, False), (None, False), ({C}, True))
            ]
            await settle()
            queued.set()
            answers = await asyncio.gather(*writes, return_exceptions=True)
        assert [type(answer) for answer in answers] == [StorageUnreachable] * 4
        assert asked == 2
        await storage.write(within({A}, append("next")))
        assert await storage.read(subjects) == ["next"]
