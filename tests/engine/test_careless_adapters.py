"""Adapters of one's own whose callbacks are read into what is none of what they are to be read into."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from types import MappingProxyType
from typing import Any

import anyio
import attrs
import pytest

from outreach import NewAgent, NewCall, NewNumber, Outreach, WorkspaceMode
from outreach.dispatch.adapter_answers import recordable_event, recordable_report
from outreach.errors import CallbackRejected
from outreach.models import CallStatus
from outreach.models.dispatch import DispatchOutcome
from outreach.models.states import MessageStatus
from outreach.protocols import (
    Callback,
    CallbackEvent,
    CallbackRefused,
    CallReport,
    Connection,
    InboundMessageEvent,
    MessageReport,
)
from outreach.protocols.voice import CallRequest
from outreach.testing.scripted import ScriptedVoice, accept
from tests.engine.conftest import OpenStorage
from tests.engine.rig import given_workspace, reaches, start_campaign, until
from tests.engine.test_own_adapters import live
from tests.fake_provider import CREDENTIALS
from tests.own_adapter import OwnAdapter, OwnVoiceAdapter

pytestmark = pytest.mark.anyio

AT = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
REPORT = MessageReport(
    workspace_id="w", provider="mycarrier", dispatch_id=None, provider_id="SM1", status=MessageStatus.DELIVERED, at=AT
)
STOP = InboundMessageEvent(provider_id="in1", from_number="+14155550101", to="+14155550100", body="STOP", at=AT)
NOTHING: Any = None
TEXT: Any = "2026-03-02T09:30:00Z"
OTHER: Any = {"status": "delivered"}
BUSY: Any = CallStatus.BUSY


class Careless(OwnAdapter):
    """Reads each callback as what it was told."""

    told: Any = ()
    told_in: Mapping[str, Sequence[CallbackEvent]] = MappingProxyType({})
    """What it was told for one workspace, as it is."""

    def read(self, connection: Connection, callback: Callback) -> Sequence[CallbackEvent]:
        """Return it, in the account's workspace."""
        if connection.workspace_id in self.told_in:
            return self.told_in[connection.workspace_id]
        if not isinstance(self.told, list):
            found: Sequence[CallbackEvent] = self.told
            return found
        return [_in_workspace(event, connection.workspace_id) for event in self.told]


def _in_workspace(event: Any, workspace_id: str) -> Any:
    if isinstance(event, CallbackEvent) and isinstance(event.content, MessageReport | CallReport):
        return attrs.evolve(event, content=attrs.evolve(event.content, workspace_id=workspace_id))
    return event


async def call_back(engine: Outreach, account_id: str) -> list[str]:
    """Call back; return what became of what was new."""
    records = await engine.callbacks.receive(account_id, url="/", headers={}, body=b"")
    return [record.result for record in records]


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (None, "an event is NoneType"),
        ([OTHER], "an event is dict, not CallbackEvent"),
        ([CallbackEvent(event_id=NOTHING, content=None)], "no event_id"),
        ([CallbackEvent(event_id="", content=None)], "no event_id"),
        ([CallbackEvent(event_id="e", content=OTHER)], "content of an event is dict"),
        ([CallbackEvent(event_id="e", content=attrs.evolve(REPORT, status=OTHER))], "is no MessageStatus"),
        ([CallbackEvent(event_id="e", content=attrs.evolve(REPORT, status=BUSY))], "is no MessageStatus"),
        ([CallbackEvent(event_id="e", content=attrs.evolve(REPORT, at=TEXT))], "time of MessageReport is str"),
        ([CallbackEvent(event_id="e", content=attrs.evolve(REPORT, at=NOTHING))], "is NoneType, not datetime"),
        ([CallbackEvent(event_id="e", content=attrs.evolve(STOP, from_number=NOTHING))], "no from_number"),
        ([CallbackEvent(event_id="e", content=attrs.evolve(STOP, to=NOTHING))], "a message has no to"),
        ([CallbackEvent(event_id="e", content=attrs.evolve(STOP, at=TEXT))], "time of InboundMessageEvent is str"),
    ],
)
async def test_what_is_no_event_is_refused_in_words_and_what_stands_beside_it_is_taken(
    open_storage: OpenStorage, told: Any, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Not by whatever a storage says of it, after which the provider would come again; and a STOP beside it counts."""
    own = Careless()
    async with live(open_storage, [own]) as (engine, workspace_id):
        account = await engine.accounts.connect(workspace_id, "mycarrier", CREDENTIALS)
        own.told = told
        for _ in range(2):
            with pytest.raises(CallbackRejected, match=f"adapter of mycarrier .*{words}"):
                await call_back(engine, account.id)
        (line,) = [record for record in caplog.records if getattr(record, "action", None) == "callback_refused"]
        assert line.levelno == logging.ERROR
        assert list(await engine.callbacks.list(workspace_id)) == []
        own.told = [*(told or []), CallbackEvent(event_id="e", content=STOP)]
        assert await call_back(engine, account.id) == ["received"]
        assert [entry.phone async for entry in engine.unsubscribes.iter_all(workspace_id)] == ["+14155550101"]


async def test_a_report_of_another_workspace_is_left_out(
    open_storage: OpenStorage, caplog: pytest.LogCaptureFixture
) -> None:
    """It changes nothing there, and the STOP beside it counts, as does that of the other workspace's callback."""
    own = Careless()
    async with live(open_storage, [own]) as (engine, other_id):
        ours = await given_workspace(engine, mode=WorkspaceMode.LIVE)
        await engine.numbers.create(ours.id, NewNumber(phone="+14155550109", carrier="mycarrier"))
        account = await engine.accounts.connect(ours.id, "mycarrier", CREDENTIALS)
        others = await engine.accounts.connect(other_id, "mycarrier", CREDENTIALS)
        campaign = await start_campaign(engine, await engine.workspaces.get(other_id), 1, carrier="mycarrier")
        await reaches(engine, campaign, "completed")
        (dispatch,) = await engine.campaigns.list_dispatches(other_id, campaign.id, 0)
        report = attrs.evolve(REPORT, workspace_id=other_id, dispatch_id=dispatch.id, provider_id=dispatch.provider_id)
        now = datetime.now(UTC)
        own.told_in = {
            ours.id: (
                CallbackEvent(event_id="e1", content=attrs.evolve(report, at=now)),
                CallbackEvent(event_id="e2", content=attrs.evolve(report, workspace_id="nowhere", at=now)),
                CallbackEvent(event_id="e3", content=attrs.evolve(STOP, to="+14155550109", at=now)),
            ),
            other_id: (CallbackEvent(event_id="e4", content=attrs.evolve(STOP, at=now)),),
        }
        results: dict[str, list[str]] = {}

        async def receive(account_id: str) -> None:
            results[account_id] = await call_back(engine, account_id)

        async with anyio.create_task_group() as group:
            for account_id in (others.id, account.id):
                group.start_soon(receive, account_id)
        assert results == {account.id: ["received"], others.id: ["received"]}
        assert list(await engine.campaigns.list_dispatches(other_id, campaign.id, 0)) == [dispatch]
        for workspace_id in (ours.id, other_id):
            assert [entry.phone async for entry in engine.unsubscribes.iter_all(workspace_id)] == ["+14155550101"]
        (line,) = [record for record in caplog.records if getattr(record, "action", None) == "callback_refused"]
        assert "names another workspace" in line.getMessage()


async def test_what_can_be_read_all_the_same_is_taken(open_storage: OpenStorage) -> None:
    """A status by its word, a time without a zone, a number that is one, a text that is none."""
    own = Careless()
    async with live(open_storage, [own]) as (engine, workspace_id):
        account = await engine.accounts.connect(workspace_id, "mycarrier", CREDENTIALS)
        campaign = await start_campaign(engine, await engine.workspaces.get(workspace_id), 1, carrier="mycarrier")
        await reaches(engine, campaign, "completed")
        (dispatch,) = await engine.campaigns.list_dispatches(workspace_id, campaign.id, 0)
        # An old event would be recorded alone.
        at = datetime.now(UTC).replace(microsecond=0)
        word, number, naive = "delivered", 14155550101, at.replace(tzinfo=None)
        report = attrs.evolve(REPORT, dispatch_id=dispatch.id, provider_id=None, status=word, at=naive)  # type: ignore[arg-type]
        text = attrs.evolve(STOP, provider_id=NOTHING, from_number=number, body=NOTHING, keyword="stop", at=naive)  # type: ignore[arg-type]
        own.told = [CallbackEvent(event_id="e1", content=report), CallbackEvent(event_id="e2", content=text)]
        assert await call_back(engine, account.id) == ["merged", "received"]
        (dispatch,) = await engine.campaigns.list_dispatches(workspace_id, campaign.id, 0)
        assert dispatch.report is MessageStatus.DELIVERED
        (message,) = await engine.messages.list_inbound(workspace_id)
        assert (message.from_number, message.body, message.written_at) == ("+14155550101", "", at)
        assert [entry.phone async for entry in engine.unsubscribes.iter_all(workspace_id)] == ["+14155550101"]


@pytest.mark.parametrize(
    "content",
    [
        attrs.evolve(REPORT, at=datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5)))),
        attrs.evolve(REPORT, at=datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5)))),
        attrs.evolve(REPORT, retry_after_seconds=10**400),
        attrs.evolve(
            STOP,
            provider_id="in2",
            from_number="+14155550102",
            at=datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5))),
        ),
    ],
)
async def test_an_event_with_an_extreme_value_is_taken_and_so_is_a_stop_beside_it(
    open_storage: OpenStorage, content: Any
) -> None:
    """A time that UTC cannot express, and a wait that no `float` can."""
    own = Careless()
    async with live(open_storage, [own]) as (engine, workspace_id):
        account = await engine.accounts.connect(workspace_id, "mycarrier", CREDENTIALS)
        own.told = [CallbackEvent(event_id="e1", content=content), CallbackEvent(event_id="e2", content=STOP)]
        assert len(await call_back(engine, account.id)) == 2
        opted_out = {entry.phone async for entry in engine.unsubscribes.iter_all(workspace_id)}
        assert opted_out == {one.from_number for one in (content, STOP) if isinstance(one, InboundMessageEvent)}


class Generator(Careless):
    """Verifies and reads a callback in a generator."""

    def read(self, connection: Connection, callback: Callback) -> Any:
        """Yield what it was told, unless the callback is unsigned."""
        if not callback.body:
            raise CallbackRefused("The signature is missing.")
        yield from self.told


async def test_a_callback_that_is_read_by_a_generator_is_verified(open_storage: OpenStorage) -> None:
    """The refusal is raised as it is read."""
    own = Generator()
    own.told = [CallbackEvent(event_id="e", content=STOP)]
    async with live(open_storage, [own]) as (engine, workspace_id):
        account = await engine.accounts.connect(workspace_id, "mycarrier", CREDENTIALS)
        with pytest.raises(CallbackRejected, match="signature is missing"):
            await call_back(engine, account.id)
        (record,) = await engine.callbacks.receive(account.id, url="/", headers={}, body=b"signed")
        assert record.result == "received"


class Late(ScriptedVoice):
    """Accepts a call when it is let go on."""

    def __init__(self) -> None:
        super().__init__(lambda _: accept("C1"))
        self.go_on = anyio.Event()

    async def place_call(self, request: CallRequest) -> DispatchOutcome:
        """Wait, then place it."""
        await self.go_on.wait()
        return await super().place_call(request)


class CarelessVoice(OwnVoiceAdapter):
    """Reads the end of a call in words of its own."""

    def __init__(self) -> None:
        self.voice = self.late = Late()

    def read(self, connection: Connection, callback: Callback) -> Sequence[CallbackEvent]:
        """Return it."""
        words: Any = "splendid"
        report = CallReport(
            workspace_id=connection.workspace_id,
            provider=self.name,
            dispatch_id=None,
            provider_id="C1",
            status=CallStatus.COMPLETED,
            at=connection.clock.now(),
            outcome=words,
            reason=words,
        )
        return [CallbackEvent(event_id="e", content=report)]


async def test_words_of_an_early_event_do_not_hold_up_the_answer_that_it_waits_for(open_storage: OpenStorage) -> None:
    """It is read again when the answer names its call, and that answer must be recorded whatever was told before."""
    own = CarelessVoice()
    async with live(open_storage, [OwnAdapter(), own]) as (engine, workspace_id):
        account = await engine.accounts.connect(workspace_id, "myvoice", {"key": "k"})
        agent = await engine.agents.create(workspace_id, NewAgent(name="Ada", provider="myvoice"))
        call = await engine.calls.create(workspace_id, NewCall(agent_id=agent.id, to="+14155550101"))
        assert await call_back(engine, account.id) == ["unmatched"]
        own.late.go_on.set()
        await until(lambda: engine.calls.get(workspace_id, call.id), lambda found: found.status is CallStatus.COMPLETED)
        found = await engine.calls.get(workspace_id, call.id)
        assert (found.provider_call_id, found.outcome) == ("C1", None)


@pytest.mark.parametrize(
    ("media", "kept", "left_out"),
    [
        (["https://a.example/1", None, 7], ("https://a.example/1",), 2),
        ("https://a.example/1", (), 1),
        (None, (), 0),
        (["https://a.example/1"], ["https://a.example/1"], 0),
    ],
)
def test_media_that_are_no_texts_are_left_out_and_counted(media: Any, kept: Any, left_out: int) -> None:
    """The message counts all the same."""
    event = CallbackEvent(event_id="e", content=attrs.evolve(STOP, media=media))
    content = recordable_event(event, "w").content
    assert isinstance(content, InboundMessageEvent)
    assert (content.media, content.media_left_out) == (kept, left_out)


def test_a_report_names_its_workspace_and_provider_in_texts_that_every_storage_takes() -> None:
    """Or it would make the reports fail that share its transaction."""
    with pytest.raises(TypeError, match="no workspace_id"):
        recordable_report(attrs.evolve(REPORT, workspace_id=NOTHING))
    report = recordable_report(attrs.evolve(REPORT, workspace_id="w\x00", provider="my\ud83dcarrier"))
    assert "\x00" not in report.workspace_id
    report.provider.encode()
