from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Generic, TypeVar

import anyio
import attrs
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from outreach import EngineConfig, NewAgent, NewCall, NewMessage, NewWorkspace, Outreach, WorkspaceMode
from outreach.dispatch.worker import Worker
from outreach.ledger.sending import singles
from outreach.ledger.sending.singles import IntentTerms
from outreach.models.dispatch import DispatchOutcome
from outreach.models.states import DispatchState
from outreach.models.work import WorkUnit
from outreach.plugins import ledger_archives
from outreach.protocols import SystemClock
from outreach.rules.provider_analyser import ProviderAnalyser
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import make_lease, make_worker, new_id
from tests.engine.given import BACKOFF, EPOCH
from tests.providers.carriers import CARRIERS, SENDER, CarrierPart
from tests.providers.parts import PUBLIC_URL, Event, Part, Taken
from tests.providers.voices import ANSWERED_BY_PERSON, SUMMARY, VOICES, ElevenLabs, Retell, Vapi, VoicePart

PERSON: Final = "+14155550100"
PROVIDER_ID: Final = f"SM{0xA1:032x}"
"""Of the form that the strictest of them has."""

ANSWERS: Final = (
    DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=PROVIDER_ID),
    DispatchOutcome(state=DispatchState.UNKNOWN, reason="timeout"),
    DispatchOutcome(state=DispatchState.DEFERRED, reason="rate_limited"),
)
"""What the request itself comes to: the provider's yes, nothing, or a no that its reports belie."""

P = TypeVar("P", bound=Part)


@attrs.frozen(kw_only=True)
class Line(Generic[P]):
    """A message or a call whose request is on its way, and the provider that calls back about it.

    Attributes:
        item_id: The message's, or the call's.
    """

    part: P
    engine: Outreach
    workspace_id: str
    account_id: str
    item_id: str
    taken: Taken

    async def hear(self, event: Event) -> list[str]:
        """Take in an event; return what became of what was new in it."""
        url = f"{PUBLIC_URL}/webhooks/{self.account_id}"
        callback = self.part.sign(event, url=url, at=datetime.now(UTC))
        records = await self.engine.callbacks.receive(
            self.account_id,
            url=callback.url.replace(PUBLIC_URL, "http://10.0.0.1:8000"),
            headers=callback.headers,
            body=callback.body,
        )
        return [record.result for record in records]

    @property
    def unnamed(self) -> Taken:
        """The same, without our identifier: as events tell of it where the provider does not bring that back."""
        return attrs.evolve(self.taken, dispatch_id="")

    async def answer(self, outcome: DispatchOutcome) -> None:
        """Merge what the request came to, as the outbox does."""
        worker = Worker(
            storage=self.engine._storage,
            clock=SystemClock(),
            config=EngineConfig(),
            analyser=ProviderAnalyser(),
            archives=ledger_archives(),
        )
        dispatch = await self.engine._storage.read(
            lambda tx: tx.dispatches.get(self.workspace_id, self.taken.dispatch_id)
        )
        assert dispatch is not None
        await worker.settle(dispatch, outcome)

    async def go_through(self, events: Sequence[Event], answer: DispatchOutcome, place: int) -> None:
        """Hear events in their order, and the answer before the one at a place."""
        for index, event in enumerate(events):
            if index == place:
                await self.answer(answer)
            await self.hear(event)
        if place >= len(events):
            await self.answer(answer)

    async def check_kept(self) -> None:
        """Check that every event is kept once, and that the dispatch knows the provider's identifier."""
        records = await self.engine.callbacks.list(self.workspace_id)
        assert len({record.event_id for record in records}) == len(records)
        dispatch = await self.engine._storage.read(
            lambda tx: tx.dispatches.get(self.workspace_id, self.taken.dispatch_id)
        )
        assert dispatch is not None
        assert (dispatch.state, dispatch.provider_id) == ("accepted", PROVIDER_ID)


@asynccontextmanager
async def line(part: P) -> AsyncIterator[Line[P]]:
    """Open an engine with one message, or one call, whose intent is committed."""
    config = EngineConfig(public_url=PUBLIC_URL)
    storage = MemoryStorage(clock=SystemClock())
    async with Outreach(storage, config=config) as engine:
        workspace = await engine.workspaces.create(
            NewWorkspace(name="Live", mode=WorkspaceMode.LIVE, contact_hours=False)
        )
        account = await engine.accounts.connect(workspace.id, part.name, part.credentials)
        await storage.write(lambda tx: tx.leases.put(make_lease(epoch=EPOCH)))
        await storage.write(lambda tx: tx.workers.put(make_worker(epoch=EPOCH)))
        terms = IntentTerms(
            dispatch_id=new_id(),
            epoch=EPOCH,
            latest=engine.now() + timedelta(hours=1),
            lifetime=timedelta(seconds=5),
            stale_after=timedelta(minutes=10),
            backoff=BACKOFF,
        )
        if part.channel == "sms":
            new = NewMessage(to=PERSON, body="x", from_number=SENDER, carrier=part.name)
            item_id = (await engine.messages.send(workspace.id, new)).id
        else:
            agent = await engine.agents.create(
                workspace.id, NewAgent(name="Ada", provider=part.name, provider_agent_id="agent-1")
            )
            item_id = (await engine.calls.create(workspace.id, NewCall(agent_id=agent.id, to=PERSON))).id

        def commit(tx: Transaction) -> Any:
            unit = WorkUnit("message" if part.channel == "sms" else "call", workspace.id, item_id)
            return singles.commit_single(tx, unit, terms, clock_now=engine.now)

        assert await storage.write(commit) is not None
        yield Line(
            part=part,
            engine=engine,
            workspace_id=workspace.id,
            account_id=account.id,
            item_id=item_id,
            taken=Taken(provider_id=PROVIDER_ID, dispatch_id=terms.dispatch_id, to=PERSON),
        )


pytestmark = pytest.mark.sample(6)

NOBODYS: Final = Taken(provider_id=f"SM{0xB2:032x}", dispatch_id="0195554e-0000-7000-8000-00000000beef", to=PERSON)
"""A message or a call of which the ledger knows nothing."""

STATUSES: Final = ("accepted", "sent", "failed", "delivered")


@pytest.mark.field(11)
@pytest.mark.parametrize("part_of", CARRIERS)
@settings(max_examples=25)
@given(
    told=st.lists(st.sampled_from([*STATUSES, "nobodys"]), min_size=1, max_size=8).filter(
        lambda told: {"sent", "failed", "delivered"} & set(told)
    ),
    place=st.integers(0, 8),
    answer=st.sampled_from(ANSWERS),
)
@example(told=["delivered", "failed", "sent"], place=3, answer=ANSWERS[0])
@example(told=["failed", "delivered", "failed"], place=1, answer=ANSWERS[1])
def test_receipts_come_to_the_same_in_every_order(
    part_of: type[CarrierPart], told: list[Any], place: int, answer: DispatchOutcome
) -> None:
    """Delivered wins over failed, and both over sent, before the answer and after it, once and often.

    In twilio-csharp's users' code a late `sent` overwrites `delivered`.
    """

    async def run() -> None:
        async with line(part_of()) as here:
            now = datetime.now(UTC)
            events = [
                here.part.receipt(NOBODYS, "delivered", now)
                if status == "nobodys"
                else here.part.receipt(here.taken, status, now)
                for status in told
            ]
            await here.go_through(events, answer, place)
            message = await here.engine.messages.get(here.workspace_id, here.item_id)
            best = next(status for status in ("delivered", "failed", "sent") if status in told)
            assert (message.status, message.reason) == (best, here.part.failure if best == "failed" else None)
            await here.check_kept()
            assert len(await here.engine.callbacks.list(here.workspace_id)) == len(set(told))
            assert [one async for one in here.engine.unsubscribes.iter_all(here.workspace_id)] == []

    anyio.run(run)


@pytest.mark.field(11)
@pytest.mark.parametrize("part_of", VOICES)
@settings(max_examples=25)
@given(data=st.data(), place=st.integers(0, 10), answer=st.sampled_from(ANSWERS))
def test_the_events_of_a_call_come_to_the_same_in_every_order(
    part_of: type[VoicePart], data: st.DataObject, place: int, answer: DispatchOutcome
) -> None:
    """It ends as it ended, with the analysis that may come first, before the answer and after it, once and often.

    Chatwoot let an event that came late take a status back.
    """

    async def run() -> None:
        async with line(part_of()) as here:
            ended = datetime.now(UTC).replace(microsecond=0)
            talk = [*here.part.talk(here.taken, ended)]
            again = data.draw(st.lists(st.sampled_from(range(len(talk))), max_size=4))
            nobodys = here.part.talk(NOBODYS, ended)[-1:]
            events = data.draw(st.permutations([*talk, *(talk[index] for index in again), *nobodys]))
            await here.go_through(events, answer, place)
            call = await here.engine.calls.get(here.workspace_id, here.item_id)
            assert (call.status, call.outcome, call.answered_by) == ("completed", "positive", "human")
            assert (call.summary, call.ended_at) == (SUMMARY, ended)
            assert (call.duration_seconds, call.provider_call_id) == (ANSWERED_BY_PERSON.total_seconds(), PROVIDER_ID)
            await here.check_kept()

    anyio.run(run)


@pytest.mark.field(11)
@pytest.mark.parametrize("part_of", [*CARRIERS, *VOICES])
@settings(max_examples=25)
@given(data=st.data(), answers=st.sampled_from([ANSWERS[:1], ANSWERS[::-1]]))
def test_callbacks_without_our_reference_wait_for_the_answer(
    part_of: type[CarrierPart] | type[VoicePart], data: st.DataObject, answers: Sequence[DispatchOutcome]
) -> None:
    """Field, test 11 (users of twilio-csharp: the callback is there before the create response): it waits for that.

    What the provider's identifier alone names is merged when the answer, or a look-up after it, tells that: in every
    order, before it and after it, once and often; and what is nobody's waits for nobody.
    """

    async def run() -> None:
        async with line(part_of()) as here:
            ended = datetime.now(UTC).replace(microsecond=0)
            told = [*_everything(here.part, here.unnamed, ended)]
            again = data.draw(st.lists(st.sampled_from(range(len(told))), max_size=4))
            nobodys = _everything(here.part, attrs.evolve(NOBODYS, dispatch_id=""), ended)[-1:]
            course: list[Event | DispatchOutcome] = [
                *data.draw(st.permutations([*told, *(told[index] for index in again), *nobodys]))
            ]
            place = 0
            for answer in answers:
                place = data.draw(st.integers(place, len(course)))
                course.insert(place, answer)
                place += 1
            for one in course:
                await (here.answer(one) if isinstance(one, DispatchOutcome) else here.hear(one))
            if here.part.channel == "sms":
                assert (await here.engine.messages.get(here.workspace_id, here.item_id)).status == "delivered"
            else:
                call = await here.engine.calls.get(here.workspace_id, here.item_id)
                assert (call.status, call.outcome, call.answered_by) == ("completed", "positive", "human")
                assert (call.summary, call.ended_at) == (SUMMARY, ended)
                assert call.duration_seconds == ANSWERED_BY_PERSON.total_seconds()
            await here.check_kept()
            for record in await here.engine.callbacks.list(here.workspace_id):
                assert (record.result == "unmatched") == (NOBODYS.provider_id in record.event_id), record

    anyio.run(run)


@pytest.mark.field(11)
@pytest.mark.parametrize("names", [{"CallSid": PROVIDER_ID}, {"call_sid": PROVIDER_ID}, {"sip_call_id": PROVIDER_ID}])
@settings(max_examples=25)
@given(data=st.data(), answers=st.sampled_from([ANSWERS[:1], ANSWERS[::-1]]))
def test_a_call_that_did_not_come_about_is_known_by_what_its_answer_named(
    names: Mapping[str, str], data: st.DataObject, answers: Sequence[DispatchOutcome]
) -> None:
    """Field, test 11 (Chatwoot, twilio-csharp): the answer may name the telephony's call alone, a failure never us.

    In every order, before the answer and after it, once and often: a busy line is one, and is called again.
    """

    async def run() -> None:
        async with line(ElevenLabs()) as here:
            told, nobodys = (_failure(here, conversation, body) for conversation, body in (("1", names), ("2", {})))
            course: list[Event | DispatchOutcome] = [*data.draw(st.permutations([told, told, nobodys]))]
            place = 0
            for answer in answers:
                place = data.draw(st.integers(place, len(course)))
                course.insert(place, answer)
                place += 1
            for one in course:
                await (here.answer(one) if isinstance(one, DispatchOutcome) else here.hear(one))
            assert (await here.engine.calls.get(here.workspace_id, here.item_id)).status == "busy"
            await here.check_kept()
            records = await here.engine.callbacks.list(here.workspace_id)
            assert {record.event_id.split(":")[0]: record.result for record in records} == {
                "conv-1": "merged",
                "conv-2": "unmatched",
            }

    anyio.run(run)


def _failure(here: Line[ElevenLabs], conversation: str, names: Mapping[str, str]) -> Event:
    """Return what ElevenLabs tells of a busy line: the conversation, and what the telephony said."""
    (event,) = here.part.busy(attrs.evolve(here.unnamed, provider_id=f"conv-{conversation}"), datetime.now(UTC))
    body = names or {"CallSid": "CA-nobodys"}
    return Event(content={**event.content, "data": {**event.content["data"], "metadata": {"body": body}}})


@pytest.mark.anyio
@pytest.mark.parametrize("part_of", [*CARRIERS, *VOICES])
async def test_an_event_that_names_two_dispatches_is_merged_where_calls_have_two_identifiers(
    part_of: type[CarrierPart] | type[VoicePart],
) -> None:
    """ElevenLabs alone: its answer may have the telephony's identifier, and its events have the conversation's."""
    async with line(part_of()) as here:
        await here.answer(ANSWERS[0])
        told = _everything(here.part, attrs.evolve(here.taken, provider_id=f"SM{0xC3:032x}"), datetime.now(UTC))
        results = {result for event in told for result in await here.hear(event)}
        assert results == ({"merged"} if here.part.name == "elevenlabs" else {"mismatched"})
        await here.check_kept()


def _everything(part: Part, taken: Taken, ended: datetime) -> Sequence[Event]:
    """Return what a provider tells of a message that is delivered, or of a call that goes well."""
    if isinstance(part, VoicePart):
        # The sound that comes beside it tells nothing.
        return [event for event in part.talk(taken, ended) if event.content.get("type") != "post_call_audio"]
    assert isinstance(part, CarrierPart)
    return [part.receipt(taken, status, ended) for status in ("sent", "failed", "delivered")]


@pytest.mark.field(11)
@pytest.mark.anyio
@pytest.mark.parametrize("part_of", VOICES)
@pytest.mark.parametrize("first", ["talk", "busy"])
async def test_a_call_that_has_ended_keeps_its_end(part_of: type[VoicePart], first: str) -> None:
    """A later report of another end changes nothing. In Chatwoot the last report won."""
    async with line(part_of()) as here:
        ended = datetime.now(UTC).replace(microsecond=0)
        talk, busy = here.part.talk(here.taken, ended), here.part.busy(here.taken, ended)
        for event in talk if first == "talk" else busy:
            await here.hear(event)
        before = await here.engine.calls.get(here.workspace_id, here.item_id)
        assert before.status == ("completed" if first == "talk" else "busy")
        for event in busy if first == "talk" else talk:
            await here.hear(event)
        await here.answer(ANSWERS[0])
        assert await here.engine.calls.get(here.workspace_id, here.item_id) == before


@pytest.mark.anyio
@pytest.mark.parametrize("part_of", [Vapi, Retell])
@pytest.mark.parametrize("place", range(4))
async def test_an_end_without_its_reason_decides_nothing(part_of: type[VoicePart], place: int) -> None:
    """It says that the call is over, not how: a busy line stays one, wherever it comes; and it is no end by itself."""
    async with line(part_of()) as here:
        ended = datetime.now(UTC).replace(microsecond=0)
        (over,) = here.part.over(here.taken, ended)
        await here.hear(over)
        call = await here.engine.calls.get(here.workspace_id, here.item_id)
        assert (call.status, call.outcome, call.ended_at) == ("initiated", None, None)
        assert (call.provider_call_id, call.is_open) == (PROVIDER_ID, True)
        events = [*here.part.busy(here.taken, ended)]
        events.insert(place, over)
        for event in events:
            await here.hear(event)
        call = await here.engine.calls.get(here.workspace_id, here.item_id)
        assert (call.status, call.outcome, call.ended_at) == ("busy", "busy", ended)


@pytest.mark.anyio
@pytest.mark.parametrize("part_of", VOICES)
@pytest.mark.parametrize("backwards", [False, True])
async def test_who_wants_no_more_calls_is_on_the_register_once(part_of: type[VoicePart], backwards: bool) -> None:
    """The opt-out counts with the first event that reports it, and its evidence is the call."""
    async with line(part_of()) as here:
        events = list(here.part.do_not_call(here.taken, datetime.now(UTC)))
        for event in [*reversed(events), *events] if backwards else events * 2:
            await here.hear(event)
        (entry,) = [one async for one in here.engine.unsubscribes.iter_all(here.workspace_id)]
        assert (entry.phone, entry.source) == (PERSON, "call")


@pytest.mark.anyio
@pytest.mark.parametrize("part_of", CARRIERS)
@pytest.mark.parametrize(("word", "scope"), [("Can you stop by tomorrow?", "held"), ("STOP", "all")])
async def test_a_start_counts_by_when_it_was_written_where_its_carrier_tells(
    part_of: type[CarrierPart], word: str, scope: str
) -> None:
    """One that is delivered late lifts nothing that was written since; elsewhere the order of arrival counts."""
    async with line(part_of()) as here:
        now = datetime.now(UTC)

        async def hear(body: str, *, ago: int) -> str | None:
            assert await here.hear(here.part.text(PERSON, body, now - timedelta(seconds=ago))) == ["received"]
            found = [entry async for entry in here.engine.unsubscribes.iter_all(here.workspace_id)]
            return found[0].scope if found else None

        assert await hear(word, ago=20) == scope
        assert await hear("START", ago=30) == (scope if here.part.dates_texts else None)
        assert await hear("START", ago=10) is None
        # The same for a word from before the START that has come already.
        assert await hear(word, ago=15) == (None if here.part.dates_texts else scope)
        assert await hear(word, ago=5) == scope
