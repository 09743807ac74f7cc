from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from types import MappingProxyType
from typing import Any

import anyio
import attrs
import pytest
from anyio.lowlevel import checkpoint

from outreach import (
    BusinessHours,
    Call,
    CampaignCreated,
    EngineConfig,
    Flow,
    FlowStep,
    InvalidRequest,
    Message,
    NewAgent,
    NewCall,
    NewCallCampaign,
    NewFlow,
    NewMessage,
    NewNumber,
    NewRecipient,
    NewSmsCampaign,
    NewTrunk,
    NotFound,
    Number,
    Outreach,
    TimeWindow,
    Trunk,
    Workspace,
)
from outreach.errors import RequestInProgress, StorageBusy, StorageError
from outreach.ledger.access import idempotency
from outreach.models import FollowUpCreated, NewFollowUp, NewTestMessage, PreparedRecipient
from outreach.server_support import prepare_recipient
from outreach.services.idempotency import Idempotency, IdempotencyGuard
from outreach.storage.base.writer import CommitUnknown
from outreach.testing.builders import make_worker, new_id
from outreach.testing.clock import ManualClock
from outreach.testing.scripted import ScriptedVoice
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.calling import CALLS, given_agent
from tests.engine.conftest import OpenStorage
from tests.engine.rig import WatchedStorage, contacts, dispatching, given_workspace

pytestmark = pytest.mark.virtual_time

SPRING = NewSmsCampaign(name="Spring", body="Hi", carrier="twilio", from_number="+14155550199")
MESSAGE = NewMessage(to="+14155550101", body="Hi", from_number="+14155550199", carrier="twilio")

Create = Callable[[Outreach, Workspace, str], Awaitable[Any]]


async def _call(engine: Outreach, workspace: Workspace, key: str) -> Call:
    agents = (await engine.agents.list(workspace.id)).items
    new = NewCall(agent_id=agents[0].id, to="+14155550101", variables=MappingProxyType({"b": 1, "a": [True, None]}))
    return await engine.calls.create(workspace.id, new, idempotency_key=key)


async def _call_campaign(engine: Outreach, workspace: Workspace, key: str) -> CampaignCreated:
    agents = (await engine.agents.list(workspace.id)).items
    hours = BusinessHours(
        enabled=True,
        timezone="America/New_York",
        schedule={"monday": (TimeWindow(start_minute=540, end_minute=1020),)},
        batch_concurrency=5,
    )
    new = NewCallCampaign(name="Calls", agent_id=agents[0].id, business_hours=hours)
    return await engine.campaigns.create_call(workspace.id, new, contacts(3), idempotency_key=key)


async def _earlier(engine: Outreach, workspace: Workspace) -> str:
    """Return the workspace's first campaign, or one that is not there."""
    campaigns = (await engine.campaigns.list(workspace.id)).items
    return campaigns[-1].id if campaigns else new_id()


async def _clone(engine: Outreach, workspace: Workspace, key: str) -> CampaignCreated:
    return await engine.campaigns.clone(workspace.id, await _earlier(engine, workspace), idempotency_key=key)


async def _follow_up(engine: Outreach, workspace: Workspace, key: str) -> FollowUpCreated:
    earlier = await _earlier(engine, workspace)
    return await engine.campaigns.follow_up(
        workspace.id, earlier, NewFollowUp(results=["invalid_number"], include={"replied"}), idempotency_key=key
    )


async def _send_test(engine: Outreach, workspace: Workspace, key: str) -> Message:
    earlier = await _earlier(engine, workspace)
    return await engine.messages.send_test(
        workspace.id, earlier, NewTestMessage(contact="12", to="+14155550142", at_any_hour=True), idempotency_key=key
    )


CREATING: dict[str, Create] = {
    "campaigns.clone": _clone,
    "campaigns.follow_up": _follow_up,
    "messages.send_test": _send_test,
    "campaigns.create_sms": lambda engine, workspace, key: engine.campaigns.create_sms(
        workspace.id, SPRING, contacts(3), idempotency_key=key
    ),
    "campaigns.create_call": _call_campaign,
    "messages.send": lambda engine, workspace, key: engine.messages.send(workspace.id, MESSAGE, idempotency_key=key),
    "calls.create": _call,
    "agents.create": lambda engine, workspace, key: engine.agents.create(
        workspace.id, NewAgent(name="Ada", placeholders=["name"]), idempotency_key=key
    ),
    "trunks.create": lambda engine, workspace, key: engine.trunks.create(
        workspace.id, NewTrunk(name="Main", address="sip.example.com"), idempotency_key=key
    ),
    "flows.create": lambda engine, workspace, key: engine.flows.create(
        workspace.id, NewFlow(name="Hello", steps=[FlowStep(kind="send", body="Hi")]), idempotency_key=key
    ),
    "numbers.create": lambda engine, workspace, key: engine.numbers.create(
        workspace.id, NewNumber(phone="+14155550101", carrier="twilio"), idempotency_key=key
    ),
}
"""Every method that makes something and takes a key."""


async def given_keyed_workspace(engine: Outreach) -> Workspace:
    """Make a workspace that has an agent, and a campaign with a contact that has no number."""
    workspace = await given_workspace(engine)
    await engine.agents.create(workspace.id, NewAgent(name="First"))
    await engine.campaigns.create_sms(workspace.id, SPRING, [*contacts(2), NewRecipient(phone_number="12")])
    return workspace


@pytest.mark.parametrize("name", CREATING)
async def test_the_same_key_makes_one_thing_and_returns_it(
    open_storage: OpenStorage, clock: ManualClock, name: str
) -> None:
    """At once, when a request that died would be taken over, and until the key is forgotten after a day."""
    async with Outreach(open_storage(clock), clock=clock) as engine:
        workspace = await given_keyed_workspace(engine)
        first = await CREATING[name](engine, workspace, "order-42")
        for seconds in (0, 61, 3600, 80_000):
            clock.advance(seconds)
            assert await CREATING[name](engine, workspace, "order-42") == first
        if name in {"numbers.create", "calls.create"}:
            # The rules that forbid a second one are asked again under another key.
            return
        assert await CREATING[name](engine, workspace, "order-43") != first
        clock.advance(86_400)
        assert await CREATING[name](engine, workspace, "order-42") != first


@pytest.mark.parametrize("name", CREATING)
async def test_many_at_once_with_one_key_make_one_thing(engine: Outreach, name: str) -> None:
    """The others wait for the first one, and get what it made."""
    workspace = await given_keyed_workspace(engine)
    made: list[Any] = []

    async def request() -> None:
        made.append(await CREATING[name](engine, workspace, "order-42"))

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(request)
    assert made == [made[0]] * 8


async def test_what_is_returned_is_the_thing_as_it_is_now(engine: Outreach, workspace: Workspace) -> None:
    """A program that died between creating and starting learns whether it had started."""
    await engine.unsubscribes.add(workspace.id, "+14155550001")
    first = await engine.campaigns.create_sms(workspace.id, SPRING, contacts(3), idempotency_key="k")
    assert (first.opted_out_excluded, first.campaign.status) == (1, "ready")
    await engine.campaigns.start(workspace.id, first.campaign.id)
    again = await engine.campaigns.create_sms(workspace.id, SPRING, contacts(3), idempotency_key="k")
    assert (again.campaign.id, again.campaign.status) == (first.campaign.id, "active")
    assert again.opted_out_excluded == 1


async def test_other_content_under_the_same_key_is_refused(engine: Outreach, workspace: Workspace) -> None:
    """Whatever of it differs, and whatever it is; nothing is made."""
    await engine.messages.send(workspace.id, MESSAGE, idempotency_key="k")
    await engine.campaigns.create_sms(workspace.id, SPRING, contacts(3), idempotency_key="k")
    for attempt in (
        engine.messages.send(workspace.id, attrs.evolve(MESSAGE, body="Ho"), idempotency_key="k"),
        engine.campaigns.create_sms(workspace.id, attrs.evolve(SPRING, name="Fall"), contacts(3), idempotency_key="k"),
        engine.campaigns.create_sms(workspace.id, SPRING, contacts(2), idempotency_key="k"),
        engine.campaigns.create_sms(workspace.id, SPRING, contacts(3, first=1), idempotency_key="k"),
        engine.campaigns.create_sms(workspace.id, SPRING, [], idempotency_key="k"),
    ):
        with pytest.raises(InvalidRequest, match="was used before with other") as caught:
            await attempt
        assert [detail.path for detail in caught.value.details] == ["idempotency_key"]
    assert (await engine.campaigns.list(workspace.id)).total == 1


async def test_other_copies_under_the_same_key_are_refused(engine: Outreach) -> None:
    """Of another campaign, by another name, for other results, without somebody, with another text; nothing is made."""
    workspace = await given_keyed_workspace(engine)
    earlier = await _earlier(engine, workspace)
    for name in ("campaigns.clone", "campaigns.follow_up", "messages.send_test"):
        await CREATING[name](engine, workspace, "k")
    copies, results = engine.campaigns, ["invalid_number"]
    other = (await copies.list(workspace.id)).items[0].id
    known: Any = {"results": results, "include": {"replied"}}
    test: Any = {"contact": "12", "to": "+14155550142", "at_any_hour": True}
    for attempt in (
        copies.clone(workspace.id, earlier, name="Another", idempotency_key="k"),
        copies.clone(workspace.id, other, idempotency_key="k"),
        copies.follow_up(workspace.id, other, NewFollowUp(**known), idempotency_key="k"),
        copies.follow_up(workspace.id, earlier, NewFollowUp(**known | {"results": ["skipped"]}), idempotency_key="k"),
        copies.follow_up(
            workspace.id, earlier, NewFollowUp(**known | {"include": {"replied", "reached"}}), idempotency_key="k"
        ),
        copies.follow_up(workspace.id, earlier, NewFollowUp(**known, name="Another"), idempotency_key="k"),
        copies.follow_up(workspace.id, earlier, NewFollowUp(**known, body="Hello again"), idempotency_key="k"),
        engine.messages.send_test(workspace.id, other, NewTestMessage(**test), idempotency_key="k"),
        engine.messages.send_test(
            workspace.id, earlier, NewTestMessage(**test | {"to": "+14155550143"}), idempotency_key="k"
        ),
        engine.messages.send_test(
            workspace.id, earlier, NewTestMessage(**test | {"contact": "+14155550000"}), idempotency_key="k"
        ),
        engine.messages.send_test(
            workspace.id, earlier, NewTestMessage(**test | {"at_any_hour": False}), idempotency_key="k"
        ),
    ):
        with pytest.raises(InvalidRequest, match="was used before with other") as caught:
            await attempt
        assert [detail.path for detail in caught.value.details] == ["idempotency_key"]
    # What is said twice is no other content.
    again = await copies.follow_up(
        workspace.id,
        earlier,
        NewFollowUp(**known | {"include": ["replied"], "results": results * 2}),
        idempotency_key="k",
    )
    assert again.selected == 1
    assert (await copies.list(workspace.id)).total == 3


async def test_contacts_are_compared_from_whatever_source_they_come(engine: Outreach, workspace: Workspace) -> None:
    """A list, a generator, an asynchronous one, or chunks that were prepared elsewhere: what they say decides."""
    people = [
        NewRecipient(phone_number=f"415555000{n}", first_name="Zoë", custom_variables={"b": n, "a": [None, 1.5]})
        for n in range(3)
    ]
    reordered = [attrs.evolve(one, custom_variables=dict(reversed([*one.custom_variables.items()]))) for one in people]

    async def each() -> AsyncIterator[NewRecipient]:
        for one in people:
            yield one

    async def chunked() -> AsyncIterator[list[PreparedRecipient]]:
        yield [prepare_recipient(one, "US") for one in people[:2]]
        yield [prepare_recipient(one, "CA") for one in people[2:]]

    first = await engine.campaigns.create_sms(workspace.id, SPRING, people, idempotency_key="k")
    for source in (iter(people), each(), chunked(), reordered):
        again = await engine.campaigns.create_sms(workspace.id, SPRING, source, idempotency_key="k")
        assert again.campaign.id == first.campaign.id
    with pytest.raises(InvalidRequest, match="other contacts"):
        await engine.campaigns.create_sms(workspace.id, SPRING, people[::-1], idempotency_key="k")


async def test_a_request_that_was_refused_may_be_corrected(engine: Outreach, workspace: Workspace) -> None:
    """Its key is given back, also where the contacts were what was wrong."""
    bad = [NewRecipient(phone_number="+14155550101", custom_variables={"x": object()})]
    for people in ([], [NewRecipient(phone_number="")], bad):
        with pytest.raises(InvalidRequest, match="recipients"):
            await engine.campaigns.create_sms(workspace.id, SPRING, people, idempotency_key="k")
    assert (await engine.campaigns.create_sms(workspace.id, SPRING, contacts(1), idempotency_key="k")).campaign.name
    with pytest.raises(InvalidRequest, match="to:"):
        await engine.messages.send(workspace.id, attrs.evolve(MESSAGE, to="x"), idempotency_key="k")
    await engine.messages.send(workspace.id, MESSAGE, idempotency_key="k")


async def test_a_write_that_failed_leaves_neither_the_thing_nor_the_key(open_storage: OpenStorage) -> None:
    """What is made and what the key replays are committed together, or neither is."""
    storage = WatchedStorage(open_storage(clock_of_loop()))
    async with Outreach(storage, clock=clock_of_loop()) as engine:
        workspace = await given_workspace(engine)
        count = 0

        def fail_second() -> None:
            nonlocal count
            count += 1
            if count == 2:
                raise StorageError("The disk is gone.")

        storage.before_write = fail_second
        with pytest.raises(StorageError):
            await engine.trunks.create(
                workspace.id, NewTrunk(name="Main", address="sip.example.com"), idempotency_key="k"
            )
        storage.before_write = lambda: None
        made = await engine.trunks.create(
            workspace.id, NewTrunk(name="Main", address="sip.example.com"), idempotency_key="k"
        )
        assert list(await engine.trunks.list(workspace.id)) == [made]


@pytest.mark.parametrize("count", [3, EngineConfig().insert_batch_size + 1])
async def test_a_campaign_whose_key_was_taken_over_is_not_made(
    open_storage: OpenStorage, clock: ManualClock, count: int
) -> None:
    """In one transaction or in many: the contacts came too slowly, and a later call with the key has made it."""
    async with Outreach(open_storage(clock), clock=clock) as engine:
        workspace = await given_workspace(engine)
        made: list[CampaignCreated] = []

        async def slow() -> AsyncIterator[NewRecipient]:
            clock.advance(61)
            made.append(await engine.campaigns.create_sms(workspace.id, SPRING, contacts(count), idempotency_key="k"))
            for contact in contacts(count):
                yield contact

        with pytest.raises(RequestInProgress):
            await engine.campaigns.create_sms(workspace.id, SPRING, slow(), idempotency_key="k")
        assert list((await engine.campaigns.list(workspace.id)).items) == [made[0].campaign]
        again = await engine.campaigns.create_sms(workspace.id, SPRING, contacts(count), idempotency_key="k")
        assert again == made[0]


@pytest.mark.parametrize("kind", ["trunk", "flow", "number"])
async def test_what_the_key_made_and_was_removed_is_not_made_again(engine: Outreach, kind: str) -> None:
    """It says what is missing: to make another one takes another key."""
    workspace = await given_workspace(engine)
    steps = [FlowStep(kind="send", body="Hi")]

    async def make(key: str) -> Trunk | Flow | Number:
        match kind:
            case "trunk":
                return await engine.trunks.create(
                    workspace.id, NewTrunk(name="A", address="sip.example.com"), idempotency_key=key
                )
            case "flow":
                return await engine.flows.create(workspace.id, NewFlow(name="A", steps=steps), idempotency_key=key)
            case _:
                return await engine.numbers.create(workspace.id, NewNumber(phone="+14155550199"), idempotency_key=key)

    made = await make("k")
    service = getattr(engine, f"{kind}s")
    await service.remove(workspace.id, made.id)
    with pytest.raises(NotFound, match=f"no {kind} '{made.id}'"):
        await make("k")
    assert list(await service.list(workspace.id)) == []
    assert (await make("l")).id != made.id


async def test_a_call_that_waits_for_its_acceptance_holds_its_key(open_storage: OpenStorage) -> None:
    """The second asks while the first waits, and gets the call with what the provider named it."""
    voice = ScriptedVoice()
    config = attrs.evolve(CALLS, acceptance_wait_seconds=20.0)
    async with dispatching(open_storage(clock_of_loop()), voice=voice, config=config) as rig:
        workspace = await given_workspace(rig.engine)
        new = NewCall(agent_id=await given_agent(rig.engine, workspace), to="+14155550101")
        calls: list[Call] = []

        async def request() -> None:
            calls.append(await rig.engine.calls.create(workspace.id, new, idempotency_key="k"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(request)
            tasks.start_soon(request)
        assert calls[0].id == calls[1].id
        assert calls[0].provider_call_id == calls[1].provider_call_id is not None
        assert len(voice.requests) == 1


@pytest.mark.parametrize("away", ["read", "write"])
@pytest.mark.parametrize("key", ["k", None])
async def test_a_database_lost_while_a_call_waits_fails_no_call_that_is_queued(
    open_storage: OpenStorage, away: str, key: str | None
) -> None:
    """A caller that got the error "nothing was written" would have the contact called once more."""
    storage = WatchedStorage(open_storage(clock_of_loop()))
    async with Outreach(storage, clock=clock_of_loop(), config=CALLS) as engine:
        workspace = await given_workspace(engine)
        new = NewCall(agent_id=await given_agent(engine, workspace), to="+14155550101")
        until = clock_of_loop().now() + timedelta(hours=1)
        await storage.write(lambda tx: tx.workers.put(make_worker(until=until)))

        async def fail(*_: object, **__: object) -> None:
            raise StorageError("Nothing was written. The connection to the database was lost.")

        with pytest.MonkeyPatch.context() as patch:

            async def go_away(result: object) -> None:
                # The call itself, and whether somebody may place it.
                if isinstance(result, tuple):
                    patch.setattr(storage, away, fail)

            storage.after_write = go_away
            call = await engine.calls.create(workspace.id, new, idempotency_key=key)
        assert await engine.calls.get(workspace.id, call.id) == call
        assert call.status == "queued"


@pytest.mark.parametrize("how", ["cancelled", "unknown"])
async def test_a_call_whose_request_ends_at_its_commit_is_returned_at_once(open_storage: OpenStorage, how: str) -> None:
    """The client has gone, or nobody can tell whether it was committed: no fuller answer will follow."""
    config = attrs.evolve(CALLS, idempotency_wait_seconds=0.5)
    async with dispatching(open_storage(clock_of_loop()), config=config) as rig:
        workspace = await given_workspace(rig.engine)
        await given_agent(rig.engine, workspace)

        async def end(result: object) -> None:
            if isinstance(result, tuple) and result and isinstance(result[0], Call):
                rig.storage.after_write = None
                if how == "unknown":
                    raise CommitUnknown("The database has gone.")
                scope.cancel()
                await checkpoint()

        rig.storage.after_write = end
        with anyio.CancelScope() as scope, suppress(CommitUnknown):
            await _call(rig.engine, workspace, "k")
        assert rig.storage.after_write is None
        again = await _call(rig.engine, workspace, "k")
        await rig.voice.wait_for_requests(1)
        assert [one.id for one in (await rig.engine.calls.list(workspace.id)).items] == [again.id]


@pytest.mark.parametrize("key", ["", "x" * 256, "a\nb", 42, b"k", "\ud800"])
async def test_what_is_no_key_is_refused(engine: Outreach, workspace: Workspace, key: Any) -> None:
    """1 to 255 printable characters, of whatever script."""
    with pytest.raises(InvalidRequest) as caught:
        await engine.messages.send(workspace.id, MESSAGE, idempotency_key=key)
    assert caught.value.details[0].path == "idempotency_key"
    await engine.messages.send(workspace.id, MESSAGE, idempotency_key="Bestellung für Zoë " + "x" * 230)


async def test_what_cannot_be_compared_is_refused(engine: Outreach, workspace: Workspace) -> None:
    """A value that is no JSON has no digest; it cannot be a variable either."""
    new = NewCall(agent_id=new_id(), to="+14155550101", variables={"x": object()})
    with pytest.raises(InvalidRequest, match="cannot be compared"):
        await engine.calls.create(workspace.id, new, idempotency_key="k")


async def once(
    keys: Idempotency,
    workspace_id: str,
    key: str | None,
    make: Callable[[IdempotencyGuard[str]], Awaitable[str]],
    content: str = "this",
) -> str:
    """Make a text, once for each key."""

    async def recall(stored: bytes) -> str:
        return stored.decode()

    return await keys.once(workspace_id, "op", key, content=content, make=make, remember=str.encode, recall=recall)


async def test_a_making_that_forgets_its_key_has_it_finished(engine: Outreach, workspace: Workspace) -> None:
    """There is no way to make something under a key and leave the key open."""
    keys = Idempotency(engine.messages._context)
    made = 0

    async def forgetful(_: IdempotencyGuard[str]) -> str:
        nonlocal made
        made += 1
        return f"thing {made}"

    results = [await once(keys, workspace.id, "k", forgetful) for _ in range(3)]
    assert results == ["thing 1"] * 3
    assert made == 1
    assert await once(keys, workspace.id, None, forgetful) == "thing 2"


async def test_an_error_gives_the_key_back(engine: Outreach, workspace: Workspace) -> None:
    """docs/interface.md#safe-retry: a 4xx is not stored; then another body may come with the key."""
    keys = Idempotency(engine.messages._context)

    async def broken(_: IdempotencyGuard[str]) -> str:
        raise ZeroDivisionError

    async def sound(_: IdempotencyGuard[str]) -> str:
        return "made"

    with pytest.raises(ZeroDivisionError):
        await once(keys, workspace.id, "k", broken)
    assert await once(keys, workspace.id, "k", sound, content="another") == "made"


async def test_a_key_that_cannot_be_given_back_hides_no_end(engine: Outreach, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither why the request was refused nor that it was cancelled; the claim on the key runs out by itself."""
    workspace = await given_workspace(engine)

    def busy(*_: object, **__: object) -> None:
        raise StorageBusy("The database is busy.")

    monkeypatch.setattr(idempotency, "release_claim", busy)
    with pytest.raises(InvalidRequest, match="is not a phone number"):
        await engine.messages.send(workspace.id, attrs.evolve(MESSAGE, to="nobody"), idempotency_key="order-42")

    async def never() -> AsyncIterator[NewRecipient]:
        await anyio.sleep_forever()
        yield NewRecipient(phone_number="+14155550101")

    with anyio.move_on_after(1) as waited:
        await engine.campaigns.create_sms(workspace.id, SPRING, never(), idempotency_key="order-43")
    assert waited.cancelled_caught


async def test_a_key_that_cannot_be_given_back_hides_no_error(open_storage: OpenStorage) -> None:
    """Least of all that something may have been written."""
    storage = WatchedStorage(open_storage(clock_of_loop()))
    async with Outreach(storage, clock=clock_of_loop()) as engine:
        workspace = await given_workspace(engine)

        def go_away() -> None:
            raise StorageError("Nothing was written. The connection to the database was lost.")

        async def lose(result: object) -> None:
            if isinstance(result, Message):
                storage.before_write = go_away
                raise CommitUnknown("It may have been written.")

        storage.after_write = lose
        with pytest.raises(CommitUnknown):
            await engine.messages.send(workspace.id, MESSAGE, idempotency_key="k")


async def test_a_request_that_is_cancelled_as_it_takes_its_key_gives_it_back(open_storage: OpenStorage) -> None:
    """Its claim may be committed all the same, and would keep the same request waiting as for one that runs."""
    storage = WatchedStorage(open_storage(clock_of_loop()))
    async with Outreach(storage, clock=clock_of_loop()) as engine:
        workspace = await given_workspace(engine)
        begun = anyio.current_time()
        with anyio.CancelScope() as scope:

            async def cancel(_: object) -> None:
                scope.cancel()
                await checkpoint()

            storage.after_write = cancel
            await engine.messages.send(workspace.id, MESSAGE, idempotency_key="k")
        assert scope.cancelled_caught
        storage.after_write = None
        await engine.messages.send(workspace.id, MESSAGE, idempotency_key="k")
        assert anyio.current_time() - begun < 1


async def test_a_second_request_that_waits_too_long_gets_request_in_progress(engine: Outreach) -> None:
    """docs/interface.md#safe-retry: the second waits for a limited time, and fails while the first still runs."""
    workspace = await given_workspace(engine)
    context = engine.messages._context
    impatient = Idempotency(attrs.evolve(context, config=EngineConfig(idempotency_wait_seconds=0.1)))

    async def second(_: IdempotencyGuard[str]) -> str:
        pytest.fail("two requests hold one key")

    async def first(_: IdempotencyGuard[str]) -> str:
        with pytest.raises(RequestInProgress):
            await once(impatient, workspace.id, "k", second)
        return "made"

    assert await once(Idempotency(context), workspace.id, "k", first) == "made"
