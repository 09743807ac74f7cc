"""The contract of transactions: all or nothing, one after the other, also when a caller is cancelled."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final

import anyio
import attrs
import pytest
from anyio import to_thread
from anyio.lowlevel import checkpoint

from outreach.errors import StorageError
from outreach.models.campaign import Campaign, Counters
from outreach.models.states import CampaignStatus, RecipientStatus
from outreach.models.user import LoginFailures
from outreach.models.work import WorkUnit
from outreach.protocols.storage import Storage, Within
from outreach.storage.unit_of_work import AlreadyExists, Transaction
from outreach.testing.builders import (
    NOW,
    make_agent,
    make_audit_entry,
    make_campaign,
    make_dispatch,
    make_message,
    make_prepared,
    make_trail_entry,
    make_trunk,
    make_unsubscribe,
    make_workspace,
    new_id,
)
from outreach.testing.storage_tables.base_contract import (
    OTHER_WORKSPACE,
    THIS_WORKSPACE,
    TICK,
    ContractBase,
    change_recipient,
    given_campaign,
    given_rows,
    pending,
    write_rows,
)

PATIENCE_SECONDS: Final = 0.3
"""How long an operation of these tests gives the storage the opportunity to break a rule."""

LONGEST_SECONDS: Final = 10.0
"""How long these tests wait for an operation to begin: a storage that refuses it must not make them hang."""


class Broken(Exception):
    """The error that an operation of these tests raises."""


def insert_pair(identifier: str) -> Callable[[Transaction], str]:
    """Return an operation that writes to two tables under one identifier."""

    def insert(tx: Transaction) -> str:
        write_rows(tx, make_agent(id=identifier), make_trunk(id=identifier))
        return identifier

    return insert


async def pairs(storage: Storage) -> set[str]:
    """Return the identifiers in the one table, after checking that the other has the same."""

    def read(tx: Transaction) -> tuple[set[str], set[str]]:
        return {agent.id for agent in tx.agents.list(THIS_WORKSPACE)}, {
            trunk.id for trunk in tx.trunks.list(THIS_WORKSPACE)
        }

    agents, trunks = await storage.read(read)
    assert agents == trunks
    return agents


def change_everything(tx: Transaction, campaign: Campaign) -> None:
    """Write to many tables: new rows, changed rows and deleted ones."""
    tx.workspaces.update(make_workspace(id=THIS_WORKSPACE, name="Changed"))
    write_rows(tx, make_agent(), make_unsubscribe(phone="+15550000001", created_at=NOW + TICK))
    tx.register.delete(THIS_WORKSPACE, "+15550000002")
    tx.campaigns.update(attrs.evolve(campaign, name="Changed", status=CampaignStatus.ACTIVE))
    tx.campaigns.add_counters(THIS_WORKSPACE, campaign.id, Counters(total=9))
    change_recipient(tx, campaign.id, 0, status=RecipientStatus.FAILED, reason="x")
    tx.recipients.delete_stopped_since(THIS_WORKSPACE, campaign.id, "sms", NOW + TICK)
    message = make_message()
    write_rows(tx, message, make_dispatch(message_id=message.id))
    tx.work.schedule(WorkUnit("campaign", THIS_WORKSPACE, campaign.id), NOW)
    write_rows(tx, make_audit_entry(), make_trail_entry(campaign_id=campaign.id))


def look_at_everything(tx: Transaction, campaign_id: str) -> list[object]:
    """Return all that `change_everything` changes."""
    return [
        list(tx.workspaces.list()),
        list(tx.agents.list(THIS_WORKSPACE)),
        list(tx.register.list(THIS_WORKSPACE)),
        tx.campaigns.get(THIS_WORKSPACE, campaign_id),
        list(tx.recipients.page(THIS_WORKSPACE, campaign_id)),
        list(tx.recipients.due(THIS_WORKSPACE, campaign_id, NOW, limit=9)),
        tx.recipients.recount(THIS_WORKSPACE, campaign_id),
        list(tx.dispatches.abandoned({99}, limit=9)),
        list(tx.work.since(0)),
        tx.work.last_change(),
        list(tx.audit.list(None)),
        list(tx.trail.between(None, 0, 99)),
        tx.trail.last_number(),
    ]


class TransactionsContract(ContractBase):
    """The rules that hold for every operation."""

    async def test_an_operation_that_raises_undoes_all_that_it_did(self, storage: Storage) -> None:
        """Over many tables, and the error that is raised is the very object."""
        contacts = [make_prepared(phone=f"+1555000000{number}") for number in (1, 2, 3)]
        campaign = await given_campaign(storage, *contacts)
        await given_rows(storage, make_unsubscribe(phone="+15550000002"))
        before = await storage.read(lambda tx: look_at_everything(tx, campaign.id))
        error = Broken()

        def fail(tx: Transaction) -> None:
            change_everything(tx, campaign)
            within = look_at_everything(tx, campaign.id)
            assert all(then != now for then, now in zip(before, within, strict=True))
            raise error

        with pytest.raises(Broken) as caught:
            await storage.write(fail)
        assert caught.value is error
        assert await storage.read(lambda tx: look_at_everything(tx, campaign.id)) == before
        await storage.write(lambda tx: change_everything(tx, campaign))
        after = await storage.read(lambda tx: look_at_everything(tx, campaign.id))
        assert all(then != now for then, now in zip(before, after, strict=True))

    @pytest.mark.parametrize(
        "outside",
        [
            lambda tx, _: tx.agents.insert(make_agent(workspace_id=OTHER_WORKSPACE)),
            lambda tx, _: tx.work.schedule(WorkUnit("message", OTHER_WORKSPACE, new_id()), NOW),
            lambda tx, _: tx.stops.increment(OTHER_WORKSPACE),
            lambda tx, _: tx.login_failures.put(LoginFailures(bucket="address", count=1, last_at=NOW)),
            lambda tx, campaign: tx.recipients.insert(OTHER_WORKSPACE, campaign.id, pending(make_prepared()), now=NOW),
            lambda tx, campaign: tx.campaigns.add_counters(OTHER_WORKSPACE, campaign.id, Counters(total=1)),
        ],
        ids=["a row", "a due time", "a stop", "a row of no workspace", "contacts", "counters"],
    )
    async def test_an_operation_writes_nothing_outside_the_workspaces_that_it_names(
        self, storage: Storage, outside: Callable[[Transaction, Campaign], object]
    ) -> None:
        """Others may be writing there; in the workspaces that it names it writes all of that."""
        campaign = await given_campaign(storage, campaign=make_campaign(workspace_id=OTHER_WORKSPACE))

        def operation(tx: Transaction) -> None:
            tx.agents.insert(make_agent())
            outside(tx, campaign)

        with pytest.raises(StorageError, match="had not named"):
            await storage.write(Within([THIS_WORKSPACE], operation))
        assert await storage.read(lambda tx: list(tx.agents.list(THIS_WORKSPACE))) == []
        await storage.write(operation)
        assert len(await storage.read(lambda tx: list(tx.agents.list(THIS_WORKSPACE)))) == 1

    async def test_an_operation_reads_its_own_writes(self, storage: Storage) -> None:
        """And nobody else's that are not committed."""
        agent = make_agent()

        def write(tx: Transaction) -> list[object]:
            tx.agents.insert(agent)
            tx.agents.update(attrs.evolve(agent, name="New"))
            return [tx.agents.get(THIS_WORKSPACE, agent.id), list(tx.agents.list(THIS_WORKSPACE))]

        changed = attrs.evolve(agent, name="New")
        assert await storage.write(write) == [changed, [changed]]
        assert await storage.read(lambda tx: tx.agents.get(THIS_WORKSPACE, agent.id)) == changed

    async def test_one_that_raises_undoes_nothing_of_the_others(self, storage: Storage) -> None:
        """Also when many wait at the same time."""
        outcomes: dict[str, str] = {}

        async def run(identifier: str, *, fails: bool) -> None:
            def operation(tx: Transaction) -> None:
                insert_pair(identifier)(tx)
                if fails:
                    raise Broken

            try:
                await storage.write(operation)
                outcomes[identifier] = "kept"
            except Broken:
                outcomes[identifier] = "undone"

        async with anyio.create_task_group() as group:
            for number in range(40):
                group.start_soon(partial(run, new_id(), fails=number % 2 == 1))
        assert sorted(outcomes.values()) == ["kept"] * 20 + ["undone"] * 20
        assert await pairs(storage) == {key for key, outcome in outcomes.items() if outcome == "kept"}

    async def test_a_refused_write_that_is_caught_leaves_the_rest(self, storage: Storage) -> None:
        """An operation may go on after AlreadyExists and LookupError."""
        agent, trunk = make_agent(), make_trunk()

        def write(tx: Transaction) -> None:
            tx.agents.insert(agent)
            with pytest.raises(AlreadyExists):
                tx.agents.insert(agent)
            with pytest.raises(LookupError):
                tx.agents.update(make_agent())
            tx.trunks.insert(trunk)

        await storage.write(write)
        assert await storage.read(lambda tx: tx.agents.list(THIS_WORKSPACE)) == [agent]
        assert await storage.read(lambda tx: tx.trunks.list(THIS_WORKSPACE)) == [trunk]

    async def test_a_hundred_writes_at_once_are_all_kept(self, storage: Storage) -> None:
        """Each sees what the ones before it did: none is lost, and each gets its own answer."""
        campaign = await given_campaign(storage)
        seen: list[int] = []

        async def add() -> None:
            counters = await storage.write(
                lambda tx: tx.campaigns.add_counters(THIS_WORKSPACE, campaign.id, Counters(total=1))
            )
            seen.append(counters.total)

        async with anyio.create_task_group() as group:
            for _ in range(100):
                group.start_soon(add)
        assert sorted(seen) == list(range(1, 101))
        after = await storage.read(lambda tx: tx.campaigns.get(THIS_WORKSPACE, campaign.id))
        assert after is not None
        assert after.counters == Counters(total=100)

    @pytest.mark.parametrize("patience", range(6))
    async def test_a_caller_that_is_cancelled_leaves_all_or_nothing(self, storage: Storage, patience: int) -> None:
        """Whenever it goes away, no operation is done by halves, and the storage goes on."""
        answered: set[str] = set()
        asked: set[str] = set()

        async def run() -> None:
            identifier = new_id()
            asked.add(identifier)
            answered.add(await storage.write(insert_pair(identifier)))

        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(run)
            for _ in range(patience):
                await checkpoint()
            group.cancel_scope.cancel()
        last = await storage.write(insert_pair(new_id()))
        assert answered | {last} <= await pairs(storage) <= asked | {last}

    async def test_no_operation_enters_while_that_of_a_cancelled_caller_runs(self, storage: Storage) -> None:
        """In a thread of the storage it goes on for a while: the next operation sees all that it does, or nothing."""
        of_test = threading.get_ident()
        entered, next_entered = threading.Event(), threading.Event()
        identifier = new_id()

        def slow(tx: Transaction) -> None:
            running.append(identifier)
            tx.agents.insert(make_agent(id=identifier))
            entered.set()
            if threading.get_ident() != of_test:
                next_entered.wait(PATIENCE_SECONDS)
            tx.trunks.insert(make_trunk(id=identifier))
            running.clear()

        def enter(tx: Transaction) -> str:
            overlaps.extend(running)
            next_entered.set()
            return insert_pair(new_id())(tx)

        async def cancel() -> None:
            await to_thread.run_sync(entered.wait, LONGEST_SECONDS)
            group.cancel_scope.cancel()

        async def run_next() -> None:
            await to_thread.run_sync(entered.wait, LONGEST_SECONDS)
            kept.append(await storage.write(enter))

        running: list[str] = []
        overlaps: list[str] = []
        kept: list[str] = []
        async with anyio.create_task_group() as others:
            others.start_soon(run_next)
            async with anyio.create_task_group() as group:
                group.start_soon(cancel)
                await storage.write(slow)
        assert overlaps == []
        assert set(kept) <= await pairs(storage) <= {*kept, identifier}

    async def test_bulk_operations_let_the_others_go_first(self, storage: Storage) -> None:
        """One that is requested after many bulk ones does not wait for all of them."""
        order: list[str] = []
        before_urgent = 0

        def bulk(tx: Transaction) -> None:
            time.sleep(0.005)
            tx.agents.insert(make_agent())
            order.append("bulk")

        def urgent(tx: Transaction) -> None:
            tx.agents.insert(make_agent())
            order.append("urgent")

        async def run_bulk() -> None:
            await storage.write(bulk, bulk=True)

        async def run_urgent() -> None:
            # By now some may be done: this task may have been kept from the processor.
            nonlocal before_urgent
            before_urgent = len(order)
            await storage.write(urgent)

        async with anyio.create_task_group() as group:
            for _ in range(30):
                group.start_soon(run_bulk)
            group.start_soon(run_urgent)
        assert order.count("bulk") == 30
        assert order.index("urgent") - before_urgent < 15

    async def test_a_read_holds_every_committed_write(
        self, storage: Storage, open_storage: Callable[[], Storage]
    ) -> None:
        """Also through another opening of the same database."""
        async with open_storage() as other:
            for _ in range(10):
                identifier = await storage.write(insert_pair(new_id()))
                assert identifier in await pairs(storage)
                assert identifier in await pairs(other)

    async def test_a_write_sees_what_another_opening_has_committed(
        self, storage: Storage, open_storage: Callable[[], Storage]
    ) -> None:
        """Also in rows that it has cached: a worker that missed a pause or a change of hours would send."""
        campaign = await given_campaign(storage)

        def look(tx: Transaction) -> list[object]:
            return [tx.workspaces.get(THIS_WORKSPACE), tx.campaigns.get(THIS_WORKSPACE, campaign.id)]

        def rename(tx: Transaction, name: str) -> list[object]:
            tx.workspaces.update(make_workspace(id=THIS_WORKSPACE, name=name))
            tx.campaigns.update(attrs.evolve(campaign, name=name))
            return look(tx)

        async with open_storage() as other:
            await other.write(look)
            for number, (one, another) in enumerate([(storage, other), (other, storage)] * 2):
                changed = await one.write(partial(rename, name=f"Name {number}"))
                assert await another.write(look) == changed

    async def test_a_read_sees_one_snapshot(self, storage: Storage, open_storage: Callable[[], Storage]) -> None:
        """What another opening commits meanwhile is not in its later queries."""
        of_test = threading.get_ident()
        looked, committed = threading.Event(), threading.Event()

        def look_twice(tx: Transaction) -> list[list[str]]:
            before = [agent.id for agent in tx.agents.list(THIS_WORKSPACE)]
            looked.set()
            # Where reads and writes take turns, the commit comes later.
            if threading.get_ident() != of_test:
                committed.wait(PATIENCE_SECONDS)
            return [before, [agent.id for agent in tx.agents.list(THIS_WORKSPACE)]]

        async def commit() -> None:
            await to_thread.run_sync(looked.wait, LONGEST_SECONDS)
            await other.write(insert_pair(new_id()))
            committed.set()

        async with open_storage() as other, anyio.create_task_group() as group:
            group.start_soon(commit)
            before, after = await storage.read(look_twice)
        assert before == after
        assert len(await pairs(storage)) == 1

    async def test_a_thousand_rows_are_written_and_read_at_once(self, storage: Storage) -> None:
        """None is missing, whether the rows are written or read in one go."""
        messages = [make_message() for _ in range(1000)]

        def read(tx: Transaction) -> list[object]:
            tx.messages.prefetch((THIS_WORKSPACE, message.id) for message in messages)
            return [tx.messages.get(THIS_WORKSPACE, message.id) for message in messages]

        await given_rows(storage, *messages)
        assert await storage.read(read) == messages

    async def test_a_read_refuses_to_write(self, storage: Storage) -> None:
        """It raises StorageError and changes nothing; the next write works."""

        def write(tx: Transaction) -> None:
            tx.agents.insert(make_agent())

        with pytest.raises(StorageError):
            await storage.read(write)
        assert await pairs(storage) == set()
        await storage.write(insert_pair(new_id()))
        assert len(await pairs(storage)) == 1

    async def test_a_read_raises_what_its_operation_raises(self, storage: Storage) -> None:
        """The very object, and the next read works."""
        error = Broken()

        def fail(tx: Transaction) -> None:
            tx.agents.list(THIS_WORKSPACE)
            raise error

        with pytest.raises(Broken) as caught:
            await storage.read(fail)
        assert caught.value is error
        assert await pairs(storage) == set()

    async def test_closing_finishes_what_was_queued(self, open_storage: Callable[[], Storage]) -> None:
        """Every operation queued before is answered, and its data is there when the database is opened again."""
        answered: set[str] = set()

        async def run() -> None:
            answered.add(await storage.write(insert_pair(new_id())))

        async with anyio.create_task_group() as group, open_storage() as storage:
            await given_rows(storage, make_workspace(id=THIS_WORKSPACE))
            for _ in range(10):
                group.start_soon(run)
            await checkpoint()
        assert len(answered) == 10
        async with open_storage() as again:
            assert await pairs(again) == answered

    async def test_an_opened_database_holds_what_the_last_one_left(self, open_storage: Callable[[], Storage]) -> None:
        """Close and open: every committed write is there, and no other."""
        async with open_storage() as storage:
            await given_rows(storage, make_workspace(id=THIS_WORKSPACE))
            kept = await storage.write(insert_pair(new_id()))

            def fail(tx: Transaction) -> None:
                insert_pair(new_id())(tx)
                raise Broken

            with pytest.raises(Broken):
                await storage.write(fail)
        async with open_storage() as again:
            assert await pairs(again) == {kept}
