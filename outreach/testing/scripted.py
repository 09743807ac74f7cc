"""A carrier and a voice provider that do as they are told, and remember what they were asked.

Both take a plan: a list of steps, one for each request in its order, after which they accept; or a function that
chooses the step for a request.

    carrier = ScriptedCarrier([refuse("temporary"), defer(2.5), accept()])
    carrier = ScriptedCarrier(lambda message: hang() if message.to == "+14155550100" else accept())
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, Literal, TypeVar

import anyio
import attrs

from outreach.models.dispatch import DispatchOutcome
from outreach.models.reports import CallReport, Report
from outreach.models.states import DispatchState
from outreach.protocols.carrier import CarrierCapabilities, LookupRequest, LookupSupport, OutboundMessage, ReportSink
from outreach.protocols.voice import CallRequest, VoiceCapabilities

RequestT = TypeVar("RequestT", OutboundMessage, CallRequest)


@attrs.frozen(kw_only=True)
class Step:
    """What a scripted provider does with one request.

    Attributes:
        kind: `answer` with the outcome, `raise` the error, or `hang` for ever.
        reaches_contact: Whether the provider takes the request, so that the contact is reached.
        outcome: The answer.
        error: What is raised.
        seconds: How long it takes before it does so.
    """

    kind: Literal["answer", "raise", "hang"]
    reaches_contact: bool
    outcome: DispatchOutcome | None = None
    error: Exception | None = None
    seconds: float = 0.0


def accept(provider_id: str | None = None, *, seconds: float = 0.0) -> Step:
    """Say yes; without an identifier the provider makes one."""
    outcome = DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=provider_id)
    return Step(kind="answer", reaches_contact=True, outcome=outcome, seconds=seconds)


def refuse(reason: str = "rejected", *, error_code: str | None = "scripted", seconds: float = 0.0) -> Step:
    """Say no, with a failure class."""
    outcome = DispatchOutcome(state=DispatchState.REFUSED, reason=reason, error_code=error_code)
    return Step(kind="answer", reaches_contact=False, outcome=outcome, seconds=seconds)


def defer(retry_after_seconds: float | None = None) -> Step:
    """Be too busy, and name a time to come again."""
    outcome = DispatchOutcome(
        state=DispatchState.DEFERRED, reason="rate_limited", retry_after_seconds=retry_after_seconds
    )
    return Step(kind="answer", reaches_contact=False, outcome=outcome)


def not_sent(reason: str = "connect_failed") -> Step:
    """Fail before the request was written."""
    return Step(
        kind="answer", reaches_contact=False, outcome=DispatchOutcome(state=DispatchState.NOT_SENT, reason=reason)
    )


def drop(reason: str = "connection_lost") -> Step:
    """Take the request and lose the connection before the answer: the contact is reached, nobody is told."""
    return Step(
        kind="answer", reaches_contact=True, outcome=DispatchOutcome(state=DispatchState.UNKNOWN, reason=reason)
    )


def fail(error: Exception | None = None) -> Step:
    """Break the contract: raise, with the request already written."""
    return Step(kind="raise", reaches_contact=True, error=error or RuntimeError("A scripted error of an adapter."))


def hang() -> Step:
    """Take the request and never answer."""
    return Step(kind="hang", reaches_contact=True)


Script = Iterable[Step] | Callable[[RequestT], Step]
"""Steps in the order of the requests, or a function that chooses one."""


class _Scripted(Generic[RequestT]):
    """What a scripted carrier and a scripted voice provider share."""

    def __init__(self, plan: Script[RequestT] = (), *, name: str, look_up: LookupSupport) -> None:
        self._choose: Callable[[RequestT], Step] | None = None
        self._steps: deque[Step] = deque()
        if callable(plan):
            self._choose = plan
        else:
            self._steps.extend(plan)
        self._name = name
        self._look_up_power: LookupSupport = look_up
        self._numbers = itertools.count(1)
        self._known: dict[str, DispatchOutcome] = {}
        self._reports: deque[Report] = deque()
        self._changed = anyio.Event()
        self.requests: list[RequestT] = []
        """Every request, in the order in which they came."""
        self.reached: list[RequestT] = []
        """Those that were taken, so that the contact was reached."""

    @property
    def name(self) -> str:
        """The name under which the ledger knows it."""
        return self._name

    async def wait_for_requests(self, count: int, *, timeout_seconds: float = 30.0) -> None:
        """Wait until at least so many requests have come.

        Raises:
            TimeoutError: They did not.
        """
        with anyio.fail_after(timeout_seconds):
            while len(self.requests) < count:
                await self._changed.wait()

    def report(self, event: Report) -> None:
        """Hand a report to whoever listens."""
        self._reports.append(event)
        self._notify()

    async def listen(self, sink: ReportSink) -> None:
        """Hand in the reports, in their order, until it is cancelled."""
        while True:
            changed = self._changed
            while self._reports:
                await sink(self._reports.popleft())
            await changed.wait()

    async def look_up(self, lookup: LookupRequest) -> DispatchOutcome | None:
        """Tell what became of a dispatch, as far as the power goes that it was given."""
        if self._look_up_power == "none":
            return None
        known = self._known.get(lookup.dispatch_id)
        if known is None and self._look_up_power == "authoritative":
            return DispatchOutcome(state=DispatchState.NOT_SENT, reason="not_found")
        return known

    async def _ask(self, request: RequestT, dispatch_id: str) -> DispatchOutcome:
        step = self._next_step(request)
        self.requests.append(request)
        provider_id = f"{self._name}-{next(self._numbers)}"
        if step.reaches_contact:
            self.reached.append(request)
            self._known[dispatch_id] = DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=provider_id)
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

    def _next_step(self, request: RequestT) -> Step:
        if self._choose is not None:
            return self._choose(request)
        return self._steps.popleft() if self._steps else accept()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


class ScriptedCarrier(_Scripted[OutboundMessage]):
    """An SMS carrier that does what its plan says.

    Args:
        plan: What it does with each message.
        name: The name under which the ledger knows it.
        look_up: What its look-up can tell.
    """

    def __init__(
        self, plan: Script[OutboundMessage] = (), *, name: str = "scripted", look_up: LookupSupport = "none"
    ) -> None:
        super().__init__(plan, name=name, look_up=look_up)

    @property
    def capabilities(self) -> CarrierCapabilities:
        """What it can do."""
        return CarrierCapabilities(look_up=self._look_up_power, supports_not_after=True)

    async def send(self, message: OutboundMessage) -> DispatchOutcome:
        """Do the next step of the plan."""
        return await self._ask(message, message.dispatch_id)


class ScriptedVoice(_Scripted[CallRequest]):
    """A voice provider that does what its plan says.

    Args:
        plan: What it does with each call.
        name: The name under which the ledger knows it.
        look_up: What its look-up can tell.

    Attributes:
        progress: What `status` answers, by dispatch id.
    """

    def __init__(
        self, plan: Script[CallRequest] = (), *, name: str = "scripted", look_up: LookupSupport = "none"
    ) -> None:
        super().__init__(plan, name=name, look_up=look_up)
        self.progress: dict[str, CallReport] = {}

    @property
    def capabilities(self) -> VoiceCapabilities:
        """What it can do."""
        return VoiceCapabilities(look_up=self._look_up_power, supports_not_after=True)

    async def place_call(self, request: CallRequest) -> DispatchOutcome:
        """Do the next step of the plan."""
        return await self._ask(request, request.dispatch_id)

    async def status(self, *, workspace_id: str, dispatch_id: str, provider_id: str | None) -> CallReport | None:
        """Tell what a test has put into `progress`."""
        return self.progress.get(dispatch_id)
