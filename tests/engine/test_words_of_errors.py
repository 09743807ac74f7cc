"""Errors of adapters, storages and dispatchers of one's own: the log tells where, and not in their words."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator

import attrs
import pytest
from anyio.abc import TaskStatus

from outreach import NewAgent, NewCall, Outreach
from outreach.core.clock import SystemClock
from outreach.core.log_throttle import LogThrottle
from outreach.core.logged_errors import described, masked
from outreach.dispatch.adapter_answers import SafeAnalyser
from outreach.errors import ConfigError, NotFound, StorageError
from outreach.models.call import CallOutcome
from outreach.models.dispatch import Dispatch, DispatchOutcome
from outreach.models.reports import CallReport
from outreach.models.states import CallStatus
from outreach.protocols import Instrumentation
from outreach.protocols.carrier import LookupRequest, OutboundMessage, ReportSink
from outreach.protocols.voice import CallRequest
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.testing.scripted import ScriptedCarrier, ScriptedVoice, drop
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.rig import QUICK, dispatching, given_workspace, sending, start_campaign, until_true
from tests.engine.test_own_dispatchers import Own
from tests.logged import BODY, NUMBER, SECRETS, TOKEN, Log, break_down, listening

pytestmark = pytest.mark.virtual_time

CURIOUS = attrs.evolve(
    QUICK, reconcile_interval_seconds=0.05, reconcile_delay_seconds=1.0, provider_timeout_seconds=5.0
)


@pytest.fixture
def log() -> Iterator[Log]:
    """Hear what is logged."""
    with listening() as heard:
        yield heard


async def logged(log: Log, action: str) -> None:
    """Wait until there is a line of an action."""
    await until_true(lambda: log.of(action), timeout_seconds=600)


class Breaking(ScriptedCarrier):
    """Fails at one of the things that a carrier does."""

    fails_at = ""

    async def send(self, message: OutboundMessage) -> DispatchOutcome:
        """Send, or fail."""
        if self.fails_at == "send":
            break_down()
        return await super().send(message)

    async def look_up(self, lookup: LookupRequest) -> DispatchOutcome | None:
        """Look up, or fail."""
        if self.fails_at == "look_up":
            break_down()
        return await super().look_up(lookup)

    async def listen(self, sink: ReportSink) -> None:
        """Listen, or fail."""
        if self.fails_at == "listen":
            break_down()
        await super().listen(sink)


@pytest.mark.parametrize(
    ("fails_at", "action"), [("send", "dispatch_failed"), ("look_up", "look_up_failed"), ("listen", "listen_failed")]
)
async def test_a_carrier_of_ones_own(log: Log, fails_at: str, action: str) -> None:
    """As it sends, is asked what became of a message, or listens."""
    carrier = Breaking(then=drop("dropped") if fails_at == "look_up" else None, look_up="evidence")
    carrier.fails_at = fails_at
    async with sending(MemoryStorage(clock=clock_of_loop()), 1, carrier=carrier, config=CURIOUS):
        await logged(log, action)
    log.holds_no_words()
    log.tells_where(action)


class BreakingVoice(ScriptedVoice):
    """Fails as it calls, or is asked about a call."""

    fails_at = ""

    async def place_call(self, request: CallRequest) -> DispatchOutcome:
        """Call, or fail."""
        if self.fails_at == "place_call":
            break_down()
        return await super().place_call(request)

    async def status(self, *, workspace_id: str, dispatch_id: str, provider_id: str | None) -> CallReport | None:
        """Fail."""
        break_down()


@pytest.mark.parametrize(("fails_at", "action"), [("place_call", "dispatch_failed"), ("status", "call_status_failed")])
async def test_a_voice_provider_of_ones_own(log: Log, fails_at: str, action: str) -> None:
    """As it calls, or is asked how a call goes on."""
    voice = BreakingVoice()
    voice.fails_at = fails_at
    async with dispatching(MemoryStorage(clock=clock_of_loop()), voice=voice, config=CURIOUS) as rig:
        workspace = await given_workspace(rig.engine)
        agent = await rig.engine.agents.create(workspace.id, NewAgent(name="A"))
        await rig.engine.calls.create(workspace.id, NewCall(agent_id=agent.id, to="+14155550101"))
        await logged(log, action)
    log.holds_no_words()
    log.tells_where(action)


@pytest.mark.parametrize("action", ["slice_failed", "renew_failed"])
async def test_a_storage_of_ones_own(log: Log, action: str) -> None:
    """Whatever it was asked to write."""
    async with sending(MemoryStorage(clock=clock_of_loop()), 1, config=CURIOUS) as (rig, _):
        rig.storage.before_write = break_down
        await logged(log, action)
        rig.storage.before_write = lambda: None
    log.holds_no_words()
    log.tells_where(action)


async def breaks_later(task_status: TaskStatus[None]) -> None:
    """Start, and fail."""
    task_status.started()
    break_down()


async def test_a_dispatcher_of_ones_own(log: Log) -> None:
    """Once it has started; before, the error is its caller's."""
    async with Outreach.open("memory://", dispatch=True, dispatcher=Own(breaks_later)):
        await logged(log, "dispatcher_failed")
    log.holds_no_words()
    log.tells_where("dispatcher_failed")


class BreakingInstrument(Instrumentation):
    """Fails at each intent."""

    def intent_committed(self, dispatch: Dispatch) -> None:
        """Fail."""
        break_down()


async def test_an_instrumentation_of_ones_own(log: Log) -> None:
    """The message is sent all the same."""
    engine = Outreach.open("memory://", dispatch=True, config=QUICK, instrumentation=[BreakingInstrument()])
    async with engine:
        workspace = await given_workspace(engine)
        await start_campaign(engine, workspace, 1)
        await logged(log, "instrumentation_failed")
    log.holds_no_words()
    log.tells_where("instrumentation_failed")


class BreakingAnalyser:
    """Fails at each call."""

    def outcome(self, report: CallReport) -> CallOutcome | None:
        """Fail."""
        break_down()


async def test_an_analyser_of_ones_own(log: Log) -> None:
    """Its class is told."""
    analyser = SafeAnalyser(BreakingAnalyser(), LogThrottle(SystemClock()))
    report = CallReport(
        workspace_id="w",
        provider="vapi",
        dispatch_id="d",
        provider_id="c",
        status=CallStatus.COMPLETED,
        at=SystemClock().now(),
    )
    assert analyser.outcome(report) is None
    (record,) = log.of("analyser_failed")
    assert vars(record)["error_type"] == "ExceptionGroup"
    log.holds_no_words()


async def _poll() -> None:
    break_down()


def _call(to: str, body: str) -> None:
    break_down()


async def _forget() -> None:
    task = asyncio.create_task(_poll())
    asyncio.get_running_loop().call_soon(_call, NUMBER, BODY)
    await asyncio.wait([task])


def test_a_task_and_a_callback_that_an_adapter_has_forgotten(log: Log) -> None:
    """The message of asyncio has the error's words and the arguments of a callback."""
    asyncio.run(_forget())
    gc.collect()
    lines = [line for line in log.lines if "break_down" in line]
    assert any("Task exception was never retrieved" in line for line in lines)
    assert any("Exception in callback _call('…', '…')" in line for line in lines)
    log.holds_no_words()


def test_values_for_operators_are_shown_masked() -> None:
    """Those of the errors of a database and of settings; what they quote may be a row's value."""
    for kind in (StorageError, ConfigError):
        told = described(kind(f"No space is left for {NUMBER} and {BODY!r} in column \"to_number\" of '{TOKEN}'."))
        assert told == (
            f"outreach.errors.{kind.__name__}: "
            "No space is left for +***********89 and '…' in column \"to_number\" of '…'."
        )
    assert described(NotFound("call", NUMBER)) == "outreach.errors.NotFound"


def test_errors_have_the_systems_own_words() -> None:
    """By its number: those that an error was made with may be anything."""
    assert described(ConnectionRefusedError(111, BODY)) == "ConnectionRefusedError: [ECONNREFUSED] Connection refused"
    assert described(OSError(NUMBER, BODY)) == "OSError"


class Unspeakable(StorageError):
    """Has no words."""

    def __str__(self) -> str:
        raise ZeroDivisionError


def test_describing_an_error_never_fails_and_has_an_end() -> None:
    """Chains without end, groups without end, a recursion, and an error that has no words."""
    ring = ValueError()
    ring.__cause__ = KeyError()
    ring.__cause__.__cause__ = ring
    assert described(ring).count("Error") == 2
    chain: BaseException = ValueError()
    for _ in range(5000):
        chain, before = ValueError(), chain
        chain.__context__ = before
    assert described(chain).count("ValueError") == 50
    assert described(ExceptionGroup("", [ValueError()] * 5000)).count("ValueError") < 60

    def recurse() -> None:
        recurse()

    with pytest.raises(RecursionError) as raised:
        recurse()
    assert described(raised.value).count("recurse") == 40
    assert described(Unspeakable("")).endswith("Unspeakable")


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("call 0151 2345678 or (415) 555-0100", "call **********78 or (***********00"),
        ("dispatch 019a1b2c-0000-7000-8000-123456789012 at 2026-11-22 10:15", None),
        ("06.12.34.56.78 or 415/555/0102", "************78 or **********02"),
        ("+49 (0)30 / 901820", "+***************20"),
        ("415\u2011555\u20110102, 415\u00a0555\u00a00102", "**********02, **********02"),
        ("127.0.0.1 port 5432", None),
        ("No answer of 192.168.100.123.", None),
        ("port 65000", "port *****"),
        ("outreach-server --database sqlite:////data/2026112210/o.db db migrate", None),
        ("The high-water mark '/state 20261122/outreach-1a2b.dispatch-note' cannot be written.", None),
        (
            "'/data 20261122/o.db' is gone: https://example.com/+4915123456789",
            "'/data 20261122/o.db' is gone: https://example.com/+***********89",
        ),
        ("the adapter's account isn't there", None),
        ('relation "campaigns" is missing, File "/a b/c.py", line 3', None),
        ("'it's Anna' and \"Dear\nAnna\" 'Dear Anna", "'…' and \"…\" '…'"),
        ("it's 'Dear \\'Anna\\'' and \"Hi\"", "it's '…' and \"…\""),
    ],
)
def test_what_is_masked(words: str, shown: str | None) -> None:
    """Long numbers and what is quoted; ids, addresses, dates and names stay."""
    assert masked(words) == (shown or words)


def test_a_long_text_is_cut_before_it_is_looked_through() -> None:
    """A provider's page of HTML is no line."""
    assert masked("x" * 10**6) == "x" * 2000
    assert masked("y " * 990 + repr(BODY)) == "y " * 990 + "…".join("''")
    assert not any(secret in masked(f"{NUMBER!r} {BODY!r} {TOKEN!r}") for secret in SECRETS)
