from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, assert_type

import anyio
import pytest

from outreach import Conflict, EngineConfig, InvalidRequest, NewSmsCampaign, NotFound, Outreach
from outreach.events import CampaignStatusChanged, Event, EventGap, NamedStream, OptedOut
from outreach.ledger import subscriptions
from outreach.protocols import SystemClock
from outreach.protocols.storage import Storage
from outreach.services.messaging import named_streams
from outreach.storage.sqlite import SqliteStorage
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.testing.clock import ManualClock
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.conftest import OpenStorage
from tests.engine.rig import QUICK, given_workspace, until

pytestmark = pytest.mark.anyio


def two_on_one(open_storage: OpenStorage) -> tuple[Storage, Storage]:
    """Return the storages of two processes on one database; in memory that is one."""
    storage = open_storage(SystemClock())
    return storage, storage if isinstance(storage, MemoryStorage) else open_storage(SystemClock())


def engine_on(storage: Storage) -> Outreach:
    """Return an engine that does not dispatch and looks around quickly."""
    return Outreach(storage, config=QUICK)


async def opt_out(engine: Outreach, workspace_id: str, *numbers: int) -> None:
    """Have numbers opt out, one event each."""
    for number in numbers:
        await engine.unsubscribes.add(workspace_id, f"+1415555{number:04}")


async def take(stream: NamedStream[Any], count: int) -> list[int]:
    """Return the last digits of the next opt-outs, which must come."""
    with anyio.fail_after(30):
        events = [await anext(stream) for _ in range(count)]
    assert all(isinstance(event, OptedOut) for event in events)
    return [int(event.phone[-4:]) for event in events if isinstance(event, OptedOut)]


async def test_a_named_subscription_goes_on_where_it_was_acknowledged(open_storage: OpenStorage) -> None:
    """What was told and not acknowledged is told again, after a restart too; the rest is not."""
    storage = open_storage(SystemClock())
    async with engine_on(storage) as engine:
        workspace = (await given_workspace(engine)).id
        await opt_out(engine, workspace, 1)
        async with engine.events.subscribe(OptedOut, name="billing") as stream:
            # It begins with what comes after its first entering.
            await opt_out(engine, workspace, 2, 3, 4)
            assert await take(stream, 2) == [2, 3]
            assert await stream.ack()
            assert await take(stream, 1) == [4]
    async with engine_on(storage) as engine:
        await opt_out(engine, workspace, 5)
        async with engine.events.subscribe(OptedOut, name="billing") as stream:
            assert await take(stream, 2) == [4, 5]
            assert await stream.ack()
        (found,) = await engine.events.list_subscriptions()
        assert (found.name, found.workspace_id, found.behind, found.active) == ("billing", None, 0, False)
        assert await engine.events.get_subscription("billing") == found
        with pytest.raises(NotFound, match="subscription"):
            await engine.events.get_subscription("crm")


async def test_acknowledgements_of_a_backlog_are_stored_together(open_storage: OpenStorage) -> None:
    """A write for each event would fall behind; the last one is stored at once, and so is what `at_once` asks for."""
    storage = open_storage(SystemClock())
    clock = ManualClock(SystemClock().now())
    async with Outreach(storage, config=QUICK, clock=clock) as engine:
        workspace = (await given_workspace(engine)).id
        async with engine.events.subscribe(OptedOut, name="billing") as stream:
            await opt_out(engine, workspace, *range(40))

            async def position() -> int:
                return (await engine.events.get_subscription("billing")).position

            stored = set()
            for number in range(40):
                assert await take(stream, 1) == [number]
                assert await stream.ack()
                stored.add(await position())
            assert len(stored) == 2
            assert (await engine.events.get_subscription("billing")).behind == 0
            await opt_out(engine, workspace, *range(40, 46))
            await take(stream, 2)
            assert await stream.ack()
            before = await position()
            clock.advance(1)
            await take(stream, 1)
            assert await stream.ack()
            timely = await position()
            await take(stream, 1)
            assert await stream.ack(at_once=True)
            asked_for = await position()
            assert before < timely < asked_for
            await take(stream, 1)
            assert await stream.ack()
            assert await position() == asked_for
        # What waited is stored as the stream is closed.
        assert await position() > asked_for
        async with engine.events.subscribe(OptedOut, name="billing") as stream:
            assert await take(stream, 1) == [45]


async def test_of_two_readers_one_gets_each_event(open_storage: OpenStorage) -> None:
    """The other waits, and goes on at once when the first is closed."""
    here, there = two_on_one(open_storage)
    told: dict[str, list[int]] = {"a": [], "b": []}
    async with engine_on(here) as one, engine_on(there) as two, anyio.create_task_group() as tasks:
        workspace = (await given_workspace(one)).id

        async def read(engine: Outreach, who: str) -> None:
            async with engine.events.subscribe(OptedOut, name="billing", since=0) as stream:
                async for event in stream:
                    assert isinstance(event, OptedOut)
                    told[who].append(int(event.phone[-4:]))
                    await stream.ack()
                    if len(told["a"]) == 11 and who == "a":
                        return

        tasks.start_soon(read, one, "a")
        await until(lambda: _is_active(two))
        tasks.start_soon(read, two, "b")
        await opt_out(one, workspace, *range(10))
        await until(lambda: _has(told["a"], 10))
        assert told["b"] == []
        await opt_out(one, workspace, *range(10, 20))
        await until(lambda: _has([*told["a"], *told["b"]], 20))
        assert (told["a"], told["b"]) == (list(range(11)), list(range(11, 20)))
        tasks.cancel_scope.cancel()


async def _is_active(engine: Outreach) -> bool:
    return any(one.active for one in await engine.events.list_subscriptions())


async def _has(found: list[int], count: int) -> bool:
    return len(found) >= count


async def test_who_lost_its_turn_stores_nothing_and_waits_again(
    open_storage: OpenStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that stood still for longer than its lease: what it had not acknowledged is the other's."""
    here, there = two_on_one(open_storage)
    monkeypatch.setattr(named_streams, "LEASE_SECONDS", 0.2)
    monkeypatch.setattr(named_streams, "_RENEWALS", 0.001)
    async with engine_on(here) as one, engine_on(there) as two:
        workspace = (await given_workspace(one)).id
        await opt_out(one, workspace, 1, 2)
        async with (
            one.events.subscribe(OptedOut, name="n", since=0) as stalled,
            two.events.subscribe(OptedOut, name="n", since=0) as other,
        ):
            assert await take(stalled, 1) == [1]
            assert await take(other, 1) == [1]
            assert not await stalled.ack()
            assert await other.ack()
            assert await take(other, 1) == [2]
            assert await other.ack()
            await other.aclose()
            await opt_out(one, workspace, 3)
            assert await take(stalled, 1) == [3]


@pytest.mark.virtual_time
async def test_a_reader_that_works_for_long_keeps_its_turn(
    open_storage: OpenStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lease is renewed while it works on one event."""
    clock = clock_of_loop()
    monkeypatch.setattr(named_streams, "LEASE_SECONDS", 2.0)
    monkeypatch.setattr(named_streams, "_RENEWALS", 8)
    async with Outreach(open_storage(clock), config=QUICK, clock=clock) as engine:
        workspace = (await given_workspace(engine)).id
        await opt_out(engine, workspace, 1)
        async with engine.events.subscribe(OptedOut, name="n", since=0) as stream:
            assert await take(stream, 1) == [1]
            await anyio.sleep(3.0)
            assert await _is_active(engine)
            assert await stream.ack()


@pytest.mark.parametrize(("poll", "lease"), [(0.25, 5), (2.0, 5), (30.0, 60)])
def test_who_seldom_looks_renews_its_turn_as_seldom(poll: float, lease: float) -> None:
    """In virtual time, where nothing else happens for hours, each renewal would cost as much as in real time."""
    assert named_streams.lease_of(EngineConfig(change_poll_seconds=poll)) == timedelta(seconds=lease)


async def test_what_was_not_asked_for_is_passed_over(
    open_storage: OpenStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its position goes on without an acknowledgement, so that a restart reads nothing a second time."""
    monkeypatch.setattr(named_streams, "_RENEWALS", 100)
    async with engine_on(open_storage(SystemClock())) as engine, anyio.create_task_group() as tasks:
        workspace = (await given_workspace(engine)).id
        async with engine.events.subscribe(CampaignStatusChanged, name="n", since=0) as stream:
            tasks.start_soon(stream.__anext__)
            await opt_out(engine, workspace, *range(5))
            await until(lambda: _is_up_to_date(engine))
            tasks.cancel_scope.cancel()


async def _is_up_to_date(engine: Outreach) -> bool:
    (found,) = await engine.events.list_subscriptions()
    return found.behind == 0 and found.position > 0


async def test_a_subscription_of_one_workspace_stays_with_it(open_storage: OpenStorage) -> None:
    """It gets no events of another workspace, and no other workspace can use its name."""
    async with engine_on(open_storage(SystemClock())) as engine:
        here, there = (await given_workspace(engine)).id, (await given_workspace(engine)).id
        async with engine.events.subscribe(OptedOut, name="n", workspace_id=here, since=0) as stream:
            await opt_out(engine, there, 1)
            await opt_out(engine, here, 2)
            assert await take(stream, 1) == [2]
        for other in (there, None):
            with pytest.raises(Conflict, match="is for workspace"):
                async with engine.events.subscribe(name="n", workspace_id=other):
                    pass
        with pytest.raises(NotFound):
            async with engine.events.subscribe(name="m", workspace_id="none"):
                pass


async def test_a_subscription_is_removed(open_storage: OpenStorage) -> None:
    """A reader of it gets an error. The name begins anew."""
    async with engine_on(open_storage(SystemClock())) as engine:
        workspace = (await given_workspace(engine)).id
        async with engine.events.subscribe(OptedOut, name="n") as stream:
            await opt_out(engine, workspace, 1)
            assert await take(stream, 1) == [1]
            await engine.events.remove_subscription("n")
            assert not await stream.ack()
            with pytest.raises(NotFound, match="subscription"):
                await anext(stream)
        assert list(await engine.events.list_subscriptions()) == []
        with pytest.raises(NotFound, match="subscription"):
            await engine.events.remove_subscription("n")
        async with engine.events.subscribe(OptedOut, name="n", since=0) as stream:
            assert await take(stream, 1) == [1]


async def test_purged_events_are_reported_as_a_gap(tmp_path: Path) -> None:
    """The gap comes in their place, once, before the events that are left. A later subscription has no gap."""
    storage = SqliteStorage(tmp_path / "a.db", clock=SystemClock())
    async with engine_on(storage) as engine:
        workspace = (await given_workspace(engine)).id
        async with engine.events.subscribe(OptedOut, name="n") as stream:
            await opt_out(engine, workspace, 1, 2, 3, 4)
            assert await take(stream, 1) == [1]
            assert await stream.ack()
            async with engine.events.subscribe(OptedOut, since=0) as plain:
                with anyio.fail_after(30):
                    told = [await anext(plain) for _ in range(4)]
        with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
            connection.execute("DELETE FROM trail WHERE number IN (?, ?)", (told[1].number, told[2].number))
        async with engine.events.subscribe(OptedOut, name="n") as stream:
            gap = await anext(stream)
            assert isinstance(gap, EventGap)
            assert gap.first <= told[1].number
            assert gap.last == told[2].number
            assert await take(stream, 1) == [4]
            assert await stream.ack()
        await opt_out(engine, workspace, 5)
        async with engine.events.subscribe(OptedOut, name="n") as stream:
            assert await take(stream, 1) == [5]
        async with engine.events.subscribe(OptedOut, name="later", since=0) as stream:
            assert await take(stream, 3) == [1, 4, 5]
        with pytest.raises(Conflict, match="some were purged"):
            async with engine.events.subscribe(since=told[0].number):
                pass


async def test_an_open_stream_raises_for_events_that_are_purged_before_it_reads_them(tmp_path: Path) -> None:
    """Those that were purged before it was entered are no gap of a stream from the beginning."""
    storage = SqliteStorage(tmp_path / "a.db", clock=SystemClock())

    def purge(number: int) -> None:
        with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
            connection.execute("DELETE FROM trail WHERE number = ?", (number,))

    async with engine_on(storage) as engine:
        workspace = (await given_workspace(engine)).id
        await opt_out(engine, workspace, 1, 2)
        purge((await engine.events.page(OptedOut, since=0)).events[0].number)
        async with engine.events.subscribe(OptedOut, since=0) as stream:
            with anyio.fail_after(30):
                told = await anext(stream)
            await opt_out(engine, workspace, 3, 4)
            purge(told.number + 1)
            with pytest.raises(Conflict, match=f"from {stream.position + 1} to {told.number + 1} some were purged"):
                await anext(stream)


async def test_a_campaign_that_is_deleted_before_its_start_leaves_no_gap(open_storage: OpenStorage) -> None:
    """Subscribers that have not come so far go on, those of other workspaces among them."""
    async with engine_on(open_storage(SystemClock())) as engine:
        workspace, other = (await given_workspace(engine)).id, (await given_workspace(engine)).id
        async with engine.events.subscribe(OptedOut, name="n", workspace_id=other):
            pass
        await opt_out(engine, other, 1)
        since = (await engine.events.page(since=0)).position
        campaign = NewSmsCampaign(name="Spring", body="Hi", carrier="twilio", from_number="+14155550199")
        created = await engine.campaigns.create_sms(workspace, campaign, [{"phone_number": "+14155550102"}])
        await engine.campaigns.delete(workspace, created.campaign.id)
        await opt_out(engine, other, 2)
        async with engine.events.subscribe(OptedOut, since=since) as plain:
            with anyio.fail_after(30):
                assert (await anext(plain)).phone == "+14155550002"
        async with engine.events.subscribe(OptedOut, name="n", workspace_id=other) as stream:
            assert await take(stream, 2) == [1, 2]


async def test_the_engine_lets_go_of_its_subscriptions_as_it_closes(open_storage: OpenStorage) -> None:
    """Although the stream was not left: another process goes on at once."""
    here, there = two_on_one(open_storage)
    async with engine_on(there) as other:
        async with engine_on(here) as engine:
            workspace = (await given_workspace(engine)).id
            await opt_out(engine, workspace, 1)
            stream = engine.events.subscribe(OptedOut, name="n", since=0)
            await stream.__aenter__()
            assert await take(stream, 1) == [1]
            assert await _is_active(other)
        assert not await _is_active(other)
        with pytest.raises(StopAsyncIteration):
            await anext(stream)


async def test_a_lease_from_before_the_clock_was_set_back_keeps_nobody_away(storage: Storage) -> None:
    """One that ends later than any can counts for nothing."""
    lease = timedelta(seconds=5)
    now = SystemClock().now()
    await storage.write(lambda tx: subscriptions.ensure(tx, "n", workspace_id=None, since=None, now=now))
    for moment, taken in ((now, True), (now + timedelta(seconds=1), False), (now - timedelta(hours=1), True)):
        found = await storage.write(
            lambda tx, at=moment: subscriptions.take(tx, "n", str(at), lease=lease, now=at)  # type: ignore[misc]
        )
        assert (found is not None) == taken


@pytest.mark.parametrize("name", ["", "x" * 101, "a\0b"])
async def test_a_name_is_a_text_of_some_length(engine: Outreach, name: str) -> None:
    """It is stored, and read by people."""
    with pytest.raises(InvalidRequest, match="name"):
        engine.events.subscribe(name=name)


async def test_a_named_stream_is_entered_once_and_before_it_is_read(engine: Outreach) -> None:
    """As every stream; and it begins no farther than the database has come."""
    stream = engine.events.subscribe(name="n")
    with pytest.raises(InvalidRequest, match="Enter the stream"):
        await anext(stream)
    async with stream:
        pass
    with pytest.raises(InvalidRequest, match="entered once"):
        await stream.__aenter__()
    with pytest.raises(Conflict, match="not to 99"):
        await engine.events.subscribe(name="m", since=99).__aenter__()


def test_a_named_stream_has_the_types_that_it_was_asked_for() -> None:
    """A notice of a gap is one of them, so that a type checker makes each reader handle it."""
    events = Outreach.open("memory://").events
    assert_type(events.subscribe(name="n"), NamedStream[Event])
    assert_type(events.subscribe(OptedOut, name="n"), NamedStream[OptedOut])
    assert_type(
        events.subscribe(OptedOut, CampaignStatusChanged, name="n"), NamedStream[OptedOut | CampaignStatusChanged]
    )


async def _typed(stream: NamedStream[OptedOut]) -> None:
    async for event in stream:
        assert_type(event, OptedOut | EventGap)
