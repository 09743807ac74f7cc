"""The simulated voice provider: a peer of the real ones, for sandboxes, demonstrations and tests."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import anyio

from outreach.clock import Clock
from outreach.config import SimulatorConfig
from outreach.ids import IdSource
from outreach.models.dispatch import Outcome
from outreach.models.reports import CallReport, Report
from outreach.models.states import ENDED_CALL_STATUSES, CallStatus, DispatchState
from outreach.protocols.carrier import ReportSink
from outreach.protocols.voice import CallRequest, VoiceCapabilities
from outreach.simulator.callbacks import Callbacks
from outreach.simulator.log import Acceptance, AcceptanceLog

_RING_DELAY: Final = timedelta(milliseconds=100)
_ANSWER_DELAY: Final = timedelta(milliseconds=300)
_SUMMARY: Final = "Simulated call: a person answered and was interested."


class SimulatedVoice:
    """Accepts calls, logs them, and reports them ringing, answered and ended.

    Every call is answered by a person and ends well after the configured seconds.

    Args:
        config: Latency, share of refusals, length of a call, log.
        clock: Where the time comes from.
        rng: Decides which requests are refused.
        ids: Where the provider's own identifiers come from.
    """

    def __init__(self, *, config: SimulatorConfig, clock: Clock, rng: random.Random, ids: IdSource) -> None:
        self._config = config
        self._clock = clock
        self._rng = rng
        self._ids = ids
        self._log = AcceptanceLog(config.log)
        self._callbacks = Callbacks(clock)

    @property
    def name(self) -> str:
        """The name under which it is logged."""
        return "simulator"

    @property
    def capabilities(self) -> VoiceCapabilities:
        """What it can do: with a log file its look-up also tells what was not accepted."""
        return VoiceCapabilities(look_up="authoritative" if self._log.durable else "evidence", carries_not_after=False)

    async def place(self, request: CallRequest) -> Outcome:
        """Take one call, or refuse it for now by chance."""
        at = self._clock.now()
        await anyio.sleep(self._config.latency_ms / 2000)
        if self._rng.random() < self._config.failure_rate:
            await anyio.sleep(self._config.latency_ms / 2000)
            return Outcome(state=DispatchState.REFUSED, reason="temporary", error_code="simulated")
        self._log.append(
            Acceptance(
                kind="call",
                to=request.to,
                sender=request.sender,
                body=None,
                dispatch_id=request.dispatch_id,
                at=at,
            )
        )
        await anyio.sleep(self._config.latency_ms / 2000)
        provider_id = "sim_call_" + self._ids()
        for delay, status in self._course():
            self._callbacks.schedule(delay, self._event(request, provider_id, status))
        return Outcome(state=DispatchState.ACCEPTED, provider_id=provider_id)

    async def look_up(self, *, workspace_id: str, dispatch_id: str, to: str, since: datetime) -> Outcome | None:
        """Find out from the log what became of a dispatch."""
        if self._log.find(dispatch_id) is not None:
            return Outcome(state=DispatchState.ACCEPTED)
        if self._log.durable:
            return Outcome(state=DispatchState.NOT_SENT, reason="not_found")
        return None

    async def status(self, *, workspace_id: str, dispatch_id: str, provider_id: str | None) -> CallReport | None:
        """Tell from the log how far a call must have come, also one of an earlier process."""
        accepted = self._log.find(dispatch_id)
        if accepted is None:
            return None
        now = self._clock.now()
        reached = [(accepted.at + delay, status) for delay, status in self._course() if accepted.at + delay <= now]
        if not reached:
            return None
        at, status = reached[-1]
        return _report(workspace_id, dispatch_id, provider_id, status, at)

    async def listen(self, sink: ReportSink) -> None:
        """Hand in call events as they fall due, until it is cancelled."""
        await self._callbacks.listen(sink)

    def _course(self) -> tuple[tuple[timedelta, CallStatus], ...]:
        talk = timedelta(seconds=self._config.call_seconds)
        return (
            (_RING_DELAY, CallStatus.RINGING),
            (_ANSWER_DELAY, CallStatus.IN_PROGRESS),
            (_ANSWER_DELAY + talk, CallStatus.COMPLETED),
        )

    def _event(self, request: CallRequest, provider_id: str, status: CallStatus) -> Callable[[], Report]:
        return lambda: _report(request.workspace_id, request.dispatch_id, provider_id, status, self._clock.now())


def _report(
    workspace_id: str, dispatch_id: str, provider_id: str | None, status: CallStatus, at: datetime
) -> CallReport:
    ended = status in ENDED_CALL_STATUSES
    answered = ended or status is CallStatus.IN_PROGRESS
    return CallReport(
        workspace_id=workspace_id,
        provider="simulator",
        dispatch_id=dispatch_id,
        provider_id=provider_id,
        status=status,
        at=at,
        outcome="positive" if ended else None,
        answered_by="human" if answered else None,
        summary=_SUMMARY if ended else None,
    )
