"""Our engine, which sends and delivers its events to webhooks, in turns with and without endpoints that take nothing.

Both kinds of turn share the process, the file and its state, and come as with, without, without, with: what changes
over a run meets both alike. Each turn sends as many messages, and ends when the good endpoints have the event of each.
In each turn with them, the bad endpoints are enabled anew: their first failures cost more than their later ones.

Told: `database`, a file that is not there yet; `pairs` of turns; `campaigns` of a turn and `recipients` of each; `rate`
a minute; `good` and `bad`, the URLs of endpoints; `most_seconds` of a turn.

It runs as in `outreach-server`. The carrier accepts at once.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import Iterator, Sequence
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
_TYPES: Final = ("recipient.ended",)
_AT_ONCE: Final = 16
"""Deliveries to an endpoint at a time: the most that one may have."""


class _Count:
    """Counts, and tells when it has come to a number."""

    def __init__(self) -> None:
        self._left, self._reached, self._at = 0, asyncio.Event(), 0.0

    def expect(self, number: int) -> None:
        """Begin to count."""
        self._left, self._reached = number, asyncio.Event()

    def one(self) -> None:
        """Count one."""
        self._left -= 1
        if self._left == 0:
            self._at = time.perf_counter()
            self._reached.set()

    async def reached(self) -> float:
        """Return when the number was reached, by `time.perf_counter`."""
        await self._reached.wait()
        return self._at


class _CountedCarrier(Carrier):
    def __init__(self) -> None:
        super().__init__(0.0)
        self.count = _Count()

    async def send(self, message: OutboundMessage) -> DispatchOutcome:
        """Accept it, and count it."""
        outcome = await super().send(message)
        self.count.one()
        return outcome


class _CountedAnswers(Instrumentation):
    def __init__(self) -> None:
        self.count = _Count()

    def webhook_answered(self, webhook_id: str, *, status: int | None, error: str | None, seconds: float) -> None:
        """Count it if the endpoint took the event; the bad ones never do."""
        if status is not None:
            self.count.one()


@attrs.define
class Turns:
    """The engine while it sends.

    Attributes:
        engine: The engine.
        workspace: Its workspace.
        carrier: What takes its messages.
        answers: Counts the deliveries that were answered.
        bad: The endpoints that take nothing.
        campaigns: Those that were not started yet.
    """

    engine: Outreach
    workspace: str
    carrier: _CountedCarrier
    answers: _CountedAnswers
    bad: Sequence[str]
    campaigns: Iterator[str]

    async def turn(self, task: dict[str, Any], *, beside: bool) -> dict[str, float]:
        """Send the campaigns of one turn, and deliver their events; return both paces."""
        messages = task["campaigns"] * task["recipients"]
        deliveries = messages * len(task["good"])
        some = [next(self.campaigns) for _ in range(task["campaigns"])]
        self.carrier.count.expect(messages)
        self.answers.count.expect(deliveries)
        # What the turn before has left is not collected in this one.
        gc.collect()
        begun, computing = time.perf_counter(), time.process_time()
        async with asyncio.timeout(task["most_seconds"]):
            for one in self.bad if beside else ():
                await self.engine.webhooks.enable(self.workspace, one)
            for one in some:
                await self.engine.campaigns.start(self.workspace, one)
            sent = await self.carrier.count.reached()
            delivered = await self.answers.count.reached()
        computing = time.process_time() - computing
        await self._settle()
        return {
            "messages a second": messages / (sent - begun),
            "deliveries a second": deliveries / (delivered - begun),
            "CPU ms a message": computing / messages * 1000,
        }

    async def _settle(self) -> None:
        """Pause the bad endpoints, and wait until nothing of the turn is left to do."""
        for one in self.bad:
            await self.engine.webhooks.pause(self.workspace, one)
        for one in self.bad:
            while (await self.engine.webhooks.cursor(self.workspace, one)).holder:  # noqa: ASYNC110 - the engine has no event for it
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        while await active(self.engine, self.workspace):  # noqa: ASYNC110 - the last event of a campaign comes before its end
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)


async def run(task: dict[str, Any]) -> dict[str, Any]:
    """Send and deliver in turns; return what each pair of them has come to."""
    url = f"sqlite:///{Path(task['database'])}"
    turns = 2 * task["pairs"] + 1
    workspace = await furnish(url, {**task, "campaigns": turns * task["campaigns"], "start": False})
    carrier, answers = _CountedCarrier(), _CountedAnswers()
    config = EngineConfig(webhook_allow="127.0.0.0/8", webhook_allow_http=True)
    async with Outreach.open(
        url, config=config, dispatch=True, sandbox_carrier=carrier, instrumentation=[answers]
    ) as engine:

        async def listening(url: str) -> str:
            new = NewWebhook(url=url, types=_TYPES, concurrency=_AT_ONCE)
            return (await engine.webhooks.create(workspace, new)).webhook.id

        for one in task["good"]:
            await listening(one)
        bad = [await listening(one) for one in task["bad"]]
        campaigns = iter([campaign.id async for campaign in engine.campaigns.iter_all(workspace)])
        stage = Turns(engine, workspace, carrier, answers, bad, campaigns)
        # The first one opens connections and fills caches.
        await stage.turn(task, beside=True)
        found: dict[bool, list[dict[str, float]]] = {True: [], False: []}
        for pair in range(task["pairs"]):
            for beside in (True, False) if pair % 2 == 0 else (False, True):
                found[beside].append(await stage.turn(task, beside=beside))
    return {"with": found[True], "without": found[False]}


if __name__ == "__main__":
    logging.disable(logging.ERROR)
    arguments = told()

    async def measured() -> None:
        """Run, and tell."""
        tell(await run(arguments))

    run_fast(measured)
