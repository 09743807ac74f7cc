"""The simulated voice provider: a peer of the real ones, for sandboxes, demonstrations and tests."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

import attrs

from outreach.models.dispatch import DispatchOutcome
from outreach.models.reports import CallReport, Report
from outreach.models.states import CallStatus, DispatchState
from outreach.protocols.voice import CallRequest, VoiceCapabilities
from outreach.providers.simulator import REFUSED, SimulatedProvider

_RING_DELAY: Final = timedelta(milliseconds=100)
_ANSWER_DELAY: Final = timedelta(milliseconds=300)
_SUMMARY: Final = "Simulated call: a person answered and was interested."
_TRANSCRIPT: Final = "agent: Hello, do you have a moment?\nuser: Yes, that sounds good."
_ASKS_FOR_CALL: Final = "0199"
"""How the numbers end whose people ask to be called again."""
_CALLBACK_SUMMARY: Final = "Simulated call: a person answered and asked to be called again."
_CALLBACK_TRANSCRIPT: Final = "agent: Hello, do you have a moment?\nuser: Not now, please call me again."
_A_MINUTE: Final = Decimal("0.10")
"""What a begun minute costs, in US dollars."""


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
