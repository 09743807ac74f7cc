"""The simulated SMS carrier: a peer of the real ones, for sandboxes, demonstrations and tests."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from outreach.models.dispatch import DispatchOutcome
from outreach.models.reports import MessageReport, Report
from outreach.models.states import DispatchState, MessageStatus
from outreach.protocols.carrier import CarrierCapabilities, OutboundMessage
from outreach.providers.simulator import REFUSED, SimulatedProvider

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
