"""The simulated voice provider: a peer of the real ones, for sandboxes, demonstrations and tests."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from outreach.models.dispatch import DispatchOutcome
from outreach.models.reports import CallReport, Report
from outreach.models.states import ENDED_CALL_STATUSES, CallStatus, DispatchState
from outreach.protocols.voice import CallRequest, VoiceCapabilities
from outreach.providers.simulator import REFUSED, SimulatedProvider

_RING_DELAY: Final = timedelta(milliseconds=100)
_ANSWER_DELAY: Final = timedelta(milliseconds=300)
_SUMMARY: Final = "Simulated call: a person answered and was interested."


class SimulatedVoice(SimulatedProvider):
    """Accepts calls, logs them, and reports them ringing, answered and ended.

    Every call is answered by a person and ends well after the configured seconds.
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
        return _report(workspace_id, dispatch_id, provider_id, status, at)

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
