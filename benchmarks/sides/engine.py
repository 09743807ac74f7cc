"""Our engine: it sends all messages of many campaigns, and takes their receipts in where that is asked for.

It runs as in `outreach-server serve` and `worker`.

Told: `database`, a file that is not there yet; `campaigns` and `recipients` of each; `rate` a minute; `latency_ms` of
the carrier; `most_seconds` to send; `receipts`, whether each message gets one afterwards; `count`, whether statements
are counted and writes are noted, which takes time; `ballast`, contacts of a campaign that is never started.

Besides its figures it tells of copies of the file: `before` and `after` sending, `received` after the receipts, and
`writes`, where those of sending were noted.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import sys
import time
from pathlib import Path
from typing import Any, Final

import anyio

from benchmarks.ledger import copy
from benchmarks.people import MESSAGE, contact
from benchmarks.sides.counting import Counts, count_statements
from benchmarks.sides.telling import tell, told
from benchmarks.writes import forget, record
from outreach import (
    CampaignStatus,
    DispatchState,
    MessageStatus,
    NewRecipient,
    NewSmsCampaign,
    NewWorkspace,
    Outreach,
)
from outreach.models.dispatch import DispatchOutcome
from outreach.models.reports import MessageReport
from outreach.protocols import SystemClock
from outreach.protocols.carrier import OutboundMessage, ReportSink
from outreach.storage.opening import storage_from_url
from outreach.testing.scripted import ScriptedCarrier

try:
    from outreach_server.cli.serving.serving import run_fast
except ModuleNotFoundError:  # an earlier version, in which this was no folder
    from outreach_server.cli.serving import run_fast  # type: ignore[attr-defined, no-redef]

_AT_ONCE: Final = 50
_RECEIPTS_AT_ONCE: Final = 1000
_LOOK_AGAIN_SECONDS: Final = 0.005


class Carrier(ScriptedCarrier):
    """Accepts every message after its latency; what is reported afterwards it reports many at a time."""

    def __init__(self, latency_seconds: float) -> None:
        super().__init__()
        self._latency_seconds = latency_seconds
        self.sink: ReportSink | None = None

    async def send(self, message: OutboundMessage) -> DispatchOutcome:
        """Accept it, with as little work as may be: what is measured is the engine."""
        self.requests.append(message)
        await anyio.sleep(self._latency_seconds)
        # Its id is no number of this process: an id that another worker's carrier gave too makes the outcome unknown.
        return DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=message.dispatch_id)

    async def listen(self, sink: ReportSink) -> None:
        """Remember where reports go."""
        self.sink = sink
        await anyio.sleep_forever()

    async def report_all(self) -> None:
        """Report all that was sent as delivered."""
        sink = self.sink
        assert sink is not None
        left = iter(self.requests)

        async def some() -> None:
            # Providers call back on many connections at a time, and wait on each for our answer.
            for message in left:
                await sink(
                    MessageReport(
                        workspace_id=message.workspace_id,
                        provider=self.name,
                        dispatch_id=message.dispatch_id,
                        provider_id=message.dispatch_id,
                        status=MessageStatus.DELIVERED,
                        at=SystemClock().now(),
                    )
                )

        async with anyio.create_task_group() as tasks:
            for _ in range(_RECEIPTS_AT_ONCE):
                tasks.start_soon(some)


async def furnish(url: str, task: dict[str, Any]) -> str:
    """Create the campaigns, in turn in each workspace, and start them unless `start` is false; return the first one."""
    async with Outreach.open(url) as engine:
        names = ("Acme", *(f"Acme {number}" for number in range(1, task.get("workspaces", 1))))
        new_ones = [NewWorkspace(name=name, default_region="US") for name in names]
        workspaces = [await engine.workspaces.create(new) for new in new_ones]

        async def create(number: int, people: range, *, start: bool) -> None:
            new = NewSmsCampaign(
                name=f"Campaign {number}",
                body=MESSAGE,
                carrier="twilio",
                from_number=f"+1415556{number:04d}",
                rate_per_minute=task["rate"],
            )
            recipients = (NewRecipient(**contact(person)) for person in people)
            workspace = workspaces[number % len(workspaces)]
            made = (await engine.campaigns.create_sms(workspace.id, new, recipients)).campaign
            if start:
                await engine.campaigns.start(workspace.id, made.id)

        each, count = task["recipients"], task["campaigns"]
        if task.get("ballast"):
            await create(count, range(count * each, count * each + task["ballast"]), start=False)
        for first in range(0, count, _AT_ONCE):
            some = range(first, min(first + _AT_ONCE, count))
            start = task.get("start", True)
            await asyncio.gather(*(create(n, range(n * each, (n + 1) * each), start=start) for n in some))
    return workspaces[0].id


async def send(task: dict[str, Any], counts: Counts | None) -> dict[str, Any]:
    """Do what was asked."""
    database = Path(task["database"])
    url, clock = f"sqlite:///{database}", SystemClock()
    workspace = await furnish(url, task)
    answer: dict[str, Any] = {"before": str(copy(database, database.with_suffix(".before")))}
    if counts is not None:
        record(database)
    messages = task["campaigns"] * task["recipients"]
    carrier = Carrier(task["latency_ms"] / 1000)
    engine = Outreach(
        storage_from_url(url, clock=clock),
        dispatch=True,
        clock=clock,
        sandbox_carrier=carrier,
    )
    async with engine:
        first = (counts.statements, counts.runs, counts.commits) if counts else (0, 0, 0)
        begun, computing = time.perf_counter(), time.process_time()
        ends = begun + task["most_seconds"]
        while len(carrier.requests) < messages and time.perf_counter() < ends:  # noqa: ASYNC110 - its own count
            await anyio.sleep(_LOOK_AGAIN_SECONDS)
        sent = len(carrier.requests)
        while sent == messages and await active(engine, workspace):  # noqa: ASYNC110 - what it waits for is measured
            await anyio.sleep(_LOOK_AGAIN_SECONDS)
        seconds = time.perf_counter() - begun
        answer |= {
            "messages": sent,
            "messages a second": sent / seconds,
            "CPU ms a message": (time.process_time() - computing) / sent * 1000,
            "share of the nominal pace": sent / seconds / (task["campaigns"] * task["rate"] / 60),
        }
        after = copy(database, database.with_suffix(".after"))
        answer["after"] = str(after)
        if counts is not None:
            answer |= _counted(counts, first, sent) | {"writes": str(copy(after, database.with_suffix(".writes")))}
            forget(after)
        if task.get("receipts"):
            begun, computing = time.perf_counter(), time.process_time()
            await carrier.report_all()
            seconds = time.perf_counter() - begun
            answer |= {
                "receipts a second": sent / seconds,
                "CPU ms a receipt": (time.process_time() - computing) / sent * 1000,
                "received": str(copy(database, database.with_suffix(".received"))),
            }
    answer["MB at most"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        1e6 if sys.platform == "darwin" else 1e3
    )
    return answer


async def active(engine: Outreach, workspace: str) -> int:
    """Return how many campaigns have not ended yet."""
    return (await engine.campaigns.list(workspace, status=CampaignStatus.ACTIVE, limit=1)).total or 0


def _counted(counts: Counts, first: tuple[int, int, int], sent: int) -> dict[str, Any]:
    assert counts.statements > first[0], "the engine reaches SQLite on another way than `sqlite3.connect`"
    return {
        "statements a message": (counts.statements - first[0]) / sent,
        "statement runs a message": (counts.runs - first[1]) / sent,
        "commits a message": (counts.commits - first[2]) / sent,
        "most frequent statements": [[text[:200], count] for text, count in counts.texts.most_common(20)],
    }


if __name__ == "__main__":
    logging.disable(logging.ERROR)
    arguments = told()
    counting = count_statements() if arguments.get("count") else None

    async def run() -> None:
        """Send, and tell."""
        tell(await send(arguments, counting))

    run_fast(run)
