"""What the simulators of both channels do alike: take time, refuse by chance, log, and tell later."""

from __future__ import annotations

import random
from typing import Final, Literal

import anyio

from outreach.clock import Clock
from outreach.config import SimulatorConfig
from outreach.ids import IdSource
from outreach.models.dispatch import Outcome
from outreach.models.states import DispatchState
from outreach.protocols.carrier import LookUp, LookUpPower, ReportSink
from outreach.simulator.callbacks import Callbacks
from outreach.simulator.log import Acceptance, AcceptanceLog

REFUSED: Final = Outcome(state=DispatchState.REFUSED, reason="temporary", error_code="simulated")


class SimulatedProvider:
    """Takes requests, logs them, and hands in reports when they fall due.

    Half of the latency passes before a request is taken and half after, so that a process that is killed while it
    waits may have been heard or not, as with a real provider.

    Args:
        config: Latency, share of refusals, log.
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

    async def look_up(self, question: LookUp) -> Outcome | None:
        """Find out from the log what became of a dispatch."""
        if self._log.find(question.dispatch_id) is not None:
            return Outcome(state=DispatchState.ACCEPTED)
        if self._log.durable:
            return Outcome(state=DispatchState.NOT_SENT, reason="not_found")
        return None

    async def listen(self, sink: ReportSink) -> None:
        """Hand in reports as they fall due, until it is cancelled."""
        await self._callbacks.listen(sink)

    @property
    def _look_up_power(self) -> LookUpPower:
        # With a log file it can tell what no process of it has ever accepted.
        return "authoritative" if self._log.durable else "evidence"

    async def _take(
        self, kind: Literal["sms", "call"], *, to: str, sender: str | None, body: str | None, dispatch_id: str
    ) -> str | None:
        """Take a request; return an identifier for it, or None when it is refused for now."""
        at = self._clock.now()
        await self._half_the_latency()
        refused = self._rng.random() < self._config.failure_rate
        if not refused:
            self._log.append(Acceptance(kind=kind, to=to, sender=sender, body=body, dispatch_id=dispatch_id, at=at))
        await self._half_the_latency()
        return None if refused else f"sim_{kind}_{self._ids()}"

    async def _half_the_latency(self) -> None:
        await anyio.sleep(self._config.latency_ms / 2000)
