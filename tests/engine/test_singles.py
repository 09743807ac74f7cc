from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import anyio
import attrs
import pytest

from outreach import (
    CallStatus,
    InvalidRequest,
    MessageStatus,
    NewAgent,
    NewCall,
    NewMessage,
    NotFound,
    Outreach,
    WorkspaceStatus,
    WorkspaceUpdate,
)
from outreach.errors import (
    AgentInactive,
    AgentNotOutbound,
    CallInProgress,
    LeaseLost,
    RecipientUnsubscribed,
    WorkspaceUnavailable,
)
from outreach.ledger import provider_throttles
from outreach.ledger.sending import singles
from outreach.ledger.sending.singles import IntentTerms
from outreach.ledger.settling import ledger
from outreach.models.call import Call
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.message import Message
from outreach.models.states import DispatchState
from outreach.models.work import WorkUnit
from outreach.protocols.storage import Storage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import (
    NOW,
    make_unsubscribe,
    make_workspace,
    new_id,
)
from outreach.testing.scripted import (
    ScriptedCarrier,
    ScriptedVoice,
    accept,
    defer,
    hang,
    refuse,
)
from outreach.testing.storage_tables.base_contract import THIS_WORKSPACE, TICK
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.conftest import OpenStorage
from tests.engine.given import BACKOFF, call_event, given_singles, intent_terms, report
from tests.engine.rig import QUICK, dispatching, given_workspace, until

pytestmark = pytest.mark.virtual_time

STALE = timedelta(minutes=10)
TO = "+14155550123"
FIRST_YEAR, LAST_YEAR = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)


async def test_a_message_is_sent_once_without_a_footer(open_storage: OpenStorage) -> None:
    """docs/interface.md#4.4: the footer is not appended to messages sent with POST /sms."""
    async with dispatching(open_storage(clock_of_loop())) as rig:
        workspace = await given_workspace(rig.engine)
        sent = await rig.engine.messages.send(workspace.id, NewMessage(to="(415) 555-0123", body="Your code"))
        assert (sent.status, sent.segments, sent.to) == (MessageStatus.QUEUED, 1, TO)
        done = await until(lambda: _message(rig.engine, sent, MessageStatus.ACCEPTED))
        await anyio.sleep(0.1)
        assert [(message.to, message.body) for message in rig.carrier.requests] == [(TO, "Your code")]
        assert (done.provider_id or "").startswith("scripted-1-")
    assert done.attempts == 1


async def test_a_message_on_its_way_is_not_looked_at_in_a_loop(open_storage: OpenStorage) -> None:
    """While a provider takes its time, nothing is written for its message: the database is left in peace."""
    async with dispatching(open_storage(clock_of_loop()), carrier=ScriptedCarrier([accept(seconds=0.6)])) as rig:
        workspace = await given_workspace(rig.engine)
        sent = await rig.engine.messages.send(workspace.id, NewMessage(to=TO, body="x"))
        await rig.carrier.wait_for_requests(1)
        before, began = rig.storage.writes, anyio.current_time()
        await anyio.sleep(0.4)
        # Heartbeats, no more: one each 50 ms, of however long this machine took; and a few when the answer came.
        assert rig.storage.writes - before < 10 + (anyio.current_time() - began) / QUICK.heartbeat_interval_seconds
        await until(lambda: _message(rig.engine, sent, MessageStatus.ACCEPTED))


async def test_a_message_that_was_deferred_is_sent_with_one_attempt(open_storage: OpenStorage) -> None:
    """docs/delivery-contract.md#rule-14: single messages follow the same rules; a deferral spends no attempt."""
    async with dispatching(open_storage(clock_of_loop()), carrier=ScriptedCarrier([defer(), defer()])) as rig:
        workspace = await given_workspace(rig.engine)
        sent = await rig.engine.messages.send(workspace.id, NewMessage(to=TO, body="x"))
        done = await until(lambda: _message(rig.engine, sent, MessageStatus.ACCEPTED))
        assert (done.attempts, done.tries, len(rig.carrier.requests)) == (1, 3, 3)


async def test_a_refused_message_has_failed_with_its_class(open_storage: OpenStorage) -> None:
    """A refusal ends a single message: settings of retry are those of campaigns."""
    async with dispatching(open_storage(clock_of_loop()), carrier=ScriptedCarrier([refuse("temporary")])) as rig:
        workspace = await given_workspace(rig.engine)
        sent = await rig.engine.messages.send(workspace.id, NewMessage(to=TO, body="x"))
        done = await until(lambda: _message(rig.engine, sent, MessageStatus.FAILED))
        assert (done.reason, len(rig.carrier.requests)) == ("temporary", 1)


async def test_a_call_waits_a_moment_for_the_providers_identifier(open_storage: OpenStorage) -> None:
    """docs/interface.md#call-id: if the acceptance comes in time, it is in the answer; our id finds it too."""
    async with dispatching(open_storage(clock_of_loop()), voice=ScriptedVoice([accept("pc-1")])) as rig:
        workspace, new = await _caller(rig.engine)
        call = await rig.engine.calls.create(workspace, new)
        assert (call.provider_call_id, call.status) == ("pc-1", CallStatus.INITIATED)
        assert (await rig.engine.calls.get(workspace, "pc-1")).id == call.id
        assert (await rig.engine.calls.get(workspace, call.id)).provider_call_id == "pc-1"
        assert [request.to for request in rig.voice.requests] == ["+14155550123"]


@pytest.mark.parametrize(("step", "status"), [(hang(), CallStatus.DISPATCHING), (refuse(), CallStatus.FAILED)])
async def test_a_call_that_is_not_accepted_in_time_has_no_identifier(
    open_storage: OpenStorage, step: Any, status: CallStatus
) -> None:
    """docs/interface.md#call-id: if not, or on a refusal, it is absent and the call record tells."""
    async with dispatching(open_storage(clock_of_loop()), voice=ScriptedVoice([step])) as rig:
        workspace, new = await _caller(rig.engine)
        call = await rig.engine.calls.create(workspace, new)
        await rig.voice.wait_for_requests(1)
        assert call.provider_call_id is None
        found = await until(lambda: _call(rig.engine, call, status))
        assert found.provider_call_id is None


async def test_where_nothing_dispatches_a_call_is_answered_at_once(engine: Outreach) -> None:
    """docs/interface.md#call-id: the wait is not where nothing dispatches."""
    workspace, new = await _caller(engine)
    before = anyio.current_time()
    call = await engine.calls.create(workspace, new)
    assert anyio.current_time() - before < 1.0
    assert (call.status, call.provider_call_id) == (CallStatus.QUEUED, None)


@pytest.mark.parametrize("times", [(FIRST_YEAR, NOW), (NOW, LAST_YEAR), (FIRST_YEAR, LAST_YEAR), (LAST_YEAR, NOW)])
async def test_a_call_is_as_long_as_it_can_have_been(storage: Storage, times: tuple[datetime, datetime]) -> None:
    """A provider's time before the call or still to come is none: the time at which it was reported counts."""
    _, call, dispatch = await _placed(storage)
    accepted = DispatchOutcome(state=DispatchState.ACCEPTED, provider_id="pc-1")
    await storage.write(lambda tx: ledger.settle(tx, THIS_WORKSPACE, dispatch.id, accepted, backoff=BACKOFF, now=NOW))
    ended_at = NOW + timedelta(seconds=90)
    for status, at, now in (
        (CallStatus.IN_PROGRESS, times[0], NOW),
        (CallStatus.COMPLETED, ended_at if times[1] == NOW else times[1], ended_at),
    ):
        await report(storage, call_event(dispatch, status, provider_id="pc-1", at=at), now=now)
    ended = await storage.read(lambda tx: tx.calls.get(THIS_WORKSPACE, call.id))
    assert ended is not None
    assert (ended.answered_at, ended.ended_at, ended.duration_seconds) == (NOW, ended_at, 90)


@pytest.mark.parametrize(
    ("state", "status"),
    [
        (DispatchState.ACCEPTED, CallStatus.INITIATED),
        (DispatchState.REFUSED, CallStatus.FAILED),
        (DispatchState.UNKNOWN, CallStatus.UNKNOWN),
        (DispatchState.DEFERRED, CallStatus.QUEUED),
        (DispatchState.NOT_SENT, CallStatus.QUEUED),
        (DispatchState.WITHDRAWN, CallStatus.QUEUED),
    ],
)
async def test_each_outcome_of_a_call(storage: Storage, state: DispatchState, status: CallStatus) -> None:
    """docs/delivery-contract.md#rule-14: single calls follow the same rules."""
    agent, call, dispatch = await _placed(storage)
    outcome = DispatchOutcome(state=state, reason="why")
    await storage.write(lambda tx: ledger.settle(tx, THIS_WORKSPACE, dispatch.id, outcome, backoff=BACKOFF, now=NOW))
    found = await storage.read(lambda tx: tx.calls.get(THIS_WORKSPACE, call.id))
    assert found is not None
    assert found.status is status
    blocks = await storage.read(lambda tx: tx.calls.open_call_between(THIS_WORKSPACE, agent.id, call.to))
    assert (blocks is None) == (status is CallStatus.FAILED)


@pytest.mark.parametrize(("age", "sent"), [(STALE - TICK, True), (STALE, False), (STALE * 2, False)])
async def test_singles_that_waited_too_long_are_canceled_as_stale(storage: Storage, age: timedelta, sent: bool) -> None:
    """docs/delivery-contract.md#rule-14: one that could not be dispatched for 10 minutes ends as `canceled: stale`."""
    _, call, message = await given_singles(storage)
    committed = await _commit(storage, message, call, now=NOW + age)
    assert [one is not None for one in committed] == [sent, sent]
    if not sent:
        await _both(storage, message, call, "canceled", "stale")


@pytest.mark.parametrize("scope", ["all", "sms", "call"])
async def test_singles_to_who_opted_out_since_are_canceled(storage: Storage, scope: Any) -> None:
    """docs/interface.md#register: POST /sms and POST /calls stop at the commit, too."""
    _, call, message = await given_singles(storage)
    for phone in (call.to, message.to):
        entry = make_unsubscribe(phone=phone, scope=scope)
        await storage.write(lambda tx, entry=entry: tx.register.put(entry))  # type: ignore[misc]
    sms, placed = await _commit(storage, message, call)
    assert (sms is None, placed is None) == (scope != "call", scope != "sms")


@pytest.mark.parametrize("change", [{"is_active": False}, {"direction": "inbound"}])
async def test_a_call_whose_agent_may_not_call_any_more_is_canceled(storage: Storage, change: dict[str, Any]) -> None:
    """docs/delivery-contract.md#rule-3: everything again at the commit, the agent included."""
    agent, call, message = await given_singles(storage)
    await storage.write(lambda tx: tx.agents.update(attrs.evolve(agent, **change)))
    _, placed = await _commit(storage, message, call)
    found = await storage.read(lambda tx: tx.calls.get(THIS_WORKSPACE, call.id))
    assert placed is None
    assert found is not None
    assert (found.status, found.error, found.ended_at) == (CallStatus.CANCELED, "agent_unavailable", NOW)


async def test_singles_of_a_suspended_workspace_wait_and_become_stale(storage: Storage) -> None:
    """A workspace that may not work sends nothing; what waits is looked at again, at the latest when it is stale."""
    _, call, message = await given_singles(storage)
    await storage.write(lambda tx: tx.workspaces.update(make_workspace(status=WorkspaceStatus.SUSPENDED)))
    assert await _commit(storage, message, call) == (None, None)
    due = await storage.read(lambda tx: [work.due_at for work in tx.work.due()])
    assert all(at is not None and NOW < at <= NOW + STALE for at in due)
    assert len(due) == 2
    await _both(storage, message, call, "queued", None)
    await _commit(storage, message, call, now=NOW + STALE)
    await _both(storage, message, call, "canceled", "stale")


@pytest.mark.parametrize(
    ("after_seconds", "retry_after_seconds", "due_seconds"),
    [
        (0, None, 1),
        (0, 0.5, 1),
        (0, 90.0, 90),
        (0, 7200.0, 600),
        (599.5, None, 600),
        (599.5, 30.0, 600),
    ],
)
async def test_what_is_put_off_is_looked_at_again_when_it_is_stale_at_the_latest(
    storage: Storage, after_seconds: float, retry_after_seconds: float | None, due_seconds: float
) -> None:
    """Canceled after 10 minutes, however long the provider throttles.

    docs/delivery-contract.md#rule-14.
    """
    _, call, message = await given_singles(storage)
    committed = await _commit(storage, message, call)
    deferred = DispatchOutcome(
        state=DispatchState.DEFERRED, reason="rate_limited", retry_after_seconds=retry_after_seconds
    )
    answered = NOW + timedelta(seconds=after_seconds)

    def answer(tx: Transaction) -> None:
        for dispatch in committed:
            assert dispatch is not None
            ledger.settle(tx, THIS_WORKSPACE, dispatch.id, deferred, backoff=BACKOFF, now=answered)
            provider_throttles.update_throttle(tx, dispatch, deferred, backoff=BACKOFF, now=answered)

    await storage.write(answer)
    due_at = NOW + timedelta(seconds=due_seconds)
    assert await _commit(storage, message, call, now=answered) == (None, None)
    assert await storage.read(lambda tx: [work.due_at for work in tx.work.due()]) == [due_at, due_at]
    assert await _commit(storage, message, call, now=due_at - TICK) == (None, None)
    await _both(storage, message, call, "queued", "rate_limited")
    assert await _commit(storage, message, call, now=due_at) != (None, None) or due_seconds == 600
    if due_seconds == 600:
        await _both(storage, message, call, "canceled", "stale")


async def test_what_is_put_off_backs_off_also_after_the_clock_was_set_back(storage: Storage) -> None:
    """By its latest request, and not by the one whose time lies ahead: else its provider is asked without a pause."""
    _, call, message = await given_singles(storage)
    deferred = DispatchOutcome(state=DispatchState.DEFERRED, reason="rate_limited")
    for now in (NOW + timedelta(minutes=5), NOW):
        committed = await _commit(storage, message, call, now=now)

        def answer(tx: Transaction, now: datetime = now, committed: Any = committed) -> None:
            for dispatch in committed:
                ledger.settle(tx, THIS_WORKSPACE, dispatch.id, deferred, backoff=BACKOFF, now=now)

        await storage.write(answer)
    assert await _commit(storage, message, call) == (None, None)
    due = await storage.read(lambda tx: [work.due_at for work in tx.work.due()])
    assert due == [NOW + 2 * BACKOFF.first] * 2


async def test_singles_are_committed_once_and_under_the_present_lease_only(storage: Storage) -> None:
    """docs/delivery-contract.md#rule-2 and #rule-3: one open dispatch, and none under a lost lease."""
    _, call, message = await given_singles(storage)
    with pytest.raises(LeaseLost):
        await _commit(storage, message, call, epoch=2)
    assert all(one is not None for one in await _commit(storage, message, call))
    assert await _commit(storage, message, call) == (None, None)


async def test_a_call_is_refused_where_it_cannot_be_placed(engine: Outreach) -> None:
    """docs/interface.md#4.1, #agents: 404, 409 with their finer codes, 400, 403."""
    workspace, new = await _caller(engine)
    agents, calls = engine.agents, engine.calls
    inactive = await agents.create(workspace, NewAgent(name="Off", is_active=False))
    inbound = await agents.create(workspace, NewAgent(name="In", direction="inbound"))
    allowed = await agents.create(workspace, NewAgent(name="In and out", direction="inbound", allow_outbound=True))
    strict = await agents.create(workspace, NewAgent(name="Strict", placeholders=["name"]))
    for agent_id, error in ((inactive.id, AgentInactive), (inbound.id, AgentNotOutbound), (new_id(), NotFound)):
        with pytest.raises(error):
            await calls.create(workspace, NewCall(agent_id=agent_id, to=TO))
    with pytest.raises(InvalidRequest) as caught:
        await calls.create(workspace, NewCall(agent_id=strict.id, to=TO, variables={"name": 1, "nme": 2}))
    assert [detail.path for detail in caught.value.details] == ["variables.nme"]
    for to in ("+04155550123", "123456", "+1415555012345678", "+14155550123\n", "+1 415 555 0123", "١٤١٥٥٥٥٠١٢٣"):
        with pytest.raises(InvalidRequest):
            await calls.create(workspace, NewCall(agent_id=new.agent_id, to=to))
    await calls.create(workspace, NewCall(agent_id=allowed.id, to=TO))
    await calls.create(workspace, new)
    with pytest.raises(CallInProgress):
        await calls.create(workspace, attrs.evolve(new, to=TO.removeprefix("+")))
    await engine.unsubscribes.add(workspace, "+14155550124", scope="call")
    with pytest.raises(RecipientUnsubscribed):
        await calls.create(workspace, attrs.evolve(new, to="+14155550124"))
    await engine.messages.send(workspace, NewMessage(to="+14155550124", body="x"))
    await engine.workspaces.update(workspace, WorkspaceUpdate(status=WorkspaceStatus.PAYWALLED))
    with pytest.raises(WorkspaceUnavailable):
        await calls.create(workspace, attrs.evolve(new, to="+14155550125"))


async def test_variables_are_handed_on_as_text(engine: Outreach) -> None:
    """docs/interface.md#variables: strings as they are, numbers as written, the rest compact JSON."""
    workspace, new = await _caller(engine)
    call = await engine.calls.create(
        workspace, attrs.evolve(new, variables={"a": "x", "b": 1, "c": True, "d": None, "e": {"f": [1]}})
    )
    assert call.variables == {"a": "x", "b": "1", "c": "true", "d": "", "e": '{"f":[1]}'}


async def test_a_message_is_refused_where_it_cannot_be_sent(engine: Outreach) -> None:
    """docs/interface.md#post-sms and the register."""
    workspace = await given_workspace(engine)
    await engine.unsubscribes.add(workspace.id, TO, scope="sms")
    with pytest.raises(RecipientUnsubscribed):
        await engine.messages.send(workspace.id, NewMessage(to="415-555-0123", body="x"))
    for to, body, path in (
        ("nobody", "x", "to"),
        (TO, " \n", "body"),
        (TO, "x" * 1601, "body"),
        (TO, "\x00", "body"),
        (TO, "\ud800", "body"),
    ):
        with pytest.raises(InvalidRequest) as caught:
            await engine.messages.send(workspace.id, NewMessage(to=to, body=body))
        assert [detail.path for detail in caught.value.details] == [path]


async def _caller(engine: Outreach) -> tuple[str, NewCall]:
    workspace = await given_workspace(engine)
    agent = await engine.agents.create(workspace.id, NewAgent(name="Ada"))
    return workspace.id, NewCall(agent_id=agent.id, to=TO)


async def _placed(storage: Storage) -> tuple[Any, Call, Dispatch]:
    agent, call, message = await given_singles(storage)
    _, placed = await _commit(storage, message, call)
    assert placed is not None
    return agent, call, placed


async def _commit(
    storage: Storage, message: Message, call: Call, *, now: Any = NOW, epoch: int = 1
) -> tuple[Dispatch | None, Dispatch | None]:
    def terms() -> IntentTerms:
        return intent_terms(now, epoch=epoch)

    units = (WorkUnit("message", THIS_WORKSPACE, message.id), WorkUnit("call", THIS_WORKSPACE, call.id))
    sms, placed = [
        await storage.write(partial(singles.commit_single, unit=unit, terms=terms(), clock_now=lambda: now))
        for unit in units
    ]
    return sms, placed


async def _both(storage: Storage, message: Message, call: Call, status: str, reason: str | None) -> None:
    sms, placed = await storage.read(
        lambda tx: (tx.messages.get(THIS_WORKSPACE, message.id), tx.calls.get(THIS_WORKSPACE, call.id))
    )
    assert sms is not None
    assert placed is not None
    assert (sms.status, sms.reason, placed.status, placed.error) == (status, reason, status, reason)


async def _message(engine: Outreach, message: Message, status: MessageStatus) -> Message | None:
    found = await engine.messages.get(message.workspace_id, message.id)
    return found if found.status is status else None


async def _call(engine: Outreach, call: Call, status: CallStatus) -> Call | None:
    found = await engine.calls.get(call.workspace_id, call.id)
    return found if found.status is status else None
