"""The simulated carrier and voice provider: peers of the real ones, for sandboxes, demonstrations and tests."""

from __future__ import annotations

import heapq
import itertools
import json
import math
import os
import random
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Final, Literal

import anyio
import attrs

from outreach.core.clock import Clock, IdSource, format_timestamp, parse_timestamp
from outreach.core.config import SimulatorConfig
from outreach.models.dispatch import DispatchOutcome
from outreach.models.reports import CallReport, MessageReport, Report
from outreach.models.states import CallStatus, DispatchState, MessageStatus
from outreach.protocols.carrier import CarrierCapabilities, LookupRequest, LookupSupport, OutboundMessage, ReportSink
from outreach.protocols.voice import CallRequest, VoiceCapabilities


@attrs.frozen(kw_only=True)
class Acceptance:
    """One accepted request."""

    kind: str
    to: str
    from_number: str | None
    body: str | None
    dispatch_id: str
    at: datetime


_MAX_REMEMBERED: Final = 50_000
"""Acceptances kept in memory, some 30 MB: those of an hour at 14 a second."""


class AcceptanceLog:
    """One JSON line for each accepted message or call, written before the response.

    Memory holds the newest ones only. An older one is read from the file; without a file it is forgotten, and a look-up
    finds no evidence either way.

    Args:
        path: The file; None keeps the newest acceptances in memory only.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._seen: dict[str, Acceptance] = {}

    @property
    def durable(self) -> bool:
        """Whether it outlives the process, so that a missing request was never accepted."""
        return self._path is not None

    def append(self, entry: Acceptance) -> None:
        """Append one line in one write: two processes may append to the same file."""
        self._seen[entry.dispatch_id] = entry
        if len(self._seen) > _MAX_REMEMBERED:
            # A dictionary keeps the order of insertion: the first is the oldest.
            del self._seen[next(iter(self._seen))]
        if self._path is None:
            return
        line = json.dumps(
            {
                "kind": entry.kind,
                "to": entry.to,
                "from": entry.from_number,
                "body": entry.body,
                "dispatch_id": entry.dispatch_id,
                "at": format_timestamp(entry.at),
            },
            ensure_ascii=False,
        )
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, (line + "\n").encode())
        finally:
            os.close(descriptor)

    def find(self, dispatch_id: str) -> Acceptance | None:
        """Return the acceptance of a dispatch id, in this process or, with a file, in any."""
        found = self._seen.get(dispatch_id)
        if found is None and self._path is not None and self._path.exists():
            with self._path.open(encoding="utf-8") as lines:
                for line in lines:
                    if dispatch_id in line:
                        found = _parse_acceptance(line)
        return found


def _parse_acceptance(line: str) -> Acceptance | None:
    try:
        entry = json.loads(line)
        return Acceptance(
            kind=entry["kind"],
            to=entry["to"],
            from_number=entry["from"],
            body=entry["body"],
            dispatch_id=entry["dispatch_id"],
            at=parse_timestamp(entry["at"]),
        )
    except (ValueError, KeyError, TypeError):
        # A crash cut this line, so it was never answered.
        return None


REFUSED: Final = DispatchOutcome(state=DispatchState.REFUSED, reason="temporary", error_code="simulated")


class SimulatedProvider:
    """Takes requests, logs them, and sends reports when they are due.

    Half of the latency passes before the acceptance and half after, so that, as with a real provider, the request of a
    killed process may or may not have been accepted.

    Args:
        config: Latency, share of refusals, log.
        clock: The source of time.
        rng: Decides which requests are refused.
        ids: Makes the provider's ids.
    """

    def __init__(self, *, config: SimulatorConfig, clock: Clock, rng: random.Random, ids: IdSource) -> None:
        self._config = config
        self._clock = clock
        self._rng = rng
        self._ids = ids
        self._log = AcceptanceLog(config.log_file)
        self._scheduler = ReportScheduler(clock)

    @property
    def name(self) -> str:
        """The name in the log."""
        return "simulator"

    async def look_up(self, lookup: LookupRequest) -> DispatchOutcome | None:
        """Look up a dispatch in the log."""
        if self._log.find(lookup.dispatch_id) is not None:
            return DispatchOutcome(state=DispatchState.ACCEPTED)
        if self._log.durable:
            return DispatchOutcome(state=DispatchState.NOT_SENT, reason="not_found")
        return None

    async def listen(self, sink: ReportSink) -> None:
        """Send reports when they are due, until cancelled."""
        await self._scheduler.listen(sink)

    @property
    def _look_up_power(self) -> LookupSupport:
        # With a log file, a missing request was certainly never accepted.
        return "authoritative" if self._log.durable else "evidence"

    async def _take(
        self, kind: Literal["sms", "call"], *, to: str, from_number: str | None, body: str | None, dispatch_id: str
    ) -> str | None:
        """Accept a request and return its id, or None if it is refused temporarily."""
        at = self._clock.now()
        await self._half_the_latency()
        refused = self._rng.random() < self._config.failure_rate
        if not refused:
            self._log.append(
                Acceptance(kind=kind, to=to, from_number=from_number, body=body, dispatch_id=dispatch_id, at=at)
            )
        await self._half_the_latency()
        return None if refused else f"sim_{kind}_{self._ids()}"

    async def _half_the_latency(self) -> None:
        await anyio.sleep(self._config.latency_ms / 2000)


_MAX_AT_ONCE: Final = 200
"""Reports sent together."""

_Due = tuple[datetime, int, Callable[[], Report]]


class ReportScheduler:
    """Sends reports in the order of their times; those that are due at once, together."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._order = itertools.count()
        self._queue: list[_Due] = []
        self._changed = anyio.Event()

    def schedule(self, delay: timedelta, make: Callable[[], Report]) -> None:
        """Schedule a report after a delay."""
        heapq.heappush(self._queue, (self._clock.now() + delay, next(self._order), make))
        self._changed.set()

    async def listen(self, sink: ReportSink) -> None:
        """Send reports when they are due, until cancelled."""
        while True:
            self._changed = anyio.Event()
            now = self._clock.now()
            due: list[_Due] = []
            while self._queue and self._queue[0][0] <= now and len(due) < _MAX_AT_ONCE:
                due.append(heapq.heappop(self._queue))
            if due:
                await self._hand_in(due, sink)
                continue
            wait = (self._queue[0][0] - now).total_seconds() if self._queue else None
            with anyio.move_on_after(wait):
                await self._changed.wait()

    async def _hand_in(self, due: Sequence[_Due], sink: ReportSink) -> None:
        """Send reports concurrently; failed ones are sent again."""
        left = {order: (at, order, make) for at, order, make in due}
        errors: list[Exception] = []

        async def hand_in(order: int, make: Callable[[], Report]) -> None:
            try:
                await sink(make())
            except Exception as error:
                errors.append(error)
            else:
                del left[order]

        try:
            async with anyio.create_task_group() as tasks:
                for _, order, make in due:
                    tasks.start_soon(hand_in, order, make)
        finally:
            for one in left.values():
                heapq.heappush(self._queue, one)
        if errors:
            raise errors[0]


_RECEIPT_DELAY: Final = timedelta(milliseconds=50)


class SimulatedCarrier(SimulatedProvider):
    """Accepts messages, logs them, and reports them sent and delivered a moment later."""

    @property
    def capabilities(self) -> CarrierCapabilities:
        """With a log file, its look-up can also prove that a request was not accepted."""
        return CarrierCapabilities(look_up=self._look_up_power, supports_not_after=False)

    async def send(self, message: OutboundMessage) -> DispatchOutcome:
        """Accept one message, or refuse it temporarily by chance."""
        provider_id = await self._take(
            "sms", to=message.to, from_number=message.from_number, body=message.body, dispatch_id=message.dispatch_id
        )
        if provider_id is None:
            return REFUSED
        for delay, status in ((1, MessageStatus.SENT), (2, MessageStatus.DELIVERED)):
            self._scheduler.schedule(_RECEIPT_DELAY * delay, self._receipt(message, provider_id, status))
        return DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=provider_id)

    def _receipt(self, message: OutboundMessage, provider_id: str, status: MessageStatus) -> Callable[[], Report]:
        return lambda: MessageReport(
            workspace_id=message.workspace_id,
            provider=self.name,
            dispatch_id=message.dispatch_id,
            provider_id=provider_id,
            status=status,
            at=self._clock.now(),
        )


_RING_DELAY: Final = timedelta(milliseconds=100)
_ANSWER_DELAY: Final = timedelta(milliseconds=300)
_SUMMARY: Final = "Simulated call: a person answered and was interested."
_TRANSCRIPT: Final = "agent: Hello, do you have a moment?\nuser: Yes, that sounds good."
_ASKS_FOR_CALL: Final = "0199"
"""The last digits of the numbers whose people ask to be called again."""
_CALLBACK_SUMMARY: Final = "Simulated call: a person answered and asked to be called again."
_CALLBACK_TRANSCRIPT: Final = "agent: Hello, do you have a moment?\nuser: Not now, please call me again."
_A_MINUTE: Final = Decimal("0.10")
"""The price of a begun minute, in US dollars."""


class SimulatedVoice(SimulatedProvider):
    """Accepts calls, logs them, and reports them ringing, answered and ended.

    Every call is answered by a person and ends well after the configured seconds; a person whose number ends in 0199
    asks to be called again. The end brings what was said and a cost, as with a real provider.
    """

    @property
    def capabilities(self) -> VoiceCapabilities:
        """With a log file, its look-up can also prove that a request was not accepted."""
        return VoiceCapabilities(look_up=self._look_up_power, supports_not_after=False)

    async def place_call(self, request: CallRequest) -> DispatchOutcome:
        """Accept one call, or refuse it temporarily by chance."""
        provider_id = await self._take(
            "call", to=request.to, from_number=request.from_number, body=None, dispatch_id=request.dispatch_id
        )
        if provider_id is None:
            return REFUSED
        for delay, status in self._course():
            self._scheduler.schedule(delay, self._event(request, provider_id, status))
        return DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=provider_id)

    async def status(self, *, workspace_id: str, dispatch_id: str, provider_id: str | None) -> CallReport | None:
        """Return from the log how far a call must have come, also one of an earlier process."""
        accepted = self._log.find(dispatch_id)
        if accepted is None:
            return None
        now = self._clock.now()
        reached = [(accepted.at + delay, status) for delay, status in self._course() if accepted.at + delay <= now]
        if not reached:
            return None
        at, status = reached[-1]
        return self._report(workspace_id, dispatch_id, provider_id, status, at, to=accepted.to)

    def _course(self) -> tuple[tuple[timedelta, CallStatus], ...]:
        talk = timedelta(seconds=self._config.call_seconds)
        return (
            (_RING_DELAY, CallStatus.RINGING),
            (_ANSWER_DELAY, CallStatus.IN_PROGRESS),
            (_ANSWER_DELAY + talk, CallStatus.COMPLETED),
        )

    def _event(self, request: CallRequest, provider_id: str, status: CallStatus) -> Callable[[], Report]:
        return lambda: self._report(
            request.workspace_id, request.dispatch_id, provider_id, status, self._clock.now(), to=request.to
        )

    def _report(
        self,
        workspace_id: str,
        dispatch_id: str,
        provider_id: str | None,
        status: CallStatus,
        at: datetime,
        *,
        to: str,
    ) -> CallReport:
        answered = status in {CallStatus.IN_PROGRESS, CallStatus.COMPLETED}
        report = CallReport(
            workspace_id=workspace_id,
            provider="simulator",
            dispatch_id=dispatch_id,
            provider_id=provider_id,
            status=status,
            at=at,
            answered_by="human" if answered else None,
        )
        if status is not CallStatus.COMPLETED:
            return report
        again = to.endswith(_ASKS_FOR_CALL)
        return attrs.evolve(
            report,
            outcome="callback" if again else "positive",
            summary=_CALLBACK_SUMMARY if again else _SUMMARY,
            transcript=_CALLBACK_TRANSCRIPT if again else _TRANSCRIPT,
            cost=_A_MINUTE * math.ceil(self._config.call_seconds / 60),
            cost_currency="USD",
        )
