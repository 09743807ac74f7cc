from __future__ import annotations

import gc
import json
import random
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from outreach.core.clock import SystemClock, UuidV7Source
from outreach.core.config import SimulatorConfig
from outreach.models.dispatch import DispatchOutcome
from outreach.models.reports import MessageReport, Report
from outreach.models.states import DispatchState, MessageStatus
from outreach.protocols.carrier import LookupRequest, OutboundMessage
from outreach.providers.simulator import Acceptance, SimulatedCarrier
from outreach.testing.builders import WORKSPACE_ID, new_id
from outreach.testing.carrier_contract import CarrierContract
from outreach.testing.scripted import ScriptedCarrier
from tests.labs import ScriptedLab, SimulatorLab


def _carrier(*, seed: int = 1, clock: SystemClock | None = None, **config: object) -> SimulatedCarrier:
    clock = clock or SystemClock()
    rng = random.Random(seed)
    return SimulatedCarrier(
        config=SimulatorConfig(**{"latency_ms": 0.0, **config}),  # type: ignore[arg-type]
        clock=clock,
        rng=rng,
        ids=UuidV7Source(clock=clock, rng=rng),
    )


def _message(to: str = "+14155550100", body: str = "Grüße 👋") -> OutboundMessage:
    return OutboundMessage(
        dispatch_id=new_id(), workspace_id=WORKSPACE_ID, from_number="+14155550199", to=to, body=body, not_after=None
    )


class TestSimulatedCarrier(CarrierContract):
    """The simulator without a log file."""

    @pytest.fixture
    def harness(self) -> SimulatorLab:
        """Return simulators that accept, refuse and dawdle."""
        return SimulatorLab(
            {
                "accepts": _carrier(),
                "refuses_for_now": _carrier(failure_rate=1.0),
                "does_not_answer": _carrier(latency_ms=600_000.0),
            }
        )


class TestSimulatedCarrierWithLog(CarrierContract):
    """The simulator with a log file, from which its look-up is authoritative."""

    @pytest.fixture
    def harness(self, tmp_path: Path) -> SimulatorLab:
        """Return simulators that accept, refuse and dawdle, over one log."""
        log = tmp_path / "log.jsonl"
        return SimulatorLab(
            {
                "accepts": _carrier(log_file=log),
                "refuses_for_now": _carrier(log_file=log, failure_rate=1.0),
                "does_not_answer": _carrier(log_file=log, latency_ms=600_000.0),
            }
        )


@pytest.mark.parametrize("look_up", ["none", "evidence", "authoritative"])
class TestScriptedCarrier(CarrierContract):
    """The scripted carrier is a peer: it keeps the contract, whatever its look-up can tell."""

    @pytest.fixture
    def harness(self, look_up: str) -> ScriptedLab:
        """Return a scripted carrier."""
        return ScriptedLab(ScriptedCarrier, look_up=look_up)


pytestmark = pytest.mark.anyio


async def test_the_log_has_one_line_for_each_message_accepted_before_the_answer(tmp_path: Path) -> None:
    """docs/rules.md#sandbox: one JSON line with kind, to, from, body, dispatch_id and at, written before the answer."""
    log = tmp_path / "log.jsonl"
    message = _message()
    before = datetime.now(UTC)
    outcome = await _carrier(log_file=log).send(message)
    (line,) = log.read_text(encoding="utf-8").splitlines()
    entry = json.loads(line)
    at = datetime.fromisoformat(entry.pop("at"))
    assert entry == {
        "kind": "sms",
        "to": message.to,
        "from": message.from_number,
        "body": message.body,
        "dispatch_id": message.dispatch_id,
    }
    assert before <= at <= datetime.now(UTC)
    assert outcome.state is DispatchState.ACCEPTED


async def test_what_is_refused_is_not_in_the_log(tmp_path: Path) -> None:
    """Only what was accepted is logged."""
    log = tmp_path / "log.jsonl"
    outcome = await _carrier(log_file=log, failure_rate=1.0).send(_message())
    assert outcome.state is DispatchState.REFUSED
    assert not log.exists()


async def test_a_message_that_was_cancelled_half_way_may_have_been_taken(tmp_path: Path) -> None:
    """Half of the latency passes after the message is taken: then the log knows what the caller does not."""
    log = tmp_path / "log.jsonl"
    carrier = _carrier(log_file=log, latency_ms=1000.0)
    message = _message()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(carrier.send, message)
        with anyio.fail_after(30):
            while not log.exists():  # noqa: ASYNC110 - a file tells nobody
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    found = await carrier.look_up(_question(message))
    assert found is not None
    assert found.state is DispatchState.ACCEPTED


async def test_a_log_of_an_earlier_process_is_read_and_a_torn_line_is_not_believed(tmp_path: Path) -> None:
    """The look-up goes by the file, and a line that a crash cut short was never answered."""
    log = tmp_path / "log.jsonl"
    sent, torn = _message(), _message()
    await _carrier(log_file=log).send(sent)
    with log.open("a", encoding="utf-8") as file:
        file.write(f'{{"kind": "sms", "to": "+1", "dispatch_id": "{torn.dispatch_id}"')
    later = _carrier(log_file=log)
    states = [found.state for message in (sent, torn) if (found := await later.look_up(_question(message)))]
    assert states == [DispatchState.ACCEPTED, DispatchState.NOT_SENT]


async def test_receipts_come_in_order_with_both_identifiers() -> None:
    """An accepted message is reported sent, then delivered, with our identifier and the carrier's."""
    carrier = _carrier()
    heard: list[Report] = []
    delivered = anyio.Event()

    async def sink(report: Report) -> None:
        heard.append(report)
        if report.status is MessageStatus.DELIVERED:
            delivered.set()

    message = _message()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(carrier.listen, sink)
        outcome = await carrier.send(message)
        with anyio.fail_after(30):
            await delivered.wait()
        tasks.cancel_scope.cancel()
    assert [report.status for report in heard] == [MessageStatus.SENT, MessageStatus.DELIVERED]
    assert {(type(report), report.dispatch_id, report.provider_id) for report in heard} == {
        (MessageReport, message.dispatch_id, outcome.provider_id)
    }


async def test_the_same_seed_refuses_the_same_requests() -> None:
    """`OUTREACH_SIMULATOR_SEED` makes a run repeat."""
    runs = []
    for _ in range(2):
        carrier = _carrier(seed=7, failure_rate=0.5)
        runs.append([(await carrier.send(_message())).state for _ in range(20)])
    assert runs[0] == runs[1]
    assert set(runs[0]) == {DispatchState.ACCEPTED, DispatchState.REFUSED}


def _question(message: OutboundMessage) -> LookupRequest:
    now = datetime.now(UTC)
    return LookupRequest(
        workspace_id=WORKSPACE_ID, dispatch_id=message.dispatch_id, to=message.to, since=now, until=now
    )


@pytest.mark.parametrize("with_file", [False, True])
async def test_memory_keeps_the_newest_acceptances_only(
    with_file: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older one is still found in the file; without a file, no evidence is left of it."""
    monkeypatch.setattr("outreach.providers.simulator._MAX_REMEMBERED", 10)
    carrier = _carrier(log_file=tmp_path / "log.jsonl" if with_file else None)
    before = _acceptances()
    messages = [_message() for _ in range(100)]
    for message in messages:
        await carrier.send(message)
    assert _acceptances() - before == 10
    oldest, newest = [await carrier.look_up(_question(message)) for message in (messages[0], messages[-1])]
    assert newest == DispatchOutcome(state=DispatchState.ACCEPTED)
    assert oldest == (newest if with_file else None)


def _acceptances() -> int:
    gc.collect()
    # Not isinstance, which asks lazy objects of other libraries for their class.
    return sum(type(one) is Acceptance for one in gc.get_objects())
