"""Our engine, from the start of all campaigns to the delivered receipt of each message.

Told: `database`, a file that is not there yet, or `url` of an empty database; `campaigns` and `recipients` of each;
`rate` a minute; `embedded`, whether it runs as in an application that has tuned nothing, otherwise as in
`outreach-server`; `most_seconds`.

The carrier accepts at once, and reports each message as delivered a moment later, each report in a task of its own, as
callbacks come.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from pathlib import Path
from typing import Any, Final

from benchmarks.sides.engine import Carrier, furnish
from benchmarks.sides.telling import tell, told
from outreach import MessageStatus, Outreach
from outreach.models.dispatch import DispatchOutcome
from outreach.models.reports import MessageReport
from outreach.protocols import SystemClock
from outreach.protocols.carrier import OutboundMessage

try:
    from outreach_server.cli.serving.serving import run_fast
except ModuleNotFoundError:  # an earlier version, in which this was no folder
    from outreach_server.cli.serving import run_fast  # type: ignore[attr-defined, no-redef]

_RECEIPT_SECONDS: Final = 0.1
_LOOK_AGAIN_SECONDS: Final = 0.01
_MAX_UNDER_WAY: Final = 1000
_STARTED_AT_ONCE: Final = 50


class ReportingCarrier(Carrier):
    """Accepts every message, and reports it as delivered a moment later."""

    def __init__(self) -> None:
        super().__init__(0.0)
        self.delivered = 0
        self.failures: list[BaseException] = []
        self._clock = SystemClock()
        self._due: deque[tuple[float, OutboundMessage]] = deque()
        self._under_way: set[asyncio.Task[None]] = set()

    async def send(self, message: OutboundMessage) -> DispatchOutcome:
        """Accept it."""
        outcome = await super().send(message)
        self._due.append((time.monotonic() + _RECEIPT_SECONDS, message))
        return outcome

    async def report_due(self) -> None:
        """Report what is due, for as long as this runs."""
        while True:
            now = time.monotonic()
            while self._due and self._due[0][0] <= now and len(self._under_way) < _MAX_UNDER_WAY:
                task = asyncio.create_task(self._report(self._due.popleft()[1]))
                self._under_way.add(task)
                task.add_done_callback(self._reported)
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)

    async def _report(self, message: OutboundMessage) -> None:
        assert self.sink is not None
        await self.sink(
            MessageReport(
                workspace_id=message.workspace_id,
                provider=self.name,
                dispatch_id=message.dispatch_id,
                provider_id=message.dispatch_id,
                status=MessageStatus.DELIVERED,
                at=self._clock.now(),
            )
        )

    def _reported(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        error = task.exception()
        if error is None:
            self.delivered += 1
        else:
            self.failures.append(error)


async def run(task: dict[str, Any]) -> dict[str, Any]:
    """Start all campaigns, and wait until each message is delivered."""
    url = task.get("url") or f"sqlite:///{Path(task['database'])}"
    workspace = await furnish(url, {**task, "start": False})
    carrier, messages = ReportingCarrier(), task["campaigns"] * task["recipients"]
    async with Outreach.open(url, dispatch=True, sandbox_carrier=carrier) as engine:
        found = [one.id async for one in engine.campaigns.iter_all(workspace)]
        begun, computing = time.perf_counter(), time.process_time()
        ends = begun + task["most_seconds"]
        reporting = asyncio.create_task(carrier.report_due())
        for first in range(0, len(found), _STARTED_AT_ONCE):
            some = found[first : first + _STARTED_AT_ONCE]
            await asyncio.gather(*(engine.campaigns.start(workspace, campaign_id) for campaign_id in some))
        while carrier.delivered < messages and not carrier.failures and time.perf_counter() < ends:  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        seconds, used = time.perf_counter() - begun, time.process_time() - computing
        reporting.cancel()
        if carrier.failures:
            raise carrier.failures[0]
        report = [await engine.campaigns.get(workspace, campaign_id) for campaign_id in found[:1]]
        assert carrier.delivered < messages or report[0].counters.successful == task["recipients"]
    delivered = carrier.delivered
    return {
        "messages": delivered,
        "messages a second": delivered / seconds,
        "CPU ms a message": used / max(delivered, 1) * 1000,
    }


if __name__ == "__main__":
    logging.disable(logging.ERROR)
    arguments = told()

    async def measured() -> None:
        """Run, and tell."""
        tell(await run(arguments))

    if arguments["embedded"]:
        asyncio.run(measured())
    else:
        run_fast(measured)
