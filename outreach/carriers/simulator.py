"""The simulated SMS carrier: a peer of the real ones, for sandboxes, demonstrations and tests."""

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
from outreach.models.reports import MessageReport, Report
from outreach.models.states import DispatchState, MessageStatus
from outreach.protocols.carrier import CarrierCapabilities, OutboundMessage, ReportSink
from outreach.simulator.callbacks import Callbacks
from outreach.simulator.log import Acceptance, AcceptanceLog

_RECEIPT_DELAY: Final = timedelta(milliseconds=50)


class SimulatedCarrier:
    """Accepts messages, logs them, and reports them sent and delivered a moment later.

    Half of the latency passes before a message is taken and half after, so that a process that is killed while
    it waits may have been heard or not, as with a real carrier.

    Args:
        config: Latency, share of refusals, log.
        clock: Where the time comes from.
        rng: Decides which requests are refused.
        ids: Where the carrier's own identifiers come from.
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
    def capabilities(self) -> CarrierCapabilities:
        """What it can do: with a log file its look-up also tells what was not accepted."""
        return CarrierCapabilities(
            look_up="authoritative" if self._log.durable else "evidence", carries_not_after=False
        )

    async def send(self, message: OutboundMessage) -> Outcome:
        """Take one message, or refuse it for now by chance."""
        at = self._clock.now()
        await anyio.sleep(self._config.latency_ms / 2000)
        if self._rng.random() < self._config.failure_rate:
            await anyio.sleep(self._config.latency_ms / 2000)
            return Outcome(state=DispatchState.REFUSED, reason="temporary", error_code="simulated")
        self._log.append(
            Acceptance(
                kind="sms",
                to=message.to,
                sender=message.sender,
                body=message.body,
                dispatch_id=message.dispatch_id,
                at=at,
            )
        )
        await anyio.sleep(self._config.latency_ms / 2000)
        provider_id = "sim_sms_" + self._ids()
        for delay, status in ((1, MessageStatus.SENT), (2, MessageStatus.DELIVERED)):
            self._callbacks.schedule(_RECEIPT_DELAY * delay, self._receipt(message, provider_id, status))
        return Outcome(state=DispatchState.ACCEPTED, provider_id=provider_id)

    async def look_up(self, *, workspace_id: str, dispatch_id: str, to: str, since: datetime) -> Outcome | None:
        """Find out from the log what became of a dispatch."""
        if self._log.find(dispatch_id) is not None:
            return Outcome(state=DispatchState.ACCEPTED)
        if self._log.durable:
            return Outcome(state=DispatchState.NOT_SENT, reason="not_found")
        return None

    async def listen(self, sink: ReportSink) -> None:
        """Hand in receipts as they fall due, until it is cancelled."""
        await self._callbacks.listen(sink)

    def _receipt(self, message: OutboundMessage, provider_id: str, status: MessageStatus) -> Callable[[], Report]:
        return lambda: MessageReport(
            workspace_id=message.workspace_id,
            provider=self.name,
            dispatch_id=message.dispatch_id,
            provider_id=provider_id,
            status=status,
            at=self._clock.now(),
        )
