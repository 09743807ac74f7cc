from __future__ import annotations

import json
import random
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import anyio
import attrs
import pytest

from outreach.core.clock import Clock, SystemClock, UuidV7Source
from outreach.core.config import SimulatorConfig
from outreach.models.reports import CallReport, Report
from outreach.models.states import CallStatus
from outreach.protocols.voice import CallRequest
from outreach.providers.simulator import SimulatedVoice
from outreach.rules.provider_analyser import ProviderAnalyser
from outreach.testing.builders import NOW, WORKSPACE_ID, new_id
from outreach.testing.clock import ManualClock
from outreach.testing.scripted import ScriptedVoice
from outreach.testing.voice_contract import VoiceContract
from tests.labs import ScriptedLab, SimulatorLab

pytestmark = pytest.mark.anyio


def _voice(*, clock: Clock | None = None, **config: object) -> SimulatedVoice:
    clock = clock or SystemClock()
    rng = random.Random(1)
    return SimulatedVoice(
        config=SimulatorConfig(**{"latency_ms": 0.0, "call_seconds": 0.0, **config}),  # type: ignore[arg-type]
        clock=clock,
        rng=rng,
        ids=UuidV7Source(clock=clock, rng=rng),
    )


def _request() -> CallRequest:
    return CallRequest(
        dispatch_id=new_id(),
        workspace_id=WORKSPACE_ID,
        provider_agent_id=None,
        from_number="+14155550199",
        to="+14155550100",
        variables={},
    )


class TestSimulatedVoice(VoiceContract):
    """The simulator without a log file."""

    @pytest.fixture
    def harness(self) -> SimulatorLab:
        """Return simulators that accept, refuse and dawdle."""
        return SimulatorLab(
            {
                "accepts": _voice(),
                "refuses_for_now": _voice(failure_rate=1.0),
                "does_not_answer": _voice(latency_ms=600_000.0),
            }
        )


class TestSimulatedVoiceWithLog(VoiceContract):
    """The simulator with a log file, from which its look-up is authoritative."""

    @pytest.fixture
    def harness(self, tmp_path: Path) -> SimulatorLab:
        """Return simulators that accept, refuse and dawdle, over one log."""
        log = tmp_path / "log.jsonl"
        return SimulatorLab(
            {
                "accepts": _voice(log_file=log),
                "refuses_for_now": _voice(log_file=log, failure_rate=1.0),
                "does_not_answer": _voice(log_file=log, latency_ms=600_000.0),
            }
        )


@pytest.mark.parametrize("look_up", ["none", "evidence", "authoritative"])
class TestScriptedVoice(VoiceContract):
    """The scripted voice provider is a peer: it keeps the contract, whatever its look-up can tell."""

    @pytest.fixture
    def harness(self, look_up: str) -> ScriptedLab:
        """Return a scripted voice provider."""
        return ScriptedLab(ScriptedVoice, look_up=look_up)


async def test_a_call_is_logged_as_a_call(tmp_path: Path) -> None:
    """docs/rules.md#sandbox: the line of a call says `call` and has no body."""
    log = tmp_path / "log.jsonl"
    request = _request()
    await _voice(log_file=log).place_call(request)
    entry = json.loads(log.read_text(encoding="utf-8"))
    assert (entry["kind"], entry["to"], entry["from"], entry["body"]) == ("call", request.to, request.from_number, None)
    assert entry["dispatch_id"] == request.dispatch_id


async def test_the_status_tells_how_far_a_call_must_have_come(tmp_path: Path) -> None:
    """By its log the simulator knows how an accepted call stands at each moment, in a later process too."""
    clock = ManualClock(NOW)
    log = tmp_path / "log.jsonl"
    request = _request()
    await _voice(clock=clock, log_file=log, call_seconds=2.0).place_call(request)
    later = _voice(clock=clock, log_file=log, call_seconds=2.0)
    seen = []
    for seconds in (0.0, 0.1, 0.2, 1.9, 0.1):
        clock.advance(seconds)
        report = await later.status(workspace_id=WORKSPACE_ID, dispatch_id=request.dispatch_id, provider_id="p1")
        seen.append(None if report is None else (report.status, report.at - NOW))
    assert seen == [
        None,
        (CallStatus.RINGING, timedelta(milliseconds=100)),
        (CallStatus.IN_PROGRESS, timedelta(milliseconds=300)),
        (CallStatus.IN_PROGRESS, timedelta(milliseconds=300)),
        (CallStatus.COMPLETED, timedelta(milliseconds=2300)),
    ]


async def test_the_events_of_a_call_come_in_order_and_the_last_has_the_verdict() -> None:
    """A simulated call rings, is answered by a person, and ends well."""
    voice = _voice()
    heard: list[CallReport] = []
    ended = anyio.Event()

    async def sink(report: Report) -> None:
        assert isinstance(report, CallReport)
        heard.append(report)
        if report.status is CallStatus.COMPLETED:
            ended.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(voice.listen, sink)
        await voice.place_call(_request())
        with anyio.fail_after(30):
            await ended.wait()
        tasks.cancel_scope.cancel()
    assert [report.status for report in heard] == [CallStatus.RINGING, CallStatus.IN_PROGRESS, CallStatus.COMPLETED]
    assert [report.answered_by for report in heard] == [None, "human", "human"]
    assert [report.outcome for report in heard] == [None, None, "positive"]


@pytest.mark.parametrize(
    ("status", "answered_by", "verdict", "expected"),
    [
        (CallStatus.COMPLETED, "human", "negative", "negative"),
        (CallStatus.COMPLETED, "machine", None, "voicemail"),
        (CallStatus.COMPLETED, "human", None, None),
        (CallStatus.BUSY, None, None, "busy"),
        (CallStatus.NO_ANSWER, None, None, "no_answer"),
        (CallStatus.FAILED, None, None, "failed"),
        (CallStatus.CANCELED, None, None, None),
    ],
)
def test_the_default_analyser_takes_the_providers_verdict_else_what_the_end_says(
    status: CallStatus, answered_by: str | None, verdict: str | None, expected: str | None
) -> None:
    """The provider's verdict goes first; a machine is a voicemail; the rest follows from the status."""
    report = CallReport(
        workspace_id=WORKSPACE_ID,
        provider="simulator",
        dispatch_id=new_id(),
        provider_id=None,
        status=status,
        at=NOW,
        outcome=verdict,  # type: ignore[arg-type]
        answered_by=answered_by,
    )
    assert ProviderAnalyser().outcome(report) == expected


@pytest.mark.parametrize(("to", "outcome"), [("+14155550100", "positive"), ("+14155550199", "callback")])
async def test_the_end_of_a_call_brings_what_was_said_and_its_cost(tmp_path: Path, to: str, outcome: str) -> None:
    """A minute that has begun counts whole; a number that ends in 0199 asks for another call."""
    clock = ManualClock(NOW)
    voice = _voice(clock=clock, log_file=tmp_path / "log.jsonl", call_seconds=61.0)
    request = attrs.evolve(_request(), to=to)
    await voice.place_call(request)
    told = []
    for seconds in (1.0, 61.0):
        clock.advance(seconds)
        report = await voice.status(workspace_id=WORKSPACE_ID, dispatch_id=request.dispatch_id, provider_id="p1")
        assert report is not None
        told.append((report.outcome, report.transcript is not None, report.cost, report.cost_currency))
    assert told == [(None, False, None, None), (outcome, True, Decimal("0.20"), "USD")]
