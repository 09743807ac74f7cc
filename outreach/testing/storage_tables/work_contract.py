"""The contract of the work feed, leases, runs and the dispatch lock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import attrs

from outreach.models.states import CallStatus, MessageStatus
from outreach.models.work import Claim, DatabaseHome, HighWaterMark, WorkItem, WorkUnit
from outreach.protocols.storage import Storage
from outreach.storage.unit_of_work import Transaction
from outreach.storage.unit_of_work.kinds import ALL_WORKSPACES
from outreach.testing.builders import (
    NOW,
    make_agent,
    make_call,
    make_campaign,
    make_lease,
    make_message,
    make_run,
    make_worker,
    new_id,
)
from outreach.testing.storage_tables.base_contract import (
    MAX_INTEGER,
    OTHER_WORKSPACE,
    THIS_WORKSPACE,
    TICK,
    ContractBase,
    as_key,
    awkward_moments,
    awkward_texts,
    given_campaign,
    given_rows,
)

CAMPAIGN: Final = WorkUnit("campaign", THIS_WORKSPACE, new_id())
CALL: Final = WorkUnit("call", THIS_WORKSPACE, new_id())
MESSAGE: Final = WorkUnit("message", OTHER_WORKSPACE, new_id())


async def change_of(storage: Storage, unit: WorkUnit, due_at: datetime | None) -> int:
    """Schedule a unit; return the number of that change."""
    await storage.write(lambda tx: tx.work.schedule(unit, due_at))
    work = await storage.read(lambda tx: tx.work.get(unit))
    assert work is not None
    return work.change


class WorkContract(ContractBase):
    """Due work, the workers that do it, and the state that dispatching keeps."""

    async def test_a_new_database_has_no_work(self, database: Storage) -> None:
        """The highest change number is 0, and nothing has changed since."""

        def look(tx: Transaction) -> None:
            assert tx.work.last_change() == 0
            assert tx.work.get(CAMPAIGN) is None
            assert list(tx.work.due()) == []
            assert list(tx.work.since(0)) == []
            assert tx.leases.current() is None
            assert tx.leases.home() is None
            assert tx.runs.get(THIS_WORKSPACE, CAMPAIGN.id) is None

        await database.read(look)

    @awkward_moments
    async def test_each_touch_has_a_higher_number(self, storage: Storage, moment: datetime) -> None:
        """A unit keeps its last due time and the number of that change."""
        numbers = [await change_of(storage, CALL, due) for due in (NOW, None, moment)]
        assert numbers == sorted(set(numbers))
        assert numbers[0] > 0
        assert await storage.read(lambda tx: tx.work.last_change()) == numbers[-1]
        expected = WorkItem(unit=CALL, due_at=moment, change=numbers[-1])
        assert await storage.read(lambda tx: tx.work.get(CALL)) == expected
        assert await storage.read(lambda tx: list(tx.work.since(0))) == [expected]

    async def test_the_single_message_or_call_that_is_due_longest_is_found(self, storage: Storage) -> None:
        """Queued, of one workspace or of all: not a campaign, what is due later or not at all, or a call under way."""
        agent = make_agent()

        def call(tx: Transaction, due: datetime | None, status: CallStatus = CallStatus.QUEUED) -> None:
            made = make_call(agent_id=agent.id, status=status)
            tx.calls.insert(made)
            tx.work.schedule(CALL._replace(id=made.id), due)

        def message(tx: Transaction, due: datetime, status: MessageStatus = MessageStatus.QUEUED) -> None:
            made = make_message(workspace_id=OTHER_WORKSPACE, status=status)
            tx.messages.insert(made)
            tx.work.schedule(MESSAGE._replace(id=made.id), due)

        def schedule(tx: Transaction) -> None:
            tx.agents.insert(agent)
            tx.work.schedule(CAMPAIGN, NOW - 9 * TICK)
            for status in set(CallStatus) - {CallStatus.QUEUED}:
                call(tx, NOW - 8 * TICK, status)
            for other in set(MessageStatus) - {MessageStatus.QUEUED}:
                message(tx, NOW - 8 * TICK, other)
            call(tx, NOW - TICK)
            call(tx, NOW)
            call(tx, None)
            message(tx, NOW - 2 * TICK)
            message(tx, NOW + TICK)

        async def found(workspace_id: str | None, now: datetime) -> datetime | None:
            return await storage.read(lambda tx: tx.work.oldest_single(workspace_id, now))

        await storage.write(schedule)
        assert await found(None, NOW) == NOW - 2 * TICK
        assert await found(THIS_WORKSPACE, NOW) == NOW - TICK
        assert await found(THIS_WORKSPACE, NOW - TICK) == NOW - TICK
        assert await found(None, NOW - 3 * TICK) is None
        assert await found(new_id(), NOW) is None

    async def test_units_differ_by_kind_workspace_and_identifier(self, storage: Storage) -> None:
        """Each of the three makes another unit."""
        units = [
            CALL,
            CALL._replace(kind="message"),
            CALL._replace(workspace_id=OTHER_WORKSPACE),
            CALL._replace(id=new_id()),
        ]

        def touch(tx: Transaction) -> None:
            for unit in units:
                tx.work.schedule(unit, NOW)

        await storage.write(touch)
        assert await storage.read(lambda tx: [work.unit for work in tx.work.since(0)]) == units

    async def test_due_units_come_by_due_time(self, storage: Storage) -> None:
        """By (due_at, change), of all workspaces, in the future too; those without a due time are left out."""
        idle = WorkUnit("campaign", THIS_WORKSPACE, new_id())

        def touch(tx: Transaction) -> list[WorkUnit]:
            tx.work.schedule(CALL, NOW)
            tx.work.schedule(MESSAGE, NOW - TICK)
            tx.work.schedule(idle, None)
            tx.work.schedule(CAMPAIGN, NOW)
            tx.work.schedule(CALL, NOW)
            return [work.unit for work in tx.work.due()]

        assert await storage.write(touch) == [MESSAGE, CAMPAIGN, CALL]
        assert await storage.read(lambda tx: [work.unit for work in tx.work.due()]) == [MESSAGE, CAMPAIGN, CALL]

    async def test_changes_since_a_number_come_by_change(self, storage: Storage) -> None:
        """That number itself is not among them, and a unit comes once, at its last change."""

        def touch(tx: Transaction) -> None:
            tx.work.schedule(CALL, NOW)
            tx.work.schedule(MESSAGE, None)
            tx.work.schedule(CAMPAIGN, NOW - TICK)
            tx.work.schedule(CALL, None)

        await storage.write(touch)
        message = await storage.read(lambda tx: tx.work.get(MESSAGE))
        assert message is not None
        number = message.change

        async def since(change: int) -> list[WorkUnit]:
            return await storage.read(lambda tx: [work.unit for work in tx.work.since(change)])

        assert await since(number) == [CAMPAIGN, CALL]
        assert await since(number - 1) == [MESSAGE, CAMPAIGN, CALL]
        assert await since(number + 2) == []
        assert await since(MAX_INTEGER) == []

    async def test_finished_calls_and_messages_are_forgotten(self, storage: Storage) -> None:
        """At most `limit` at a time; a campaign, and what has a due time, stays."""
        finished = [WorkUnit(kind, THIS_WORKSPACE, new_id()) for kind in ("call", "message", "call") for _ in range(2)]

        def touch(tx: Transaction) -> None:
            for unit in finished:
                tx.work.schedule(unit, None)
            tx.work.schedule(CAMPAIGN, None)
            tx.work.schedule(CALL, NOW)
            tx.work.schedule(MESSAGE, NOW)

        await storage.write(touch)
        forgotten = [await storage.write(lambda tx: tx.work.delete_idle(limit=4)) for _ in range(3)]
        assert forgotten == [4, 2, 0]
        assert await storage.read(lambda tx: [work.unit for work in tx.work.since(0)]) == [CAMPAIGN, CALL, MESSAGE]
        assert await storage.read(lambda tx: tx.work.get(finished[0])) is None

    async def test_the_highest_change_number_is_never_forgotten(
        self, storage: Storage, open_storage: Callable[[], Storage]
    ) -> None:
        """Not even when every unit is forgotten and the database is opened again."""
        number = await change_of(storage, CALL, None)
        assert await storage.write(lambda tx: tx.work.delete_idle(limit=10)) == 1
        assert await storage.read(lambda tx: tx.work.last_change()) == number
        async with open_storage() as again:
            assert await again.read(lambda tx: tx.work.last_change()) == number
            assert await change_of(again, CALL, None) > number

    @awkward_texts
    async def test_the_lease_and_the_home_are_one_each(self, database: Storage, text: str) -> None:
        """A put takes the place of the last one."""
        home = DatabaseHome(host=text, path=f"/{text}")
        first = make_lease()
        second = make_lease(
            epoch=MAX_INTEGER, home=home, renewed_at=NOW + TICK, quarantine_reason="moved", quarantine_epoch=MAX_INTEGER
        )
        for lease in (first, second, first):
            await database.write(lambda tx, lease=lease: tx.leases.put(lease))  # type: ignore[misc]
            assert await database.read(lambda tx: tx.leases.current()) == lease
        for place in (DatabaseHome(host="h", path="/p"), home):
            await database.write(lambda tx, place=place: tx.leases.set_home(place))  # type: ignore[misc]
            assert await database.read(lambda tx: tx.leases.home()) == place

    @awkward_moments
    async def test_workers_are_put_and_deleted_by_their_epochs(self, database: Storage, moment: datetime) -> None:
        """Listed by epoch; a put takes the place of the last one, and an end counts as a stop."""
        first, second = make_worker(epoch=MAX_INTEGER, place=MAX_INTEGER), make_worker(renewed_at=moment, until=moment)
        await given_rows(database, first, make_worker(until=NOW + TICK), second)
        assert list(await database.read(lambda tx: tx.workers.list())) == [second, first]
        assert await database.read(lambda tx: tx.workers.get(1)) == second
        before = await database.read(lambda tx: tx.stops.count(THIS_WORKSPACE))
        assert await database.write(lambda tx: (tx.workers.delete(1), tx.workers.delete(1))) == (True, False)
        assert await database.read(lambda tx: tx.workers.get(1)) is None
        assert await database.read(lambda tx: tx.stops.count(THIS_WORKSPACE)) > before

    async def test_a_stop_of_a_workspace_does_not_count_in_another_one(self, storage: Storage) -> None:
        """A stop for all counts in each."""

        def count(tx: Transaction) -> tuple[int, int]:
            return tx.stops.count(THIS_WORKSPACE), tx.stops.count(OTHER_WORKSPACE)

        before = await storage.read(count)
        await storage.write(lambda tx: tx.stops.increment(THIS_WORKSPACE))
        assert await storage.read(count) == (before[0] + 1, before[1])
        await storage.write(lambda tx: tx.stops.increment(ALL_WORKSPACES))
        assert await storage.read(count) == (before[0] + 2, before[1] + 1)

    @awkward_texts
    async def test_claims_are_freed_with_their_worker(self, storage: Storage, text: str) -> None:
        """Each subject of a workspace has one; those that are held come by epoch, workspace and subject."""
        claims = [
            Claim(workspace_id=THIS_WORKSPACE, subject=as_key(text), epoch=2, held=True),
            Claim(workspace_id=OTHER_WORKSPACE, subject=as_key(text), epoch=1, held=True),
            Claim(workspace_id=THIS_WORKSPACE, subject=f"{as_key(text)}2", epoch=1, held=False),
        ]
        await given_rows(storage, attrs.evolve(claims[0], epoch=1, held=False), *claims)
        assert list(await storage.read(lambda tx: tx.claims.held())) == [claims[1], claims[0]]
        assert await storage.read(lambda tx: tx.claims.get(THIS_WORKSPACE, as_key(text))) == claims[0]

        def free(tx: Transaction) -> Claim | None:
            tx.claims.free(2)
            return tx.claims.get(THIS_WORKSPACE, as_key(text))

        assert await storage.write(free) == attrs.evolve(claims[0], held=False)
        assert list(await storage.read(lambda tx: tx.claims.held())) == [claims[1]]
        await storage.write(lambda tx: tx.claims.clear())
        assert await storage.read(lambda tx: tx.claims.get(OTHER_WORKSPACE, as_key(text))) is None

    async def test_the_clock_of_the_database_does_not_go_back(self, database: Storage) -> None:
        """Each transaction reads it; aware, in UTC."""
        first = await database.read(lambda tx: tx.now())
        second = await database.write(lambda tx: tx.now())
        assert first <= second
        assert first.utcoffset() == timedelta()

    @awkward_moments
    async def test_a_run_is_put_over_the_last_one(self, storage: Storage, moment: datetime) -> None:
        """Each campaign has its own, in its own workspace."""
        ours = await given_campaign(storage)
        theirs = await given_campaign(storage, campaign=make_campaign(workspace_id=OTHER_WORKSPACE))
        first = make_run(campaign_id=ours.id)
        second = attrs.evolve(
            first, owner_epoch=MAX_INTEGER, next_slot_at=moment, assigned=MAX_INTEGER, postponed_under="cap 3"
        )
        other = make_run(workspace_id=OTHER_WORKSPACE, campaign_id=theirs.id, owner_epoch=7)

        def put(tx: Transaction) -> None:
            tx.runs.put(first)
            assert tx.runs.get(THIS_WORKSPACE, ours.id) == first
            tx.runs.put(other)
            tx.runs.put(second)

        await storage.write(put)
        assert await storage.read(lambda tx: tx.runs.get(THIS_WORKSPACE, ours.id)) == second
        assert await storage.read(lambda tx: tx.runs.get(OTHER_WORKSPACE, theirs.id)) == other
        assert await storage.read(lambda tx: tx.runs.get(OTHER_WORKSPACE, ours.id)) is None

    @awkward_moments
    async def test_the_slot_of_a_sending_number_is_put_over_the_last_one(
        self, storage: Storage, moment: datetime
    ) -> None:
        """Each number of each workspace has its own, whether the workspace has added it or not; None at first."""
        assert await storage.read(lambda tx: tx.runs.sender_slot(THIS_WORKSPACE, "+14155550100")) is None

        def put(tx: Transaction) -> None:
            tx.runs.put_sender_slot(THIS_WORKSPACE, "+14155550100", moment + TICK)
            tx.runs.put_sender_slot(THIS_WORKSPACE, "+14155550100", moment)
            tx.runs.put_sender_slot(THIS_WORKSPACE, "+14155550101", moment + 2 * TICK)
            tx.runs.put_sender_slot(OTHER_WORKSPACE, "+14155550100", moment + 3 * TICK)

        await storage.write(put)
        asked = [
            (THIS_WORKSPACE, "+14155550100"),
            (THIS_WORKSPACE, "+14155550101"),
            (OTHER_WORKSPACE, "+14155550100"),
            (OTHER_WORKSPACE, "+14155550101"),
        ]
        slots = await storage.read(lambda tx: [tx.runs.sender_slot(*question) for question in asked])
        assert slots == [moment, moment + 2 * TICK, moment + 3 * TICK, None]

    async def test_the_lock_is_held_once(self, database: Storage, open_storage: Callable[[], Storage]) -> None:
        """Nobody else gets it, on this storage or on another one over the same database, until it is given back."""
        assert await database.lock.acquire() == 1
        try:
            assert await database.lock.acquire() == 0
            async with open_storage() as other:
                assert await other.lock.acquire() == 0
                assert [list(await one.lock.find_free({1})) for one in (database, other)] == [[], []]
                await database.lock.release(1)
                # None, where that cannot be known.
                assert set(await other.lock.find_free({1})) <= {1}
                assert await other.lock.acquire() == 1
                assert [list(await one.lock.find_free({1})) for one in (database, other)] == [[], []]
                assert await database.lock.acquire() == 0
                await other.lock.release(1)
            assert await database.lock.acquire() == 1
        finally:
            await database.lock.release()
            await database.lock.release()

    async def test_what_was_noted_beside_the_database_stays(
        self, database: Storage, open_storage: Callable[[], Storage]
    ) -> None:
        """Nothing at first, then the last note.

        The next one to open the database finds it, unless the storage keeps it in the process or has no place for it.
        """
        assert database.lock.high_water() is None
        assert await database.lock.acquire() == 1
        try:
            database.lock.record_high_water(HighWaterMark(database="one", epoch=1, change=0))
            mark = HighWaterMark(database="one", epoch=3, change=MAX_INTEGER)
            database.lock.record_high_water(mark)
            noted = database.lock.high_water()
            assert noted in {mark, None}
        finally:
            await database.lock.release()
        async with open_storage() as again:
            assert again.lock.high_water() in {noted, None}
