"""A carrier and a voice provider that follow a script, and remember their requests.

Both take a plan: a list of steps, one for each request in its order, after which they accept; or a function that
chooses the step for a request.

    carrier = ScriptedCarrier([refuse("temporary"), defer(2.5), accept()])
    carrier = ScriptedCarrier(lambda message: hang() if message.to == "+14155550100" else accept())

A step also says what comes after the request: receipts and replies, or how a call goes on.

    carrier = ScriptedCarrier([accept().delivered().replied("STOP", after_seconds=60)])
    voice = ScriptedVoice([accept().no_answer(), accept().answered(outcome="positive")])
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from typing import ClassVar, Generic, Literal, TypeVar

import anyio
import attrs

from outreach.core.logged_errors import show_words
from outreach.models.call import CallOutcome
from outreach.models.dispatch import FAILURE_CLASSES, DispatchOutcome, FailureClass
from outreach.models.fields import OneOf, check_value
from outreach.models.reports import CallReport, Report
from outreach.models.states import CallStatus, DispatchState, MessageStatus
from outreach.protocols.carrier import CarrierCapabilities, LookupRequest, LookupSupport, OutboundMessage, ReportSink
from outreach.protocols.sent_list import SentQuery, SentRequest
from outreach.protocols.voice import CallRequest, VoiceCapabilities
from outreach.testing.scripted_events import CallEvent, EventQueue, Receipt, Reply, ScriptedEvent, ring, talk
from outreach.testing.virtual_time import clock_of_loop

__all__ = [
    "Script",
    "ScriptedCarrier",
    "ScriptedVoice",
    "Step",
    "accept",
    "defer",
    "drop",
    "fail",
    "hang",
    "not_sent",
    "refuse",
]

RequestT = TypeVar("RequestT", OutboundMessage, CallRequest)


@attrs.frozen(kw_only=True)
class Step:
    """The behaviour of a scripted provider for one request, and its later reports.

    Attributes:
        kind: `answer` with the outcome, `raise` the error, or `hang` for ever.
        reaches_contact: Whether the provider takes the request, so that the contact is reached.
        outcome: The answer.
        error: The error that is raised.
        seconds: How long it takes before it does so.
        events: The provider's reports after the request.
    """

    kind: Literal["answer", "raise", "hang"]
    reaches_contact: bool
    outcome: DispatchOutcome | None = None
    error: Exception | None = None
    seconds: float = 0.0
    events: tuple[ScriptedEvent, ...] = ()

    def delivered(self, *, after_seconds: float = 1.0) -> Step:
        """Return the step with a receipt that the message was delivered."""
        return self._then(Receipt(after_seconds=after_seconds, status=MessageStatus.DELIVERED))

    def undelivered(
        self, reason: FailureClass = "temporary", *, error_code: str | None = "scripted", after_seconds: float = 1.0
    ) -> Step:
        """Return the step with a receipt that the message was not delivered, and its failure class.

        Raises:
            InvalidRequest: The reason is no failure class.
        """
        _check_reason(reason)
        status = MessageStatus.FAILED
        return self._then(Receipt(after_seconds=after_seconds, status=status, reason=reason, error_code=error_code))

    def replied(self, body: str, *, after_seconds: float = 60.0) -> Step:
        """Return the step with a text that the contact writes back."""
        return self._then(Reply(after_seconds=after_seconds, body=body))

    def answered(
        self,
        *,
        outcome: CallOutcome | None = "positive",
        summary: str | None = None,
        do_not_call: bool = False,
        transcript: str | None = None,
        cost: Decimal | None = None,
        after_seconds: float = 5.0,
        talk_seconds: float = 30.0,
    ) -> Step:
        """Return the step with a call that a person answers and that ends after a talk; `cost` is in US dollars."""
        return self._then(
            *talk(
                "human",
                after_seconds=after_seconds,
                talk_seconds=talk_seconds,
                outcome=outcome,
                summary=summary,
                do_not_call=do_not_call,
                transcript=transcript,
                cost=cost,
            )
        )

    def voicemail(self, *, after_seconds: float = 20.0, talk_seconds: float = 10.0) -> Step:
        """Return the step with a call that a machine answers."""
        return self._then(*talk("machine", after_seconds=after_seconds, talk_seconds=talk_seconds))

    def no_answer(self, *, after_seconds: float = 30.0) -> Step:
        """Return the step with a call that nobody answers."""
        return self._then(*ring(after_seconds=after_seconds, status=CallStatus.NO_ANSWER))

    def busy(self, *, after_seconds: float = 2.0) -> Step:
        """Return the step with a call to a number that is busy."""
        return self._then(*ring(after_seconds=after_seconds, status=CallStatus.BUSY))

    def call_failed(self, error: str = "scripted", *, after_seconds: float = 2.0) -> Step:
        """Return the step with a call that fails."""
        return self._then(*ring(after_seconds=after_seconds, status=CallStatus.FAILED, error=error))

    def _then(self, *events: ScriptedEvent) -> Step:
        return attrs.evolve(self, events=(*self.events, *events))


def accept(provider_id: str | None = None, *, seconds: float = 0.0) -> Step:
    """Accept the request; without an identifier the provider makes one."""
    outcome = DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=provider_id)
    return Step(kind="answer", reaches_contact=True, outcome=outcome, seconds=seconds)


def refuse(reason: FailureClass = "rejected", *, error_code: str | None = "scripted", seconds: float = 0.0) -> Step:
    """Refuse the request, with a failure class.

    Raises:
        InvalidRequest: The reason is no failure class.
    """
    _check_reason(reason)
    outcome = DispatchOutcome(state=DispatchState.REFUSED, reason=reason, error_code=error_code)
    return Step(kind="answer", reaches_contact=False, outcome=outcome, seconds=seconds)


def defer(retry_after_seconds: float | None = None) -> Step:
    """Defer the request: the provider is too busy, and names the seconds to wait."""
    outcome = DispatchOutcome(
        state=DispatchState.DEFERRED, reason="rate_limited", retry_after_seconds=retry_after_seconds
    )
    return Step(kind="answer", reaches_contact=False, outcome=outcome)


def not_sent(reason: str = "not_connected") -> Step:
    """Fail before the request was written."""
    return Step(
        kind="answer", reaches_contact=False, outcome=DispatchOutcome(state=DispatchState.NOT_SENT, reason=reason)
    )


def drop(reason: str = "dropped") -> Step:
    """Take the request and lose the connection before the answer: the contact is reached, the outcome unknown."""
    return Step(
        kind="answer", reaches_contact=True, outcome=DispatchOutcome(state=DispatchState.UNKNOWN, reason=reason)
    )


def fail(error: Exception | None = None) -> Step:
    """Break the contract: raise, with the request already written."""
    return Step(kind="raise", reaches_contact=True, error=error or RuntimeError("A scripted error of an adapter."))


def hang() -> Step:
    """Take the request and never answer."""
    return Step(kind="hang", reaches_contact=True)


def _check_reason(reason: str) -> None:
    check_value("reason", reason, OneOf(tuple(FAILURE_CLASSES)))


Script = Iterable[Step] | Callable[[RequestT], Step]
"""Steps in the order of the requests, or a function that chooses one."""


@contextmanager
def _errors_in_words() -> Iterator[None]:
    """Have the engine log the words of an error in full: they say what is wrong with the test."""
    try:
        yield
    except Exception as error:
        show_words(error)
        raise


class _Scripted(Generic[RequestT]):
    """The base of a scripted carrier and a scripted voice provider."""

    _tells: ClassVar[tuple[type[ScriptedEvent], ...]]

    def __init__(
        self, plan: Script[RequestT], *, then: Step, name: str, look_up: LookupSupport, lists_sent: bool
    ) -> None:
        self._choose: Callable[[RequestT], Step] | None = None
        self._steps: deque[Step] = deque()
        self._then = then
        self.script(plan)
        self._name = name
        self._look_up_power: LookupSupport = look_up
        self._lists_sent = lists_sent
        self.listed: list[SentRequest] = []
        """The list that `list_sent` returns: every request that was taken, and those that a test adds."""
        self._numbers = itertools.count(1)
        self._known: dict[str, DispatchOutcome] = {}
        self._events = EventQueue()
        self._changed = anyio.Event()
        self.requests: list[RequestT] = []
        """Every request, in the order in which they came."""
        self.reached: list[RequestT] = []
        """Those that were taken, so that the contact was reached."""
        self.requested_at: list[datetime] = []
        """When each request came, by the clock of the loop."""

    @property
    def name(self) -> str:
        """The name under which the ledger knows it."""
        return self._name

    def script(self, plan: Script[RequestT], *, then: Step | None = None) -> None:
        """Set the plan for the requests from now on; the plan before is dropped.

        Args:
            plan: One step for each request, or a function that chooses the step.
            then: The step once the plan has run out; None leaves it as it is.

        Raises:
            TypeError: Calls are scripted for a carrier, or messages for a voice provider.
        """
        steps: deque[Step] = deque() if callable(plan) else deque(plan)
        for step in (*steps, then or self._then):
            self._check(step)
        self._then = then or self._then
        self._choose = plan if callable(plan) else None
        self._steps = steps

    async def wait_for_requests(self, count: int, *, timeout_seconds: float = 30.0) -> None:
        """Wait until at least this many requests have come.

        Raises:
            TimeoutError: They did not.
        """
        with anyio.fail_after(timeout_seconds):
            while len(self.requests) < count:
                await self._changed.wait()

    def report(self, event: Report) -> None:
        """Pass a report to the sink that listens."""
        self._events.put(lambda sink: sink(event), at=-math.inf)

    async def listen(self, sink: ReportSink) -> None:
        """Pass due reports to the sink, in order, until it is cancelled."""
        await self._events.tell(lambda due: due(sink))

    async def look_up(self, lookup: LookupRequest) -> DispatchOutcome | None:
        """Return the outcome of a dispatch, as far as its `look_up` allows."""
        if self._look_up_power == "none":
            return None
        known = self._known.get(lookup.dispatch_id)
        if known is None and self._look_up_power == "authoritative":
            return DispatchOutcome(state=DispatchState.NOT_SENT, reason="not_found")
        return known

    async def list_sent(self, query: SentQuery) -> Sequence[SentRequest]:
        """Return the listed requests of a period, of any sender."""
        return [one for one in self.listed if query.since <= one.at <= query.until]

    async def _ask(self, request: RequestT) -> DispatchOutcome:
        with _errors_in_words():
            return await self._do_step(request)

    async def _do_step(self, request: RequestT) -> DispatchOutcome:
        dispatch_id = request.dispatch_id
        step = self._choose(request) if self._choose is not None else self._next_step()
        self._check(step)
        self.requests.append(request)
        self.requested_at.append(clock_of_loop().now())
        provider_id = f"{self._name}-{next(self._numbers)}-{dispatch_id}"
        if step.reaches_contact:
            self.reached.append(request)
            taken = DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=provider_id)
            self._known[dispatch_id] = taken
            body = getattr(request, "body", None)
            at = clock_of_loop().now()
            self.listed.append(SentRequest(outcome=taken, to=request.to, at=at, dispatch_id=dispatch_id, body=body))
            for event in step.events:
                self._plan_event(event, request, provider_id, at=anyio.current_time() + step.seconds)
        self._notify()
        await anyio.sleep(step.seconds)
        if step.kind == "hang":
            await anyio.sleep_forever()
        if step.error is not None:
            raise step.error
        outcome = step.outcome or DispatchOutcome(state=DispatchState.UNKNOWN, reason="no_step")
        if outcome.state is DispatchState.ACCEPTED:
            outcome = attrs.evolve(outcome, provider_id=outcome.provider_id or provider_id)
        if outcome.state in {DispatchState.ACCEPTED, DispatchState.REFUSED}:
            self._known[dispatch_id] = outcome
        return outcome

    def _next_step(self) -> Step:
        return self._steps.popleft() if self._steps else self._then

    def _check(self, step: Step) -> None:
        for event in step.events:
            if not isinstance(event, self._tells):
                raise TypeError(f"{type(self).__name__} cannot tell {event!r}: it is for the other kind of provider.")

    def _plan_event(self, event: ScriptedEvent, request: RequestT, provider_id: str, *, at: float) -> None:
        async def tell(sink: ReportSink) -> None:
            with _errors_in_words():
                await self._tell(event, request, provider_id, sink)

        self._events.put(tell, at=at + event.after_seconds)

    async def _tell(self, event: ScriptedEvent, request: RequestT, provider_id: str, sink: ReportSink) -> None:
        raise NotImplementedError

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


class ScriptedCarrier(_Scripted[OutboundMessage]):
    """An SMS carrier that does what its plan says.

    Args:
        plan: What it does with each message.
        then: What it does once the plan has run out; it accepts by default.
        name: The name under which the ledger knows it.
        look_up: What its look-up can return.
        lists_sent: Whether it says that it can list what was sent.

    Attributes:
        on_reply: Takes the replies of contacts, with the message that they reply to and their text.
    """

    _tells = (Receipt, Reply)

    def __init__(
        self,
        plan: Script[OutboundMessage] = (),
        *,
        then: Step | None = None,
        name: str = "scripted",
        look_up: LookupSupport = "none",
        lists_sent: bool = False,
    ) -> None:
        super().__init__(plan, then=then or accept(), name=name, look_up=look_up, lists_sent=lists_sent)
        self.on_reply: Callable[[OutboundMessage, str], Awaitable[object]] | None = None

    @property
    def capabilities(self) -> CarrierCapabilities:
        """Its capabilities."""
        return CarrierCapabilities(look_up=self._look_up_power, supports_not_after=True, lists_sent=self._lists_sent)

    async def send(self, message: OutboundMessage) -> DispatchOutcome:
        """Do the next step of the plan."""
        return await self._ask(message)

    async def _tell(self, event: ScriptedEvent, request: OutboundMessage, provider_id: str, sink: ReportSink) -> None:
        if isinstance(event, Receipt):
            await sink(event.report(request, self.name, provider_id, clock_of_loop().now()))
        elif isinstance(event, Reply):
            if self.on_reply is None:
                raise RuntimeError("A reply is scripted, and nobody takes it: set ScriptedCarrier.on_reply.")
            await self.on_reply(request, event.body)


class ScriptedVoice(_Scripted[CallRequest]):
    """A voice provider that does what its plan says.

    Args:
        plan: What it does with each call.
        then: What it does once the plan has run out; it accepts by default.
        name: The name under which the ledger knows it.
        look_up: What its look-up can return.
        lists_sent: Whether it says that it can list what was sent.

    Attributes:
        progress: The answers of `status`, by dispatch id.
    """

    _tells = (CallEvent,)

    def __init__(
        self,
        plan: Script[CallRequest] = (),
        *,
        then: Step | None = None,
        name: str = "scripted",
        look_up: LookupSupport = "none",
        lists_sent: bool = False,
    ) -> None:
        super().__init__(plan, then=then or accept(), name=name, look_up=look_up, lists_sent=lists_sent)
        self.progress: dict[str, CallReport] = {}

    @property
    def capabilities(self) -> VoiceCapabilities:
        """Its capabilities."""
        return VoiceCapabilities(look_up=self._look_up_power, supports_not_after=True, lists_sent=self._lists_sent)

    async def place_call(self, request: CallRequest) -> DispatchOutcome:
        """Do the next step of the plan."""
        return await self._ask(request)

    async def status(self, *, workspace_id: str, dispatch_id: str, provider_id: str | None) -> CallReport | None:
        """Return the latest event of the call's course, or what a test has put into `progress`."""
        return self.progress.get(dispatch_id)

    async def _tell(self, event: ScriptedEvent, request: CallRequest, provider_id: str, sink: ReportSink) -> None:
        if isinstance(event, CallEvent):
            report = event.report(request, self.name, provider_id, clock_of_loop().now())
            self.progress[request.dispatch_id] = report
            await sink(report)
