from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import anyio
import attrs
import pytest

from outreach import Conflict, EngineConfig, InvalidRequest, NewCall, NewMessage, NotFound
from outreach.core.clock import Clock
from outreach.dispatch import reconciler as reconciler_module
from outreach.dispatch.reconciler import Reconciler
from outreach.dispatch.worker import Worker
from outreach.ledger.settling.callback_events import merge_event
from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.states import CallStatus, DispatchState, MessageStatus, RecipientStatus
from outreach.protocols.carrier import LookupRequest, OutboundMessage
from outreach.protocols.storage import Storage
from outreach.protocols.voice import CallRequest
from outreach.rules.provider_analyser import ProviderAnalyser
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import (
    NOW,
    make_agent,
    make_call,
    make_call_report,
    make_callback,
    make_dispatch,
    make_message,
    make_message_report,
    make_workspace,
    new_id,
)
from outreach.testing.clock import ManualClock, ShiftedClock
from outreach.testing.scripted import (
    ScriptedCarrier,
    ScriptedVoice,
    drop,
    hang,
    not_sent,
    refuse,
)
from tests.engine.calling import CALLS, POSITIVE, calls_of, event, given_agent, given_calls
from tests.engine.conftest import OpenStorage
from tests.engine.given import BACKOFF
from tests.engine.provider_pool import provider_pool_of
from tests.engine.rig import (
    QUICK,
    Rig,
    dispatching,
    given_campaign,
    given_workspace,
    make_engine_worker,
    people,
    reaches,
    reported,
    time_passes,
    until,
    until_true,
)

pytestmark = pytest.mark.virtual_time

R: TypeAlias = RecipientStatus
D: TypeAlias = DispatchState
TO = "+14155550123"


@attrs.frozen(kw_only=True)
class Doubt:
    """An unknown dispatch of a campaign, and what to look at it with."""

    rig: Rig
    clock: ShiftedClock
    campaign: Campaign
    reconciler: Reconciler

    async def dispatches(self) -> list[Dispatch]:
        """Return all requests for the one contact."""
        return list(
            await self.rig.storage.read(
                lambda tx: tx.dispatches.of_recipient(self.campaign.workspace_id, self.campaign.id, 0)
            )
        )

    async def first(self) -> Dispatch:
        """Return the one that is, or was, unknown."""
        return (await self.dispatches())[0]

    async def contact(self) -> tuple[RecipientStatus, str | None]:
        """Return status and reason of the one contact."""
        (one,) = await people(self.rig.engine, self.campaign)
        return one.status, one.reason

    async def becomes(self, status: RecipientStatus, reason: str | None = None) -> None:
        """Wait until the one contact stands so."""
        await until(self.contact, lambda found: found == (status, reason))

    async def later(self, **delta: float) -> None:
        """Let time pass and look at what is unknown once."""
        await time_passes(self.rig, self.clock, **delta)
        await self.reconciler.round()

    async def set_back(self, **delta: float) -> None:
        """Set the clock back and look at what is unknown once."""
        self.clock.shift(-timedelta(**delta))
        await self.reconciler.round()

    async def decide(self, decision: Any) -> Dispatch:
        """Decide as an operator."""
        dispatch = await self.first()
        return await self.rig.engine.dispatches.resolve(dispatch.workspace_id, dispatch.id, decision, actor="cli:ann")


@asynccontextmanager
async def in_doubt(
    storage: Callable[[Any], Any],
    *,
    channel: str = "sms",
    look_up: Any = "none",
    plan: Any = None,
    **changes: Any,
) -> AsyncIterator[Doubt]:
    """Send to one contact, and lose the answer."""
    clock = ShiftedClock()
    steps = [drop()] if plan is None else plan
    carrier, voice = ScriptedCarrier(steps, look_up=look_up), ScriptedVoice(steps, look_up=look_up)
    config = attrs.evolve(CALLS, **changes)
    async with dispatching(storage(clock), carrier=carrier, voice=voice, config=config, clock=clock) as rig:
        workspace = await given_workspace(rig.engine)
        given = given_campaign if channel == "sms" else given_calls
        campaign = await given(rig.engine, workspace, 1)
        await rig.engine.campaigns.start(workspace.id, campaign.id)
        # A reconciler of the test's own, whose rounds the test makes; the engine's own pauses for seconds.
        doubt = Doubt(rig=rig, clock=clock, campaign=campaign, reconciler=reconciler_of(rig, clock, config))
        await until(doubt.contact, lambda found: found[0] is R.UNKNOWN)
        yield doubt


def reconciler_of(rig: Rig, clock: Clock, config: EngineConfig) -> Reconciler:
    """Return one beside that of an engine."""
    provider_pool = provider_pool_of(rig.carrier, rig.voice)
    return Reconciler(storage=rig.storage, clock=clock, config=config, provider_pool=provider_pool, worker=rig.worker)


channels = pytest.mark.parametrize("channel", ["sms", "call"])


@channels
async def test_what_was_called_back_before_the_look_up_is_caught_up_with(
    open_storage: OpenStorage, channel: str
) -> None:
    """A callback that named the provider's identifier alone is merged when the look-up tells whose that is."""
    async with in_doubt(open_storage, channel=channel, look_up="evidence") as doubt:
        workspace_id = doubt.campaign.workspace_id
        told = {"workspace_id": workspace_id, "provider": (await doubt.first()).provider, "provider_id": "P-1"}
        report = make_message_report(**told) if channel == "sms" else make_call_report(outcome="positive", **told)
        early = make_callback(workspace_id=workspace_id, result="unmatched", report=report)
        await doubt.rig.storage.write(lambda tx: tx.callbacks.insert(early))
        _answer(doubt, DispatchOutcome(state=D.ACCEPTED, provider_id="P-1"))
        await doubt.later(minutes=2)
        assert await doubt.contact() == (R.COMPLETED, None)
        if channel == "sms":
            assert (await doubt.first()).report == "delivered"
        (record,) = await doubt.rig.engine.callbacks.list(workspace_id)
        assert record == attrs.evolve(early, result="merged", report=None)


@channels
async def test_a_look_up_that_says_it_was_refused_settles_it(open_storage: OpenStorage, channel: str) -> None:
    """A refusal that was only told later is a refusal."""
    async with in_doubt(open_storage, channel=channel, look_up="evidence") as doubt:
        _answer(doubt, DispatchOutcome(state=D.REFUSED, reason="invalid_number"))
        await doubt.later(minutes=2)
        assert await doubt.contact() == (R.FAILED, "invalid_number")
        await reaches(doubt.rig.engine, doubt.campaign, "completed")


async def test_a_look_up_that_returns_no_outcome_is_made_again(open_storage: OpenStorage) -> None:
    """As one that fails: it keeps no other one from being looked up."""
    async with in_doubt(open_storage, channel="sms", look_up="evidence") as doubt:
        _answer(doubt, "accepted")
        await doubt.later(minutes=2)
        assert (await doubt.contact())[0] == R.UNKNOWN
        _answer(doubt, DispatchOutcome(state=D.ACCEPTED, provider_id="P-1"))
        await doubt.later(minutes=2)
        await reaches(doubt.rig.engine, doubt.campaign, "completed")


@pytest.mark.parametrize("state", [D.ACCEPTED, D.REFUSED])
@channels
async def test_what_is_known_to_be_another_request_s_is_no_evidence(
    open_storage: OpenStorage, channel: str, state: DispatchState
) -> None:
    """Two requests that are alike to the provider: one is not taken for the other, but a third is for what it is."""
    async with in_doubt(open_storage, channel=channel, look_up="evidence") as doubt:
        first, storage = await doubt.first(), doubt.rig.storage
        twin = await _given_taken(doubt, provider=first.provider, provider_id="P-1")
        await _given_taken(doubt, provider="other", provider_id="P-2")
        _answer(
            doubt,
            DispatchOutcome(state=state, provider_id="P-1", reason="invalid_number" if state is D.REFUSED else None),
        )
        await doubt.later(minutes=2)
        assert ((await doubt.first()).state, (await doubt.contact())[0]) == (D.UNKNOWN, R.UNKNOWN)
        assert await storage.read(lambda tx: tx.dispatches.find(twin.id)) == twin
        _answer(doubt, DispatchOutcome(state=D.ACCEPTED, provider_id="P-2"))
        await doubt.later(minutes=2)
        assert ((await doubt.first()).state, (await doubt.first()).provider_id) == (D.ACCEPTED, "P-2")


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    ("rival", "believed"),
    [
        ({"state": D.UNKNOWN}, False),
        ({"state": D.DISPATCHING}, False),
        ({"state": D.ACCEPTED, "reason": "assumed_sent"}, False),
        ({"state": D.ACCEPTED, "provider_id": "P-9"}, True),
        ({"state": D.ACCEPTED, "provider_id": "P-1"}, False),
        ({"state": D.REFUSED}, True),
        ({"state": D.UNCONFIRMED, "to": "+14155550177"}, True),
        ({"state": D.UNCONFIRMED, "from_number": "+14155550177"}, True),
        ({"state": D.UNCONFIRMED, "created_at": timedelta(hours=-1)}, True),
    ],
)
async def test_a_record_without_our_identifier_proves_nothing_where_two_could_be_meant(
    open_storage: OpenStorage, rival: dict[str, Any], believed: bool, shared: bool
) -> None:
    """Of this workspace or of another one, which may send by the same account."""
    async with in_doubt(open_storage, look_up="evidence") as doubt:
        first, storage = await doubt.first(), doubt.rig.storage
        owner = make_workspace(id=new_id()) if shared else None
        message = make_message(workspace_id=owner.id if owner else first.workspace_id)
        created = first.created_at + rival.get("created_at", timedelta())
        changes = {
            "provider": first.provider,
            "from_number": first.from_number,
            "to": first.to,
            **rival,
            "created_at": created,
        }
        other = make_dispatch(workspace_id=message.workspace_id, message_id=message.id, epoch=99, **changes)

        def given(tx: Transaction) -> None:
            if owner is not None:
                tx.workspaces.insert(owner)
            tx.messages.insert(message)
            tx.dispatches.insert(other)

        await storage.write(given)
        _answer(doubt, DispatchOutcome(state=D.ACCEPTED, provider_id="P-1", circumstantial=True))
        await doubt.later(minutes=2)
        assert ((await doubt.first()).state is D.ACCEPTED) is believed


async def test_a_callback_gives_no_dispatch_an_identifier_that_another_one_has(storage: Storage) -> None:
    """Each identifier of a provider's belongs to one dispatch of the database, also over workspaces."""
    there = make_workspace(id=new_id())
    ours, theirs = make_message(), make_message(workspace_id=there.id)
    first = make_dispatch(message_id=ours.id, state=D.UNKNOWN)
    second = make_dispatch(message_id=theirs.id, workspace_id=there.id, state=D.ACCEPTED, provider_id="P-1")
    report = make_message_report(dispatch_id=first.id, provider_id="P-1")

    def operation(tx: Transaction) -> str:
        tx.workspaces.insert(there)
        for message in (ours, theirs):
            tx.messages.insert(message)
        for dispatch in (first, second):
            tx.dispatches.insert(dispatch)
        return merge_event(tx, report, backoff=BACKOFF, analyser=ProviderAnalyser(), now=NOW)

    assert await storage.write(operation) == "mismatched"


@channels
async def test_what_is_known_to_be_another_request_s_does_not_hold_the_deadline_up(
    open_storage: OpenStorage, channel: str
) -> None:
    """It is as if nothing were found."""
    async with in_doubt(open_storage, channel=channel, look_up="evidence") as doubt:
        first = await doubt.first()
        await _given_taken(doubt, provider=first.provider, provider_id="P-1")
        _answer(doubt, DispatchOutcome(state=D.ACCEPTED, provider_id="P-1"))
        await doubt.later(days=8)
        assert (await doubt.first()).state is D.UNCONFIRMED


@channels
async def test_what_is_not_found_while_it_may_be_on_its_way_is_no_evidence(
    open_storage: OpenStorage, channel: str
) -> None:
    """A provider that has nothing of it may get it yet, whatever the settings are.

    docs/delivery-contract.md#rule-2 and #rule-6.
    """
    quick = {"reconcile_delay_seconds": 1.0, "reconcile_retry_seconds": 1.0}
    async with in_doubt(open_storage, channel=channel, look_up="authoritative", **quick) as doubt:
        _answer(doubt, DispatchOutcome(state=D.NOT_SENT, reason="not_found"))
        # Time-out 30 s, life of an intent 5 s, lease 15 s, look-ahead 0.25 s.
        await doubt.later(seconds=40)
        assert [one.state for one in await doubt.dispatches()] == [D.UNKNOWN]
        _answer(doubt, DispatchOutcome(state=D.ACCEPTED, provider_id="late"))
        await doubt.later(seconds=2)
        assert [one.state for one in await doubt.dispatches()] == [D.ACCEPTED]


@channels
@pytest.mark.parametrize(
    "answer",
    [
        DispatchOutcome(state=D.NOT_SENT, reason="not_found"),
        DispatchOutcome(state=D.UNKNOWN),
        DispatchOutcome(state=D.DEFERRED),
        None,
        RuntimeError("Out of order."),
        "hang",
    ],
    ids=str,
)
async def test_what_proves_nothing_leaves_it_unknown_until_the_deadline(
    open_storage: OpenStorage, channel: str, answer: Any
) -> None:
    """Unknown stays unknown until evidence comes; at the deadline it ends as unconfirmed, never sent again."""
    async with in_doubt(open_storage, channel=channel, look_up="evidence", provider_timeout_seconds=0.2) as doubt:
        _answer(doubt, answer)
        await doubt.later(minutes=2)
        await doubt.later(minutes=56)
        assert (await doubt.contact())[0] is R.UNKNOWN
        assert (await doubt.rig.engine.campaigns.get(doubt.campaign.workspace_id, doubt.campaign.id)).status == "active"
        await doubt.later(minutes=3)
        assert await doubt.contact() == (R.UNCONFIRMED, "no_evidence")
        done = await reaches(doubt.rig.engine, doubt.campaign, "completed")
        assert (done.counters.completed, done.counters.successful, done.counters.failed) == (1, 0, 0)
        assert len(await doubt.dispatches()) == 1


UNHURRIED = attrs.evolve(QUICK, reconcile_interval_seconds=3600.0)
"""One round, and no other one by itself; so it is with the engine's own reconciler, which looks no more."""


@asynccontextmanager
async def many_in_doubt(
    open_storage: OpenStorage, carrier: ScriptedCarrier, count: int
) -> AsyncIterator[tuple[Reconciler, Callable[[int], Awaitable[None]]]]:
    """Lose the answers to so many messages whose deadlines have passed; yield who looks, and how many are left."""
    clock = ShiftedClock()
    async with dispatching(open_storage(clock), carrier=carrier, config=UNHURRIED, clock=clock) as rig:
        workspace = await given_workspace(rig.engine)
        for number in range(count):
            message = NewMessage(to=f"+1415555{number:04d}", body="Hi", carrier="twilio", from_number="+14155550199")
            await rig.engine.messages.send(workspace.id, message)
        await _unknown_count(rig, workspace.id, count)
        await time_passes(rig, clock, hours=2)
        yield reconciler_of(rig, clock, UNHURRIED), lambda left: _unknown_count(rig, workspace.id, left)


async def test_a_provider_that_hangs_keeps_no_others_waiting(
    open_storage: OpenStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Look-ups run side by side: the deadline of one does not wait for the time-outs of all."""
    asked, all_asked = 0, anyio.Event()

    async def look_up(_: LookupRequest) -> None:
        nonlocal asked
        asked += 1
        if asked == 8:
            all_asked.set()
        # One after the other, each would wait here until it has timed out.
        await all_asked.wait()

    carrier = ScriptedCarrier(lambda _: drop(), look_up="evidence")
    carrier.look_up = look_up  # type: ignore[method-assign,assignment]
    async with many_in_doubt(open_storage, carrier, 8) as (reconciler, left):
        with anyio.fail_after(QUICK.provider_timeout_seconds):
            assert await reconciler.round() == 8
        await left(0)


async def test_what_one_round_has_no_room_for_does_not_wait_for_the_next_pause(
    open_storage: OpenStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a crash of many workers hundreds are unknown: full rounds follow each other at once."""
    monkeypatch.setattr(reconciler_module, "_MAX_PER_ACCOUNT_AND_ROUND", 3)
    carrier = ScriptedCarrier(lambda _: drop(), look_up="none")
    async with many_in_doubt(open_storage, carrier, 8) as (reconciler, left), anyio.create_task_group() as tasks:
        tasks.start_soon(reconciler.serve)
        await left(0)
        tasks.cancel_scope.cancel()


Asked: TypeAlias = list[str]


async def given_unknown(storage: Storage, count: int, *, channel: str = "sms", at: datetime = NOW) -> list[str]:
    """Write so many requests without an answer, each a millisecond younger; return their identifiers, oldest first."""
    workspace = make_workspace(id=new_id())

    def operation(tx: Transaction) -> list[str]:
        tx.workspaces.insert(workspace)
        agent = make_agent(id=new_id(), workspace_id=workspace.id)
        tx.agents.insert(agent)
        made = []
        for index in range(count):
            moment, owner = at + timedelta(milliseconds=index), {"workspace_id": workspace.id}
            if channel == "sms":
                single = make_message(id=new_id(), **owner)
                tx.messages.insert(single)
                of = {"message_id": single.id}
            else:
                call = make_call(id=new_id(), agent_id=agent.id, to=f"+1415555{index:04d}", **owner)
                tx.calls.insert(call)
                of = {"call_id": call.id, "provider": "vapi"}
            one = make_dispatch(id=new_id(), channel=channel, state=D.UNKNOWN, created_at=moment, **owner, **of)
            tx.dispatches.insert(one)
            made.append(one.id)
        return made

    return await storage.write(operation)


def given_reconciler(
    storage: Storage, clock: ManualClock, carrier: ScriptedCarrier, **changes: Any
) -> tuple[Reconciler, Asked]:
    """Return one whose voice provider finds nothing, and a list of the calls that it has been asked about."""
    asked: Asked = []

    async def look_up(lookup: LookupRequest) -> None:
        asked.append(lookup.dispatch_id)

    voice = ScriptedVoice(look_up="evidence")
    voice.look_up = look_up  # type: ignore[method-assign]
    config = EngineConfig(**changes)
    worker = make_engine_worker(storage, clock, config)
    return Reconciler(
        storage=storage, clock=clock, config=config, provider_pool=provider_pool_of(carrier, voice), worker=worker
    ), asked


async def test_older_ones_that_cannot_be_looked_up_hide_no_newer_one(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rounds go through all unknown dispatches, slice by slice. Each account has places of its own."""
    monkeypatch.setattr(reconciler_module, "_MAX_ROWS", 3)
    monkeypatch.setattr(reconciler_module, "_MAX_PER_ACCOUNT_AND_ROUND", 2)
    clock = ManualClock(NOW + timedelta(seconds=5))
    await given_unknown(storage, 9)
    calls = await given_unknown(storage, 2, channel="call", at=NOW + timedelta(seconds=1))
    reconciler, asked = given_reconciler(storage, clock, ScriptedCarrier(look_up="none"))
    assert await reconciler.round() == 0
    clock.advance(62)
    await reconciler.round()
    assert sorted(asked) == sorted(calls)


async def test_an_account_that_does_not_answer_takes_no_other_ones_places(storage: Storage) -> None:
    """More of its look-ups hang than there are places at an account; the others' are made meanwhile."""
    clock = ManualClock(NOW)
    await given_unknown(storage, 30)
    calls = await given_unknown(storage, 1, channel="call", at=NOW + timedelta(seconds=1))
    carrier = ScriptedCarrier(look_up="evidence")
    carrier.look_up = hanging  # type: ignore[method-assign,assignment]
    reconciler, asked = given_reconciler(storage, clock, carrier)
    clock.advance(62)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reconciler.round)
        await until_true(lambda: asked == calls)
        tasks.cancel_scope.cancel()


async def test_a_provider_that_does_not_answer_delays_no_round_of_another_one(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look-ups of the other provider are repeated when they are due, and full rounds follow each other at once."""
    monkeypatch.setattr(reconciler_module, "_MAX_PER_ACCOUNT_AND_ROUND", 2)
    monkeypatch.setattr(Worker, "leads", True)
    clock = ManualClock(NOW)
    await given_unknown(storage, 3)
    calls = await given_unknown(storage, 4, channel="call")
    carrier, hangs = ScriptedCarrier(look_up="evidence"), 0

    async def look_up(_: LookupRequest) -> None:
        nonlocal hangs
        hangs += 1
        await anyio.sleep_forever()

    carrier.look_up = look_up  # type: ignore[method-assign,assignment]
    reconciler, asked = given_reconciler(
        storage, clock, carrier, provider_timeout_seconds=290.0, reconcile_interval_seconds=0.1
    )
    clock.advance(62)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reconciler.serve)
        for times in (1, 2):

            async def all_asked(expected: int = times * len(calls)) -> bool:
                return len(asked) == expected

            await until(all_asked)
            clock.advance(121)
        assert sorted(asked) == sorted(2 * calls)
        assert hangs == 2
        tasks.cancel_scope.cancel()


async def test_those_that_no_look_up_reached_end_after_their_deadline(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A provider that hangs has few look-ups in an hour. They do not wait for the next one."""
    monkeypatch.setattr(reconciler_module, "_MAX_PER_ACCOUNT_AND_ROUND", 2)
    clock = ManualClock(NOW)
    await given_unknown(storage, 5)
    carrier = ScriptedCarrier(look_up="evidence")
    carrier.look_up = hanging  # type: ignore[method-assign,assignment]
    reconciler, _ = given_reconciler(storage, clock, carrier)
    config = EngineConfig()

    async def unknown() -> int:
        return len(await storage.read(lambda tx: tx.dispatches.unknown(None, limit=10)))

    async with anyio.create_task_group() as tasks:
        clock.advance(62)
        tasks.start_soon(reconciler.round)
        await until_true(lambda: reconciler._asked_providers)
        clock.advance(config.reconcile_deadline_seconds + config.reconcile_retry_seconds - 1)
        await reconciler.round()
        assert await unknown() == 5
        clock.advance(2)
        await reconciler.round()
        assert await unknown() == 0
        tasks.cancel_scope.cancel()


async def hanging(_: LookupRequest) -> None:
    """Never answer."""
    await anyio.sleep_forever()


async def test_who_leads_no_more_after_a_round_that_had_no_room_for_all_pauses(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lease ended within the round, and another worker leads: without a pause its event loop would stand still."""
    monkeypatch.setattr(reconciler_module, "_MAX_PER_ACCOUNT_AND_ROUND", 2)
    clock = ManualClock(NOW)
    await given_unknown(storage, 5)
    carrier = ScriptedCarrier(look_up="evidence")
    asked = anyio.Event()

    async def look_up(_: LookupRequest) -> None:
        asked.set()
        await anyio.sleep_forever()

    carrier.look_up = look_up  # type: ignore[method-assign,assignment]
    reconciler, _ = given_reconciler(storage, clock, carrier)
    clock.advance(62)
    monkeypatch.setattr(Worker, "leads", True)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reconciler.serve)
        await asked.wait()
        tasks.cancel_scope.cancel()
    looks = 0

    def leads(_: Worker) -> bool:
        nonlocal looks
        looks += 1
        if looks > 2:
            pytest.fail("It looks without a pause.")
        return False

    monkeypatch.setattr(Worker, "leads", property(leads))
    with anyio.move_on_after(1.5 * EngineConfig().reconcile_interval_seconds):
        await reconciler.serve()
    assert looks == 2


async def test_at_one_account_those_that_have_been_due_for_longest_are_first(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None is looked up a second time before all have been once, although the older ones are due again."""
    monkeypatch.setattr(reconciler_module, "_MAX_PER_ACCOUNT_AND_ROUND", 2)
    clock = ManualClock(NOW)
    calls = await given_unknown(storage, 5, channel="call")
    reconciler, asked = given_reconciler(storage, clock, ScriptedCarrier())
    clock.advance(62)
    for _ in range(3):
        assert await reconciler.round() == 2
        clock.advance(121)
    # Those of one round are asked about side by side, in whatever order.
    assert set(asked) == set(calls)
    assert sorted(asked[:4]) == sorted(calls[:4])
    assert len(asked) == 6


@channels
async def test_an_operator_may_assume_that_it_was_sent(open_storage: OpenStorage, channel: str) -> None:
    """It counts as accepted at once, and is in the audit trail. A later report still counts."""
    async with in_doubt(open_storage, channel=channel) as doubt:
        assert (await doubt.decide("assume_sent")).state is D.ACCEPTED
        done = await reaches(doubt.rig.engine, doubt.campaign, "completed")
        assert done.counters.completed == 1
        wanted = (R.COMPLETED, None) if channel == "sms" else (R.COMPLETED, "assumed_sent")
        assert await doubt.contact() == wanted
        trail = await doubt.rig.engine.audit.list(doubt.campaign.workspace_id)
        assert ("cli:ann", "dispatch.assume_sent") in {(entry.actor, entry.action) for entry in trail}
        with pytest.raises(Conflict, match="accepted, not unknown"):
            await doubt.decide("retry")
        if channel == "call":
            (call,) = await calls_of(doubt.rig, doubt.campaign)
            assert (call.status, call.error) == (CallStatus.UNCONFIRMED, "assumed_sent")
            _hear(doubt)
            await until(lambda: calls_of(doubt.rig, doubt.campaign), lambda found: found[0].outcome == "positive")
            assert await doubt.contact() == (R.COMPLETED, None)


@channels
async def test_a_clock_that_is_set_forth_does_not_make_a_request_arrive_sooner(
    open_storage: OpenStorage, channel: str
) -> None:
    """Neither its provider is believed that it has nothing of it, nor may an operator have it tried again.

    docs/delivery-contract.md#rule-6.
    """
    quick = {"reconcile_delay_seconds": 1.0, "reconcile_retry_seconds": 1.0}
    async with in_doubt(open_storage, channel=channel, look_up="authoritative", **quick) as doubt:
        _answer(doubt, DispatchOutcome(state=D.NOT_SENT, reason="not_found"))
        doubt.clock.shift(timedelta(days=1))
        # Before the step is noted by a heartbeat, and after it.
        for _ in range(2):
            await doubt.reconciler.round()
            with pytest.raises(Conflict, match=r"may still be on its way\. Try again in \d+ s"):
                await doubt.decide("retry")
            await time_passes(doubt.rig, doubt.clock, seconds=20)
        assert [one.state for one in await doubt.dispatches()] == [D.UNKNOWN]
        await doubt.later(seconds=60)
        assert (await doubt.first()).state is D.NOT_SENT


@channels
async def test_a_clock_that_is_set_back_makes_no_request_arrive_later(open_storage: OpenStorage, channel: str) -> None:
    """By the commit, which lies ahead then, it could still be on its way for a day."""
    async with in_doubt(open_storage, channel=channel) as doubt:
        doubt.clock.shift(-timedelta(days=1))
        await time_passes(doubt.rig, doubt.clock)
        await time_passes(doubt.rig, doubt.clock, minutes=2)
        assert (await doubt.decide("retry")).state is D.GIVEN_UP


@channels
async def test_a_retry_sends_once_more(open_storage: OpenStorage, channel: str) -> None:
    """The first is given up and stays in the ledger; the second is the same attempt."""
    async with in_doubt(open_storage, channel=channel) as doubt:
        await time_passes(doubt.rig, doubt.clock, minutes=2)
        assert (await doubt.decide("retry")).state is D.GIVEN_UP
        if channel == "call":
            await doubt.rig.voice.wait_for_requests(2)
            doubt.rig.voice.report(event(doubt.rig.voice.requests[1], **POSITIVE))
        done = await reaches(doubt.rig.engine, doubt.campaign, "completed")
        assert done.counters.successful == 1
        made = [(one.state, one.attempt, one.try_number) for one in await doubt.dispatches()]
        assert made == [(D.GIVEN_UP, 1, 1), (D.ACCEPTED, 1, 2)]


@channels
async def test_evidence_before_the_second_request_cancels_it(open_storage: OpenStorage, channel: str) -> None:
    """docs/delivery-contract.md#rule-6: it has been reached after all, so it is not reached again."""
    async with in_doubt(open_storage, channel=channel) as doubt:
        await doubt.rig.engine.campaigns.pause(doubt.campaign.workspace_id, doubt.campaign.id)
        await time_passes(doubt.rig, doubt.clock, minutes=2)
        await doubt.decide("retry")
        assert await doubt.contact() == (R.WAITING, "operator_retry")
        _hear(doubt)
        await doubt.becomes(R.COMPLETED)
        await doubt.rig.engine.campaigns.resume(doubt.campaign.workspace_id, doubt.campaign.id)
        await reaches(doubt.rig.engine, doubt.campaign, "completed")
        assert [one.state for one in await doubt.dispatches()] == [D.ACCEPTED]
        if channel == "call":
            (call,) = await calls_of(doubt.rig, doubt.campaign)
            assert (call.status, call.outcome) == (CallStatus.COMPLETED, "positive")


@channels
async def test_evidence_after_the_second_request_is_kept_beside_it(open_storage: OpenStorage, channel: str) -> None:
    """docs/delivery-contract.md#rule-6: later both are kept and shown, and the second speaks for the contact."""
    async with in_doubt(open_storage, channel=channel, plan=[drop(), hang()], stop_grace_seconds=0.1) as doubt:
        await time_passes(doubt.rig, doubt.clock, minutes=2)
        await doubt.decide("retry")
        provider: Any = doubt.rig.voice if channel == "call" else doubt.rig.carrier
        await provider.wait_for_requests(2)
        _hear(doubt)
        await until(doubt.first, lambda found: found.state is D.ACCEPTED)
        assert (await doubt.contact())[0] is R.DISPATCHING
        assert [one.state for one in await doubt.dispatches()] == [D.ACCEPTED, D.DISPATCHING]


@channels
async def test_a_second_request_that_reached_nobody_gives_way_to_the_first(
    open_storage: OpenStorage, channel: str
) -> None:
    """The first turns out to have arrived while the second is on its way: no third request follows."""
    steps = [drop(), attrs.evolve(not_sent(), seconds=1.0)]
    async with in_doubt(open_storage, channel=channel, plan=steps) as doubt:
        await time_passes(doubt.rig, doubt.clock, minutes=2)
        await doubt.decide("retry")
        provider: Any = doubt.rig.voice if channel == "call" else doubt.rig.carrier
        await provider.wait_for_requests(2)
        _hear(doubt)
        done = await reaches(doubt.rig.engine, doubt.campaign, "completed")
        assert done.counters.successful == 1
        assert [one.state for one in await doubt.dispatches()] == [D.ACCEPTED, D.NOT_SENT]


async def test_what_cannot_be_decided_is_refused_with_words(open_storage: OpenStorage) -> None:
    """Another workspace's dispatch, none at all, and a decision that there is not."""
    async with in_doubt(open_storage) as doubt:
        dispatch = await doubt.first()
        engine = doubt.rig.engine
        for workspace_id, dispatch_id in ((new_id(), dispatch.id), (dispatch.workspace_id, new_id())):
            with pytest.raises(NotFound):
                await engine.dispatches.resolve(workspace_id, dispatch_id, "assume_sent")
        with pytest.raises(InvalidRequest, match="assume_sent or retry"):
            await engine.dispatches.resolve(dispatch.workspace_id, dispatch.id, "forget")  # type: ignore[arg-type]
        assert list(await engine.dispatches.list_unknown(dispatch.workspace_id)) == [dispatch]
        assert await engine.dispatches.get_anywhere(dispatch.id) == dispatch
        with pytest.raises(NotFound):
            await engine.dispatches.get_anywhere(new_id())
        with pytest.raises(NotFound):
            await engine.dispatches.list_unknown(new_id())


@pytest.mark.parametrize("decision", ["assume_sent", "retry", "deadline", "evidence", "evidence after retry"])
@channels
async def test_single_messages_and_calls_follow_the_same_rules(
    open_storage: OpenStorage, channel: str, decision: str
) -> None:
    """Single calls and messages too; an operator's retry is not stale after ten minutes.

    docs/delivery-contract.md#rule-14.
    """
    clock = ShiftedClock()
    plan = [drop(), refuse("invalid_number")] if decision == "evidence after retry" else [drop()]
    carrier, voice = ScriptedCarrier(plan), ScriptedVoice(plan)
    async with dispatching(open_storage(clock), carrier=carrier, voice=voice, config=CALLS, clock=clock) as rig:
        workspace = await given_workspace(rig.engine)
        identifier = await _single(rig, workspace.id, channel)
        await _unknown_count(rig, workspace.id, 1)
        (dispatch,) = await rig.engine.dispatches.list_unknown(workspace.id)
        await time_passes(rig, clock, minutes=20)
        provider: Any = voice if channel == "call" else carrier

        async def status() -> str:
            if channel == "call":
                return (await rig.engine.calls.get(workspace.id, identifier)).status
            return (await rig.engine.messages.get(workspace.id, identifier)).status

        wanted = {"sms": "accepted", "call": "initiated"}[channel]
        if decision == "deadline":
            await time_passes(rig, clock, hours=1)
            await reconciler_of(rig, clock, CALLS).round()
            assert await status() == "unconfirmed"
        elif decision == "assume_sent":
            await rig.engine.dispatches.resolve(workspace.id, dispatch.id, "assume_sent")
            assert await status() == {"sms": "accepted", "call": "unconfirmed"}[channel]
        elif decision == "evidence":
            _report(provider, provider.requests[0])
            await until(lambda: _is(status, {"sms": "delivered", "call": "completed"}[channel]))
        elif decision == "retry":
            await rig.engine.dispatches.resolve(workspace.id, dispatch.id, "retry")
            await provider.wait_for_requests(2)
            await until(lambda: _is(status, wanted))
        else:
            await rig.engine.dispatches.resolve(workspace.id, dispatch.id, "retry")
            await until(lambda: _is(status, "failed"))
            _report(provider, provider.requests[0])

            async def first_known() -> bool:
                return (await rig.engine.dispatches.get_anywhere(dispatch.id)).state is D.ACCEPTED

            await until(first_known)
        expected = 2 if "retry" in decision else 1
        assert len(provider.requests) == expected


async def _given_taken(doubt: Doubt, **changes: Any) -> Dispatch:
    """Have one more request, of a single message, that a provider has taken."""
    workspace_id = doubt.campaign.workspace_id
    message = make_message(workspace_id=workspace_id, status=MessageStatus.ACCEPTED)
    dispatch = make_dispatch(workspace_id=workspace_id, message_id=message.id, state=D.ACCEPTED, **changes)

    def operation(tx: Transaction) -> None:
        tx.messages.insert(message)
        tx.dispatches.insert(dispatch)

    await doubt.rig.storage.write(operation)
    return dispatch


def _answer(doubt: Doubt, answer: Any) -> None:
    """Have the look-ups give an answer, raise an error or hang."""

    async def look_up(_: LookupRequest) -> DispatchOutcome | None:
        if isinstance(answer, Exception):
            raise answer
        if answer == "hang":
            await anyio.sleep_forever()
        found: DispatchOutcome | None = answer
        return found

    for provider in (doubt.rig.carrier, doubt.rig.voice):
        provider.look_up = look_up  # type: ignore[method-assign,assignment]


def _hear(doubt: Doubt) -> None:
    """Have the provider report of the first request, by our identifier."""
    if doubt.campaign.channel == "call":
        _report(doubt.rig.voice, doubt.rig.voice.requests[0])
    else:
        _report(doubt.rig.carrier, doubt.rig.carrier.requests[0])


def _report(provider: Any, request: CallRequest | OutboundMessage) -> None:
    if isinstance(request, CallRequest):
        provider.report(event(request, **POSITIVE))
        return
    provider.report(reported(request, provider_id="late"))


async def _single(rig: Rig, workspace_id: str, channel: str) -> str:
    if channel == "sms":
        message = NewMessage(to=TO, body="Hi", carrier="twilio", from_number="+14155550199")
        return (await rig.engine.messages.send(workspace_id, message)).id
    agent_id = await given_agent(rig.engine, await rig.engine.workspaces.get(workspace_id))
    return (await rig.engine.calls.create(workspace_id, NewCall(agent_id=agent_id, to=TO))).id


async def _unknown_count(rig: Rig, workspace_id: str, count: int) -> None:
    await until(lambda: rig.engine.dispatches.list_unknown(workspace_id), lambda found: len(found) == count)


async def _is(status: Callable[[], Any], wanted: str) -> bool:
    return bool(await status() == wanted)


async def test_a_clock_that_is_set_back_keeps_no_look_up_waiting(open_storage: OpenStorage) -> None:
    """Neither the first one, by a commit that lies ahead, nor the next, by a look-up that does."""
    async with in_doubt(open_storage, look_up="evidence") as doubt:
        _answer(doubt, None)
        await doubt.set_back(hours=1)
        await doubt.set_back(hours=1)
        assert (await doubt.first()).state is D.UNKNOWN
        _answer(doubt, DispatchOutcome(state=D.ACCEPTED, provider_id="P-1"))
        await doubt.set_back(hours=1)
        assert (await doubt.first()).state is D.ACCEPTED
