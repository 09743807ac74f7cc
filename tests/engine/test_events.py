from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar, assert_type

import anyio
import anyio.lowlevel
import pytest

from outreach import Conflict, InvalidRequest, NewCall, NewMessage, NewRecipient, NewWorkspace, NotFound, Outreach
from outreach.errors import StorageError
from outreach.events import (
    CallEnded,
    CampaignStatusChanged,
    ContactHeld,
    Event,
    EventStream,
    MessageReceived,
    MessageStatusChanged,
    OptedIn,
    OptedOut,
    RecipientEnded,
    WebhookDisabled,
)
from outreach.ledger.campaigns.trail import record_webhook_disabled
from outreach.models.workspace import Workspace
from outreach.protocols.storage import Storage
from outreach.storage.sqlite import SqliteStorage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import make_trail_entry, new_id
from outreach.testing.scripted import ScriptedVoice
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.calling import CALLS, POSITIVE, ends, given_agent
from tests.engine.conftest import OpenStorage
from tests.engine.rig import QUICK, contacts, dispatching, given_campaign, given_workspace, reported

pytestmark = pytest.mark.virtual_time

E = TypeVar("E", bound=Event)


def engine_on(storage: Storage) -> Outreach:
    """Return an engine that does not dispatch and looks around quickly."""
    return Outreach(storage, config=QUICK, clock=clock_of_loop())


async def take(stream: EventStream[E], count: int) -> list[E]:
    """Return the next events, which must come."""
    with anyio.fail_after(30):
        return [await anext(stream) for _ in range(count)]


async def rest(engine: Outreach, *kinds: type[Event], since: int = 0, workspace_id: str | None = None) -> list[Event]:
    """Return all that there is to hear after a number: up to a mark that is set now."""
    mark = (await engine.workspaces.create(NewWorkspace(name="Mark"))).id
    await engine.unsubscribes.add(mark, "+14155550999")
    found: list[Event] = []
    async with engine.events.subscribe(since=since) as stream:
        while True:
            (event,) = await take(stream, 1)
            if event.workspace_id == mark:
                return found
            if isinstance(event, kinds or Event) and workspace_id in {None, event.workspace_id}:
                found.append(event)


def phones(events: Sequence[Event]) -> list[str]:
    """Return the numbers of opt-outs."""
    return [event.phone for event in events if isinstance(event, OptedOut)]


async def test_a_campaign_has_events_from_its_creation_to_its_end(open_storage: OpenStorage) -> None:
    """Campaign moved, recipient ended, message reported, in the order of their commits.

    docs/decision-trail.md#events.
    """
    async with dispatching(open_storage(clock_of_loop())) as rig:
        workspace = await given_workspace(rig.engine)
        async with rig.engine.events.subscribe(workspace_id=workspace.id) as stream:
            campaign = await given_campaign(rig.engine, workspace, [NewRecipient(phone_number="+14155550101")])
            await rig.engine.campaigns.start(workspace.id, campaign.id, actor="cli:ann")
            events = await take(stream, 4)
        created, started, ended, completed = events
        assert isinstance(created, CampaignStatusChanged)
        assert (created.campaign_id, created.status, created.rule, created.actor) == (
            campaign.id, "ready", "load", "library",
        )  # fmt: skip
        assert isinstance(started, CampaignStatusChanged)
        assert (started.status, started.rule, started.actor, started.reason) == ("active", "operator", "cli:ann", None)
        assert isinstance(ended, RecipientEnded)
        (dispatch,) = await rig.engine.campaigns.list_dispatches(workspace.id, campaign.id, 0)
        assert (ended.campaign_id, ended.position, ended.status, ended.reason, ended.rule, ended.dispatch_id) == (
            campaign.id, 0, "completed", None, "provider_answer", dispatch.id,
        )  # fmt: skip
        assert ended.at == dispatch.settled_at
        assert isinstance(completed, CampaignStatusChanged)
        assert (completed.status, completed.rule, completed.actor) == ("completed", "ledger", None)
        assert [event.number for event in events] == sorted({event.number for event in events})
        assert {event.workspace_id for event in events} == {workspace.id}


async def test_single_calls_and_messages_have_events(open_storage: OpenStorage) -> None:
    """Call ended, message reported; what is reported of a call on its way is for the trail alone."""
    voice = ScriptedVoice()
    async with dispatching(open_storage(clock_of_loop()), voice=voice, config=CALLS) as rig:
        ends(voice, lambda request, _: POSITIVE)
        workspace = await given_workspace(rig.engine)
        agent = await given_agent(rig.engine, workspace)
        async with rig.engine.events.subscribe(CallEnded, MessageStatusChanged) as stream:
            call = await rig.engine.calls.create(workspace.id, NewCall(agent_id=agent, to="+14155550101"))
            (ended,) = await take(stream, 1)
            assert isinstance(ended, CallEnded)
            assert (ended.call_id, ended.campaign_id, ended.position) == (call.id, None, None)
            assert (ended.status, ended.outcome) == ("completed", "positive")
            message = await rig.engine.messages.send(
                workspace.id, NewMessage(to="+14155550102", body="Hi", from_number=None, carrier="twilio")
            )
            await rig.carrier.wait_for_requests(1)
            (request,) = rig.carrier.requests
            rig.carrier.report(reported(request))
            (changed,) = await take(stream, 1)
            assert isinstance(changed, MessageStatusChanged)
            assert (changed.message_id, changed.dispatch_id) == (message.id, request.dispatch_id)
            assert (changed.campaign_id, changed.status, changed.reason) == (None, "delivered", None)


async def test_campaign_change_distinguishes_first_start_from_resume(open_storage: OpenStorage) -> None:
    """Status `active` is `started` once and `resumed` later; other changes are named for the new status."""
    async with engine_on(open_storage(clock_of_loop())) as engine:
        workspace = await given_workspace(engine)
        campaign = await given_campaign(engine, workspace, [NewRecipient(phone_number="+14155550101")])
        for move in (engine.campaigns.start, engine.campaigns.pause, engine.campaigns.resume, engine.campaigns.cancel):
            await anyio.sleep(1)
            await move(workspace.id, campaign.id)
        found = await rest(engine, CampaignStatusChanged, workspace_id=workspace.id)
        changes = [event.change for event in found if isinstance(event, CampaignStatusChanged)]
        assert changes == ["created", "started", "paused", "resumed", "cancelled"]


async def test_held_number_is_an_event_once(open_storage: OpenStorage) -> None:
    """An unclear message holds its number; another one adds nothing, nor does one of a number that has opted out."""
    async with engine_on(open_storage(clock_of_loop())) as engine:
        workspace = await given_workspace(engine)
        await engine.unsubscribes.add(workspace.id, "+14155550103")
        for phone in ("+14155550102", "+14155550102", "+14155550103"):
            await anyio.sleep(1)
            await engine.messages.receive(workspace.id, from_number=phone, to="+14155550199", body="Don't stop!")
        (held,) = await rest(engine, ContactHeld, workspace_id=workspace.id)
        assert isinstance(held, ContactHeld)
        assert (held.phone, held.reason) == ("+14155550102", "unclear")
        await engine.erasure.purge(workspace.id, "+14155550102")
        (erased,) = await rest(engine, ContactHeld, workspace_id=workspace.id)
        assert isinstance(erased, ContactHeld)
        assert erased.phone not in {"", "+14155550102"}


async def test_disabled_webhook_is_an_event(open_storage: OpenStorage) -> None:
    """Of its workspace, with its id and the reason."""
    storage = open_storage(clock_of_loop())
    async with engine_on(storage) as engine:
        workspace = await given_workspace(engine)
        now, webhook_id = clock_of_loop().now(), new_id()
        await storage.write(lambda tx: record_webhook_disabled(tx, workspace.id, webhook_id, reason="gone", now=now))
        (disabled,) = await rest(engine, WebhookDisabled, workspace_id=workspace.id)
        assert isinstance(disabled, WebhookDisabled)
        assert (disabled.endpoint_id, disabled.reason, disabled.at) == (webhook_id, "gone", now)


async def test_opt_outs_and_replies_have_events(open_storage: OpenStorage) -> None:
    """Once for each number that is stopped, or stopped on more; a second time for the same is nothing new."""
    async with engine_on(open_storage(clock_of_loop())) as engine:
        workspace = await given_workspace(engine)
        async with engine.events.subscribe(OptedOut, MessageReceived) as stream:
            for scope in ("sms", "sms", "call", "all"):
                await engine.unsubscribes.add(
                    workspace.id,
                    "(415) 555-0101",
                    scope=scope,
                    source="keyword",
                    actor="cli:ann",
                )
            received = await engine.messages.receive(
                workspace.id, from_number="+14155550101", to="+14155550199", body="Hi"
            )
            await engine.messages.receive(
                workspace.id, from_number="+14155550102", to="+14155550199", body="Don't stop!"
            )
            first, grown, reply, unclear = await take(stream, 4)
        assert isinstance(first, OptedOut)
        assert (first.phone, first.scope, first.source, first.actor) == ("+14155550101", "sms", "keyword", "cli:ann")
        assert isinstance(grown, OptedOut)
        assert (grown.phone, grown.scope) == ("+14155550101", "all")
        assert isinstance(reply, MessageReceived)
        assert received is not None
        assert (reply.message_id, reply.from_number, reply.unclear) == (received.id, "+14155550101", False)
        assert isinstance(unclear, MessageReceived)
        assert (unclear.from_number, unclear.unclear) == ("+14155550102", True)


async def test_a_removal_from_the_register_has_an_event(open_storage: OpenStorage) -> None:
    """By hand or by its START; a number that is not there leaves nothing."""
    async with engine_on(open_storage(clock_of_loop())) as engine:
        workspace = await given_workspace(engine)
        async with engine.events.subscribe(OptedIn) as stream:
            await engine.unsubscribes.add(workspace.id, "+14155550101")
            removed = await engine.unsubscribes.remove(workspace.id, "+14155550102", "+14155550101", actor="cli:ann")
            assert removed == 1
            for body in ("STOP", "START", "START"):
                await engine.messages.receive(workspace.id, from_number="+14155550103", to="+14155550199", body=body)
            await engine.unsubscribes.add(workspace.id, "+14155550104")
            await engine.unsubscribes.remove(workspace.id, "+14155550104")
            heard = await take(stream, 3)
        assert [(event.phone, event.actor) for event in heard] == [
            ("+14155550101", "cli:ann"),
            ("+14155550103", None),
            ("+14155550104", "library"),
        ]


async def test_a_stream_has_only_the_events_that_were_asked_for(open_storage: OpenStorage) -> None:
    """By kind and by workspace; the position passes over the rest."""
    async with engine_on(open_storage(clock_of_loop())) as engine:
        here, there = await given_workspace(engine), await given_workspace(engine)
        async with engine.events.subscribe(OptedOut, workspace_id=here.id) as stream:
            await given_campaign(engine, here)
            await engine.unsubscribes.add(there.id, "+14155550101")
            await engine.unsubscribes.add(here.id, "+14155550102")
            await given_campaign(engine, there)
            (event,) = await take(stream, 1)
            assert phones([event]) == ["+14155550102"]
            assert stream.position > event.number
            position = stream.position
        async with engine.events.subscribe(since=position) as stream:
            await engine.unsubscribes.add(there.id, "+14155550103")
            heard = await take(stream, 1)
        assert phones(heard) == ["+14155550103"]


async def test_an_operation_that_is_undone_has_no_event(open_storage: OpenStorage) -> None:
    """An operation that raises after it has written leaves no event, and takes no number."""
    storage = open_storage(clock_of_loop())
    async with engine_on(storage) as engine:
        workspace = await given_workspace(engine)

        def broken(tx: Transaction) -> None:
            tx.trail.append(make_trail_entry(workspace_id=workspace.id, phone="+1", state="all", reason="x"))
            raise KeyError("broken")

        async with engine.events.subscribe() as stream:
            with pytest.raises(KeyError):
                await storage.write(broken)
            await engine.unsubscribes.add(workspace.id, "+14155550101")
            (event,) = await take(stream, 1)
        assert (phones([event]), event.number) == (["+14155550101"], 1)


async def test_a_commit_that_fails_has_no_event(tmp_path: Path) -> None:
    """Neither of the operation that spoils it, nor of those that were to be committed with it."""
    storage = SqliteStorage(tmp_path / "engine.db", clock=clock_of_loop())
    async with engine_on(storage) as engine:
        workspace = await given_workspace(engine)

        def spoil(tx: Transaction) -> None:
            tx.trail.append(make_trail_entry(workspace_id=workspace.id, phone="+1", state="all", reason="x"))
            connection = tx.trail._rows.backend.connection  # type: ignore[attr-defined]
            connection.execute("PRAGMA defer_foreign_keys = ON")
            connection.execute("INSERT INTO runs (campaign_number, owner_epoch) VALUES (999, 1)")

        with pytest.raises(StorageError, match="Nothing was written"):
            await storage.write(spoil)
        await engine.unsubscribes.add(workspace.id, "+14155550101")
        assert phones(await rest(engine)) == ["+14155550101"]


async def test_a_change_by_another_process_has_an_event(tmp_path: Path) -> None:
    """A second opening of the file, as the command line's is."""
    path = tmp_path / "engine.db"
    async with (
        engine_on(SqliteStorage(path, clock=clock_of_loop())) as engine,
        engine_on(SqliteStorage(path, clock=clock_of_loop())) as other,
    ):
        workspace = await given_workspace(engine)
        async with engine.events.subscribe() as stream:
            await other.unsubscribes.add(workspace.id, "+14155550101")
            assert phones(await take(stream, 1)) == ["+14155550101"]


async def test_a_subscriber_goes_on_where_it_was_after_a_restart(tmp_path: Path) -> None:
    """By the stream's position, or by an event's number; 0 is from the beginning."""
    path = tmp_path / "engine.db"
    numbers = [f"+1415555010{n}" for n in range(6)]
    async with engine_on(SqliteStorage(path, clock=clock_of_loop())) as engine:
        workspace = await given_workspace(engine)
        async with engine.events.subscribe() as stream:
            await engine.unsubscribes.add(workspace.id, *numbers[:3])
            heard = await take(stream, 2)
            assert stream.position == heard[-1].number
            position = stream.position
        await engine.unsubscribes.add(workspace.id, numbers[3])
    async with engine_on(SqliteStorage(path, clock=clock_of_loop())) as engine:
        async with engine.events.subscribe(since=position) as stream:
            assert phones(await take(stream, 2)) == numbers[2:4]
            await engine.unsubscribes.add(workspace.id, numbers[4])
            assert phones(await take(stream, 1)) == numbers[4:5]
        assert phones(await rest(engine, since=heard[0].number)) == numbers[1:5]
        assert phones(await rest(engine, workspace_id=workspace.id)) == numbers[:5]


async def test_a_stream_that_begins_now_has_no_earlier_events(engine: Outreach, workspace: Workspace) -> None:
    """Without `since`, it has the events that are committed from its beginning on."""
    await engine.unsubscribes.add(workspace.id, "+14155550101")
    async with engine.events.subscribe() as stream:
        await engine.unsubscribes.add(workspace.id, "+14155550102")
        assert phones(await take(stream, 1)) == ["+14155550102"]


async def test_a_slow_subscriber_misses_nothing_and_holds_nobody_up(engine: Outreach, workspace: Workspace) -> None:
    """More than is read at a time has happened before it asks for the second event."""
    numbers = [one.phone_number for one in contacts(1200)]
    async with engine.events.subscribe() as slow, engine.events.subscribe() as quick:
        await engine.unsubscribes.add(workspace.id, numbers[0])
        assert phones(await take(slow, 1)) == numbers[:1]
        await engine.unsubscribes.add(workspace.id, *numbers[1:])
        assert phones(await take(quick, 1200)) == numbers
        assert phones(await take(slow, 1199)) == numbers[1:]


async def test_a_database_that_has_not_come_so_far_is_refused(engine: Outreach, workspace: Workspace) -> None:
    """It was restored from a copy, or is another one: what comes next would not follow on what was heard."""
    await engine.unsubscribes.add(workspace.id, "+14155550101")
    async with engine.events.subscribe(since=1):
        pass
    with pytest.raises(Conflict, match="has come to event 1 only, not to 2"):
        await engine.events.subscribe(since=2).__aenter__()


async def test_events_have_the_type_that_was_asked_for(engine: Outreach, workspace: Workspace) -> None:
    """What a type checker knows of them; `make check` fails where it does not."""
    async with engine.events.subscribe(OptedOut, workspace_id=workspace.id) as stream:
        assert_type(stream, EventStream[OptedOut])
        await engine.unsubscribes.add(workspace.id, "+14155550101")
        async for event in stream:
            assert_type(event, OptedOut)
            assert event.phone == "+14155550101"
            break
    assert_type(engine.events.subscribe(), EventStream[Event])
    assert_type(engine.events.subscribe(OptedOut, OptedIn), EventStream[OptedOut | OptedIn])
    three = engine.events.subscribe(OptedOut, OptedIn, MessageReceived)
    assert_type(three, EventStream[OptedOut | OptedIn | MessageReceived])
    four = engine.events.subscribe(OptedOut, OptedIn, MessageReceived, CallEnded)
    assert_type(four, EventStream[Event])


async def test_a_stream_that_was_not_entered_is_refused_at_once(engine: Outreach, workspace: Workspace) -> None:
    """It would tell all history: where events begin is decided as it is entered."""
    await engine.unsubscribes.add(workspace.id, "+14155550101")
    with pytest.raises(InvalidRequest, match=r"async with engine\.events\.subscribe"):
        [event async for event in engine.events.subscribe()]
    with pytest.raises(InvalidRequest, match="Enter the stream before"):
        await anext(engine.events.subscribe(since=0))
    async with engine.events.subscribe() as stream:
        pass
    with pytest.raises(InvalidRequest, match="subscribe again"):
        await stream.__aenter__()


@pytest.mark.parametrize("name", [None, "n"])
async def test_one_task_at_a_time_reads_a_stream(engine: Outreach, name: str | None) -> None:
    """Two would get the same events."""
    workspace = await given_workspace(engine)
    subscribed: Any = engine.events.subscribe(OptedOut, name=name)
    async with subscribed as stream:
        tasks = [asyncio.create_task(anext(stream)) for _ in range(2)]
        await anyio.lowlevel.checkpoint()
        await engine.unsubscribes.add(workspace.id, "+14155550101", "+14155550102")
        first, second = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(first, OptedOut)
        assert isinstance(second, InvalidRequest)
        assert phones([first, await anext(stream)]) == ["+14155550101", "+14155550102"]
        with anyio.move_on_after(1):
            await anext(stream)
        await engine.unsubscribes.add(workspace.id, "+14155550103")
        assert phones([await anext(stream)]) == ["+14155550103"]


@pytest.mark.parametrize("kind", ["RecipientEnded", int, OptedOut | OptedIn, None])
async def test_what_is_no_class_of_events_is_refused_at_once(engine: Outreach, kind: Any) -> None:
    """In words, and not by a TypeError when the first event comes."""
    with pytest.raises(InvalidRequest, match=r"must be a class of outreach\.events") as caught:
        engine.events.subscribe(OptedOut, kind)
    assert [detail.path for detail in caught.value.details] == ["kinds[1]"]


async def test_a_number_that_is_none_is_refused(engine: Outreach) -> None:
    """A text, a share or a truth value is no place in the order of events."""
    for since in (-1, "7", 1.5, True):
        with pytest.raises(InvalidRequest, match="since"):
            engine.events.subscribe(since=since)  # type: ignore[arg-type]


async def test_events_of_a_workspace_that_is_not_there_are_refused(engine: Outreach) -> None:
    """A slip in the identifier does not look like silence."""
    with pytest.raises(NotFound):
        await engine.events.subscribe(workspace_id=new_id()).__aenter__()


async def test_a_stream_ends_with_its_engine(open_storage: OpenStorage) -> None:
    """One that waits is woken; one that asks afterwards is told the same; the engine can be opened again."""
    engine = engine_on(open_storage(clock_of_loop()))
    ended: list[str] = []

    async def listen(started: anyio.Event) -> None:
        async with engine.events.subscribe() as stream:
            started.set()
            ended.extend([f"heard {event}" async for event in stream])
            ended.append("ended")
            with pytest.raises(StopAsyncIteration):
                await anext(stream)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            async with engine:
                started = anyio.Event()
                tasks.start_soon(listen, started)
                await started.wait()
            while not ended:
                await anyio.lowlevel.checkpoint()
            assert ended == ["ended"]
            async with engine:
                assert await rest(engine) == []


async def fail(engine: Outreach) -> None:
    """Subscribe, and make a mistake at the first event."""
    async with engine.events.subscribe(since=0) as stream:
        async for event in stream:
            assert 1 / (event.number - event.number)


async def test_a_subscriber_that_is_cancelled_or_fails_troubles_nobody(open_storage: OpenStorage) -> None:
    """What it raises is its own; another one goes on."""
    async with dispatching(open_storage(clock_of_loop())) as rig:
        workspace = await given_workspace(rig.engine)
        async with rig.engine.events.subscribe(RecipientEnded) as good:
            with anyio.move_on_after(0.05) as scope:
                async with rig.engine.events.subscribe() as cancelled:
                    await anext(cancelled)
            assert scope.cancelled_caught
            campaign = await given_campaign(rig.engine, workspace)
            with pytest.raises(ZeroDivisionError):
                await fail(rig.engine)
            await rig.engine.campaigns.start(workspace.id, campaign.id)
            events = await take(good, 3)
        assert sorted(event.position for event in events) == [0, 1, 2]
        assert rig.engine.health().failures == 0


async def test_a_database_that_cannot_be_read_is_the_subscribers_to_hear(engine: Outreach) -> None:
    """Nothing is passed over in silence."""
    workspace = await given_workspace(engine)
    async with engine.events.subscribe(workspace_id=workspace.id) as stream:
        read = engine._storage.read

        async def unreadable(_: Any) -> Any:
            raise StorageError("The disk is gone.")

        engine._storage.read = unreadable  # type: ignore[method-assign, assignment]
        with pytest.raises(StorageError, match="The disk is gone"):
            await anext(stream)
        engine._storage.read = read  # type: ignore[method-assign]


async def test_a_closed_stream_ends_at_once(open_storage: OpenStorage) -> None:
    """Also with events that it has read and not handed out: `position` is where a later one goes on."""
    async with engine_on(open_storage(clock_of_loop())) as engine:
        workspace = (await given_workspace(engine)).id
        await engine.unsubscribes.add(workspace, "+14155550001", "+14155550002", "+14155550003")
        async with engine.events.subscribe(OptedOut, since=0) as stream:
            assert (await anext(stream)).phone == "+14155550001"
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
        async with engine.events.subscribe(OptedOut, since=stream.position) as stream:
            assert (await anext(stream)).phone == "+14155550002"
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
