"""The reports of a scripted provider after it has taken a request: receipts, replies, the course of a call."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Awaitable, Callable
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import anyio
import attrs

from outreach.models.call import CallOutcome
from outreach.models.reports import CallReport, MessageReport, Report
from outreach.models.states import CallStatus, MessageStatus
from outreach.protocols.carrier import OutboundMessage
from outreach.protocols.voice import CallRequest

RING_SECONDS: Final = 1.0
"""How long after its request a call rings."""


@attrs.frozen(kw_only=True)
class Receipt:
    """A delivery receipt.

    Attributes:
        after_seconds: How long after the request it comes.
        reason: Failure class, where the message was not delivered.
    """

    after_seconds: float
    status: MessageStatus
    reason: str | None = None
    error_code: str | None = None

    def report(self, request: OutboundMessage, provider: str, provider_id: str, at: datetime) -> Report:
        """Return it as the engine takes it."""
        return MessageReport(
            workspace_id=request.workspace_id,
            provider=provider,
            dispatch_id=request.dispatch_id,
            provider_id=provider_id,
            status=self.status,
            at=at,
            reason=self.reason,
            error_code=self.error_code,
        )


@attrs.frozen(kw_only=True)
class Reply:
    """A text that the contact writes back.

    Attributes:
        after_seconds: How long after the request it comes.
    """

    after_seconds: float
    body: str


@attrs.frozen(kw_only=True)
class CallEvent:
    """A step in the course of a call.

    Attributes:
        after_seconds: How long after the request it comes.
        answered_by: `human` or `machine`, once the call was answered.
        outcome: The provider's verdict at the end.
        do_not_call: Whether the contact wants no more calls.
        cost: In US dollars; None if the provider does not tell.
    """

    after_seconds: float
    status: CallStatus
    answered_by: str | None = None
    outcome: CallOutcome | None = None
    summary: str | None = None
    error: str | None = None
    do_not_call: bool = False
    transcript: str | None = None
    cost: Decimal | None = None

    def report(self, request: CallRequest, provider: str, provider_id: str, at: datetime) -> CallReport:
        """Return it as the engine takes it."""
        return CallReport(
            workspace_id=request.workspace_id,
            provider=provider,
            dispatch_id=request.dispatch_id,
            provider_id=provider_id,
            status=self.status,
            at=at,
            answered_by=self.answered_by,
            outcome=self.outcome,
            summary=self.summary,
            error=self.error,
            do_not_call=self.do_not_call,
            transcript=self.transcript,
            cost=self.cost,
            cost_currency=None if self.cost is None else "USD",
        )


ScriptedEvent = Receipt | Reply | CallEvent


def talk(answered_by: str, *, after_seconds: float, talk_seconds: float, **end: Any) -> tuple[CallEvent, ...]:
    """Return the course of a call that is answered and ends after a talk; `end` are fields of its last event."""
    ends_after = after_seconds + talk_seconds
    return (
        CallEvent(after_seconds=min(RING_SECONDS, after_seconds), status=CallStatus.RINGING),
        CallEvent(after_seconds=after_seconds, status=CallStatus.IN_PROGRESS, answered_by=answered_by),
        CallEvent(after_seconds=ends_after, status=CallStatus.COMPLETED, answered_by=answered_by, **end),
    )


def ring(*, after_seconds: float, status: CallStatus, error: str | None = None) -> tuple[CallEvent, ...]:
    """Return the course of a call that ends without an answer."""
    return (
        CallEvent(after_seconds=min(RING_SECONDS, after_seconds), status=CallStatus.RINGING),
        CallEvent(after_seconds=after_seconds, status=status, error=error),
    )


class EventQueue:
    """Reports what is due, in the order of the moments, by the loop's time."""

    def __init__(self) -> None:
        self._order = itertools.count()
        self._waiting: list[tuple[float, int, Any]] = []
        self._changed = anyio.Event()

    def put(self, event: Any, *, at: float) -> None:
        """Schedule a report for a moment of the loop's time."""
        heapq.heappush(self._waiting, (at, next(self._order), event))
        self._changed.set()

    async def tell(self, sink: Callable[[Any], Awaitable[None]]) -> None:
        """Pass due events to the sink, one after the other, until it is cancelled; an event that fails stays due."""
        while True:
            self._changed = anyio.Event()
            while self._waiting and self._waiting[0][0] <= anyio.current_time():
                due = self._waiting[0]
                await sink(due[2])
                self._waiting.remove(due)
                heapq.heapify(self._waiting)
            with anyio.CancelScope() as scope:
                if self._waiting:
                    scope.deadline = self._waiting[0][0]
                await self._changed.wait()
