"""Our engine, which sends and delivers its events to webhooks, with and without endpoints that take nothing.

All campaigns start at once, and send until the end of the run; each good endpoint is behind all the time. Windows are
measured one after the other: with the bad endpoints, without, without, with. What changes over a run, such as the size
of the file, changes both alike. At the start of a window with them, the bad endpoints are enabled anew: their first
failures cost more than their later ones.

Told: `database`, a file that is not there yet; `pairs` of windows; the `seconds` of a window; `campaigns`,
`recipients` of each, and its `rate` a minute; `good` and `bad`, the URLs of endpoints.

It runs as in `outreach-server`. The carrier accepts at once.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from benchmarks.sides.engine import Carrier, active, furnish
from benchmarks.sides.telling import tell, told
from outreach import EngineConfig, Outreach
from outreach.models import NewWebhook
from outreach.models.dispatch import DispatchOutcome
from outreach.protocols.carrier import OutboundMessage
from outreach.protocols.instrumentation import Instrumentation
from outreach_server.cli.serving.serving import run_fast

_LOOK_AGAIN_SECONDS: Final = 0.05
_PATIENCE_SECONDS: Final = 60.0
_TYPES: Final = ("recipient.ended",)
_AT_ONCE: Final = 16
"""Deliveries to an endpoint at a time: the most that one may have."""
_LEAST_BACKLOG: Final = 400
"""Messages that an endpoint is behind: more than are sent but not stored, or in delivery."""


class _CountedCarrier(Carrier):
    def __init__(self) -> None:
        super().__init__(0.0)
        self.accepted = 0

    async def send(self, message: OutboundMessage) -> DispatchOutcome:
        """Accept it, count it and forget it."""
        outcome = await super().send(message)
        self.requests.clear()
        self.accepted += 1
        return outcome


class _CountedAnswers(Instrumentation):
    def __init__(self) -> None:
        self.taken = Counter[str]()

    def webhook_answered(self, webhook_id: str, *, status: int | None, error: str | None, seconds: float) -> None:
        """Count it by its endpoint, if that took the event."""
        if status == 200:
            self.taken[webhook_id] += 1


@attrs.define(kw_only=True)
class Windows:
    """The engine while it sends.

    Attributes:
        engine: The engine.
        workspace: Its workspace.
        carrier: Counts the messages.
        answers: Counts the deliveries.
        good: The endpoints that take everything.
        bad: The endpoints that take nothing.
        campaigns: How many send.
        seconds: How long a window is.
    """

    engine: Outreach
    workspace: str
    carrier: _CountedCarrier
    answers: _CountedAnswers
    good: Sequence[str]
    bad: Sequence[str]
    campaigns: int
    seconds: float

    async def measure(self, *, beside: bool) -> dict[str, float]:
        """Return the paces of one window.

        Raises:
            RuntimeError: The engine could not send or deliver all the time: a campaign ended, or a backlog did.
        """
        # What the window before has left is not collected in this one.
        gc.collect()
        begun, computing = time.perf_counter(), time.process_time()
        messages, deliveries = self.carrier.accepted, self._delivered()
        if beside:
            for one in self.bad:
                await self.engine.webhooks.enable(self.workspace, one)
        await asyncio.sleep(begun + self.seconds - time.perf_counter())
        seconds, computing = time.perf_counter() - begun, time.process_time() - computing
        messages, deliveries = self.carrier.accepted - messages, self._delivered() - deliveries
        await self._check()
        if beside:
            await self._leave()
        return {
            "messages a second": messages / seconds,
            "deliveries a second": deliveries / seconds,
            "CPU ms a message": computing / messages * 1000,
        }

    def _delivered(self) -> int:
        return sum(self.answers.taken[one] for one in self.good)

    async def _check(self) -> None:
        backlog = self.carrier.accepted - max(self.answers.taken[one] for one in self.good)
        if backlog < _LEAST_BACKLOG:
            raise RuntimeError(f"a good endpoint was only {backlog} messages behind, not {_LEAST_BACKLOG}")
        sending = await active(self.engine, self.workspace)
        if sending < self.campaigns:
            raise RuntimeError(
                f"only {sending} of {self.campaigns} campaigns still send after {self.carrier.accepted} messages: "
                "each needs more recipients"
            )

    async def _leave(self) -> None:
        """Pause the bad endpoints, and wait until nothing is delivered to them."""
        for one in self.bad:
            await self.engine.webhooks.pause(self.workspace, one)
        async with asyncio.timeout(_PATIENCE_SECONDS):
            for one in self.bad:
                while (await self.engine.webhooks.cursor(self.workspace, one)).holder:  # noqa: ASYNC110 - the engine has no event for it
                    await asyncio.sleep(_LOOK_AGAIN_SECONDS)


async def run(task: dict[str, Any]) -> dict[str, Any]:
    """Send and deliver; return what each window has come to."""
    url = f"sqlite:///{Path(task['database'])}"
    workspace = await furnish(url, {**task, "start": False})
    carrier, answers = _CountedCarrier(), _CountedAnswers()
    config = EngineConfig(webhook_allow="127.0.0.0/8", webhook_allow_http=True)
    async with Outreach.open(
        url, config=config, dispatch=True, sandbox_carrier=carrier, instrumentation=[answers]
    ) as engine:

        async def listening(url: str) -> str:
            new = NewWebhook(url=url, types=_TYPES, concurrency=_AT_ONCE)
            return (await engine.webhooks.create(workspace, new)).webhook.id

        windows = Windows(
            engine=engine,
            workspace=workspace,
            carrier=carrier,
            answers=answers,
            good=[await listening(one) for one in task["good"]],
            bad=[await listening(one) for one in task["bad"]],
            campaigns=task["campaigns"],
            seconds=task["seconds"],
        )
        async for campaign in engine.campaigns.iter_all(workspace):
            await engine.campaigns.start(workspace, campaign.id)
        # The first one opens connections and fills caches.
        await windows.measure(beside=True)
        found: dict[bool, list[dict[str, float]]] = {True: [], False: []}
        for pair in range(task["pairs"]):
            for beside in (True, False) if pair % 2 == 0 else (False, True):
                found[beside].append(await windows.measure(beside=beside))
    return {"with": found[True], "without": found[False]}


if __name__ == "__main__":
    logging.disable(logging.ERROR)
    arguments = told()

    async def measured() -> None:
        """Run, and tell."""
        tell(await run(arguments))

    run_fast(measured)
