from __future__ import annotations

import signal
from collections.abc import Sequence
from contextlib import asynccontextmanager
from typing import Any

import attrs
import httpx
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased, Sampler, TraceIdRatioBased
from opentelemetry.trace import SpanKind, StatusCode
from starlette.testclient import TestClient

from outreach import ConfigError, EngineConfig, NewMessage, Outreach
from outreach.integrations.opentelemetry import Tracing, trace_id_of, tracer
from outreach.models.dispatch import DispatchOutcome
from outreach.models.reports import MessageReport
from outreach.models.states import DispatchState, MessageStatus
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.testing.builders import NOW, make_dispatch, new_id
from outreach.testing.clock import ShiftedClock
from outreach.testing.scripted import ScriptedCarrier, accept, fail
from outreach_server import create_app
from outreach_server.monitoring import request_spans
from tests.cli.conftest import Process, database, start
from tests.engine.rig import QUICK, given_campaign, given_workspace, reaches, until

__all__ = ["database", "start"]

BODY = "Hello Ada, call +14155550123"
TO = "+14155550100"
_ENDS = ("intent", "report")


class Collected:
    """Spans that were made."""

    def __init__(self, sampler: Sampler | None = None) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(sampler=sampler)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        """Those that have ended."""
        return self._exporter.get_finished_spans()

    def named(self, name: str) -> ReadableSpan:
        """Return the one span with a name."""
        (found,) = [span for span in self.spans if span.name == name]
        return found


def _context(span: ReadableSpan) -> Any:
    assert span.context is not None
    return span.context


@asynccontextmanager
async def _engine(collected: Collected, carrier: ScriptedCarrier | None, config: EngineConfig = QUICK) -> Any:
    engine = Outreach(
        MemoryStorage(),
        dispatch=True,
        clock=ShiftedClock(),
        config=config,
        sandbox_carrier=carrier,
        instrumentation=[Tracing(collected.provider)],
    )
    async with engine:
        yield engine


@pytest.mark.anyio
async def test_a_message_is_followed_from_the_request_to_the_receipt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The intent links to the request; request to the provider and receipt are in the trace of the dispatch."""
    collected, carrier = Collected(), ScriptedCarrier(lambda _: accept().delivered(after_seconds=0.05), name="twilio")
    monkeypatch.setattr(
        "outreach.integrations.opentelemetry.tracer", lambda name, given=None: tracer(name, given or collected.provider)
    )
    async with _engine(collected, carrier) as engine:
        workspace = await given_workspace(engine)
        key = (await engine.api_keys.create(workspace.id)).api_key
        app = create_app(engine=engine, tracing=True)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
            answer = await client.post(
                "/sms",
                json={"to": TO, "body": BODY, "from_number": "+14155550199", "carrier": "twilio"},
                headers={
                    "Authorization": f"Bearer {key}",
                    "X-Request-Id": "r-1",
                    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                },
            )
        assert answer.status_code == 201, answer.text
        await until(lambda: _ended(collected, "twilio report"))
    (request,) = carrier.requests
    http, intent = collected.named("POST Messages"), collected.named("sms intent")
    asked, report = collected.named("twilio request"), collected.named("twilio report")
    assert f"{_context(http).trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert [link.context.span_id for link in intent.links] == [_context(http).span_id]
    assert http.attributes is not None
    assert (http.attributes["http.response.status_code"], http.attributes["outreach.request_id"]) == (201, "r-1")
    dispatched = request.dispatch_id.replace("-", "")
    assert {f"{_context(span).trace_id:032x}" for span in (intent, asked, report)} == {dispatched}
    assert asked.parent is not None
    assert asked.parent.span_id == _context(intent).span_id
    assert (asked.kind, report.kind) == (SpanKind.CLIENT, SpanKind.CONSUMER)
    for span in (intent, asked):
        assert span.attributes is not None
        assert span.attributes["outreach.dispatch_id"] == request.dispatch_id
        assert span.attributes["outreach.message_id"] == answer.json()["id"]
        assert span.attributes["outreach.outcome"] == "accepted"
    assert report.attributes is not None
    assert report.attributes["outreach.status"] == "delivered"


async def _ended(collected: Collected, name: str) -> bool:
    return any(span.name == name for span in collected.spans)


@pytest.mark.virtual_time
async def test_no_attribute_holds_a_number_or_a_text() -> None:
    """Whatever a span is of; a failed request is marked as one."""
    collected = Collected()
    async with _engine(
        collected, ScriptedCarrier([fail(ValueError(f"{TO} {BODY}")), accept().delivered()], name="twilio")
    ) as engine:
        workspace = await given_workspace(engine)
        await engine.messages.send(workspace.id, NewMessage(to=TO, body=BODY, from_number="+14155550199"))
        campaign = await given_campaign(engine, workspace, 2, body=BODY)
        await engine.campaigns.start(campaign.workspace_id, campaign.id)
        await until(lambda: _count(collected, "twilio request", 3))
    shown = " ".join(
        f"{span.name} {dict(span.attributes or {})} {span.status.description} {[e.attributes for e in span.events]}"
        for span in collected.spans
    )
    assert "+1415" not in shown
    assert "4155550" not in shown
    assert "Hello" not in shown
    failed = [span for span in collected.spans if span.status.status_code is StatusCode.ERROR]
    assert {span.name for span in failed} == {"sms intent", "twilio request"}


async def _count(collected: Collected, name: str, count: int) -> bool:
    return sum(span.name == name for span in collected.spans) >= count


@pytest.mark.virtual_time
async def test_what_a_provider_s_client_does_is_under_the_request() -> None:
    """The span of the request is the current one while the carrier works, and nothing is current afterwards."""
    collected, seen = Collected(), []

    def look(_: object) -> Any:
        seen.append(trace.get_current_span().get_span_context().span_id)
        return accept()

    async with _engine(collected, ScriptedCarrier(look, name="twilio")) as engine:
        campaign = await given_campaign(engine, await given_workspace(engine), 2)
        await engine.campaigns.start(campaign.workspace_id, campaign.id)
        await reaches(engine, campaign, "completed")
    requests = [_context(span).span_id for span in collected.spans if span.name == "twilio request"]
    assert sorted(seen) == sorted(requests)
    assert not trace.get_current_span().get_span_context().is_valid


@pytest.mark.virtual_time
async def test_the_spans_of_a_sandbox_name_the_simulator() -> None:
    """And not the carrier that the message names."""
    collected = Collected()
    async with _engine(collected, None) as engine:
        workspace = await given_workspace(engine)
        await engine.messages.send(workspace.id, NewMessage(to=TO, body=BODY, carrier="telnyx"))
        await until(lambda: _ended(collected, "simulator report"))
    assert {span.name for span in collected.spans} == {"sms intent", "simulator request", "simulator report"}
    assert {(span.attributes or {})["outreach.provider"] for span in collected.spans} == {"simulator"}


def test_a_dispatch_that_was_withdrawn_has_an_intent_alone() -> None:
    """Its span ends all the same, and nothing is remembered of it."""
    collected = Collected()
    tracing = Tracing(collected.provider)
    dispatch = attrs.evolve(make_dispatch(), id=new_id())
    tracing.intent_committed(dispatch)
    tracing.request_ended(dispatch, DispatchOutcome(state=DispatchState.WITHDRAWN, reason="paused"), seconds=None)
    assert [span.name for span in collected.spans] == [f"{dispatch.channel} intent"]
    assert not tracing._open


def test_every_process_traces_the_same_share_of_dispatches() -> None:
    """By the dispatch's id; ids that are no UUIDs have a trace too."""
    ids = [new_id() for _ in range(400)]
    picked = []
    for _ in range(2):
        collected = Collected()
        tracing = Tracing(collected.provider, ratio=0.25)
        for one in ids:
            dispatch = attrs.evolve(make_dispatch(), id=one)
            tracing.intent_committed(dispatch)
            tracing.request_ended(dispatch, DispatchOutcome(state=DispatchState.WITHDRAWN), seconds=None)
        picked.append({_context(span).trace_id for span in collected.spans})
    assert picked[0] == picked[1]
    assert 40 < len(picked[0]) < 180
    assert 0 < trace_id_of("no uuid") < 2**128


@pytest.mark.parametrize(
    ("sampler", "least", "most"),
    [
        (None, 400, 400),
        (ALWAYS_OFF, 0, 0),
        (ParentBased(ALWAYS_OFF), 0, 0),
        (ParentBased(TraceIdRatioBased(0.25)), 40, 180),
        (ParentBased(TraceIdRatioBased(0.8)), 220, 399),
        # It reads bits of the trace id that are the same in every UUID: a known limit.
        (TraceIdRatioBased(0.25), 0, 0),
    ],
)
def test_the_sampler_of_the_host_picks_dispatches(sampler: Sampler | None, least: int, most: int) -> None:
    """By the root's sampler, and the report of a dispatch as its intent."""
    collected = Collected(sampler)
    tracing = Tracing(collected.provider)
    for _ in range(400):
        dispatch = attrs.evolve(make_dispatch(), id=new_id())
        tracing.intent_committed(dispatch)
        tracing.request_ended(dispatch, DispatchOutcome(state=DispatchState.WITHDRAWN), seconds=None)
        report = MessageReport(
            workspace_id=dispatch.workspace_id,
            provider=dispatch.provider,
            dispatch_id=dispatch.id,
            provider_id=None,
            status=MessageStatus.DELIVERED,
            at=NOW,
        )
        tracing.report_received(dispatch, report, delay_seconds=None)
    traces = [{_context(span).trace_id for span in collected.spans if span.name.endswith(end)} for end in _ENDS]
    assert traces[0] == traces[1]
    assert least <= len(traces[0]) <= most


@pytest.mark.parametrize("ratio", [-0.1, 1.1, True, "half"])
def test_a_ratio_that_is_none_is_refused(ratio: Any) -> None:
    """With the words for it."""
    with pytest.raises(ConfigError, match="from 0 and up to 1"):
        Tracing(ratio=ratio)


@pytest.mark.parametrize("command", ["serve", "worker"])
def test_spans_without_an_exporter_are_reported(command: str, start: Any) -> None:
    """No SDK is set up in the process: tracing would be on, and nothing be seen."""
    options = ("--port", "0", "--no-dispatch") if command == "serve" else ()
    process: Process = start(command, "--tracing", *options)
    process.says("no SDK of OpenTelemetry takes them")
    process.says("Serving" if command == "serve" else "Working")
    process.signal(signal.SIGTERM)
    assert process.wait() == 0


def test_an_sdk_that_is_set_up_takes_the_spans(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Then there is nothing to say."""
    request_spans.warn_if_spans_are_lost()
    assert [record.__dict__["action"] for record in caplog.records] == ["spans_lost"]
    caplog.clear()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", Collected().provider)
    request_spans.warn_if_spans_are_lost()
    assert not caplog.records


def test_requests_make_spans_only_where_it_is_asked_for() -> None:
    """Without `tracing` nothing of OpenTelemetry is used."""
    for tracing in (False, True):
        server: Any = create_app("memory://", tracing=tracing).user_middleware[0].kwargs["server"]
        assert isinstance(server.spans, request_spans.RequestSpans) is tracing


class Failing(SpanProcessor):
    """Raises an error where a span begins, or where it ends.

    Args:
        at: Which of them.
    """

    def __init__(self, at: str) -> None:
        self._at = at

    def on_start(self, span: object, parent_context: object = None) -> None:
        """Fail, if it is its turn."""
        self._fail("start")

    def on_end(self, span: object) -> None:
        """Fail, if it is its turn."""
        self._fail("end")

    def _fail(self, at: str) -> None:
        if at == self._at:
            raise ZeroDivisionError("0")


@pytest.mark.parametrize("at", ["start", "end"])
def test_spans_that_fail_turn_no_request_away(
    at: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Each is answered as ever; the log says so once a minute, and not at each."""
    provider = TracerProvider()
    provider.add_span_processor(Failing(at))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    with TestClient(create_app("memory://", tracing=True)) as client:
        assert [client.get("/healthz").status_code for _ in range(3)] == [200] * 3
    lines = [record for record in caplog.records if record.__dict__.get("action") == "instrumentation_failed"]
    assert len(lines) == 1
    assert "ZeroDivisionError" in lines[0].getMessage()
