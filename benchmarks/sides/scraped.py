"""Our engine, whose metrics are on and off in turns while it sends: what they cost, of two halves of one run.

Two runs that do the same differ by more than metrics cost: another layout of the memory, of the file, of the processor
is enough. Here both halves share all of it. Turns come as on, off, off, on, so that what changes over the run, such as
the size of the file, meets both alike. The first and the second turns of *off* differ too, although nothing has
changed: that much of the difference between on and off may be chance.

On is what `outreach-server serve --metrics` does: dispatches and transactions are counted, another process reads
`/metrics` over HTTP at even intervals, and the figures are read from the database every 15 s that it is on.

Told: `database`, a file that is not there yet; `campaigns` and `recipients` of each; `rate` a minute; `latency_ms` of
the carrier; `turn_seconds`; `scrapes_a_turn`; `most_seconds` to send; `off_first`, whether turns begin with off.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import attrs

from benchmarks.ledger import copy
from benchmarks.settings import ROOT
from benchmarks.sides import metrics_cost
from benchmarks.sides.engine import Carrier, furnish
from benchmarks.sides.telling import tell, told
from outreach import Outreach
from outreach.integrations.prometheus import engine_metrics
from outreach.protocols import SystemClock
from outreach.storage.opening import storage_from_url
from outreach_server import ServerMetrics
from outreach_server.cli.serving.metrics_address import answering
from outreach_server.cli.serving.serving import bind, run_fast
from outreach_server.routes import ROUTES

_PATTERN: Final = (True, False, False, True)
_SCRAPES_AT_REST: Final = 20
_NEVER_SECONDS: Final = 86_400.0


@attrs.define
class Part:
    """What was sent in some of the turns."""

    messages: int = 0
    seconds: float = 0.0
    computing: float = 0.0

    def __add__(self, other: Part) -> Part:
        """Return what was sent in the turns of both."""
        return Part(self.messages + other.messages, self.seconds + other.seconds, self.computing + other.computing)

    def figures(self) -> dict[str, float]:
        """Return its pace and its computing."""
        return {
            "messages a second": self.messages / self.seconds,
            "CPU ms a message": self.computing / self.messages * 1000,
        }


class Telling:
    """Has the engine tell its instrumentation, or nobody, as if it had none.

    Args:
        engine: An engine that tells.
    """

    def __init__(self, engine: Outreach) -> None:
        self._lists = list(engine._instruments._targets.values())
        self._calls = [list(calls) for calls in self._lists]

    def turn(self, *, on: bool) -> None:
        """Turn it on or off."""
        for calls, all_of_them in zip(self._lists, self._calls, strict=True):
            calls[:] = all_of_them if on else ()


class Scraper:
    """Another process, which reads the metrics whenever it is asked to.

    Args:
        process: The process.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._asked, self._answers = process.stdin, process.stdout
        self.scrapes = self._heard = 0

    def ask(self) -> None:
        """Have it read once; does not wait."""
        self.scrapes += 1
        self._asked.write(b"\n")

    async def finished(self) -> None:
        """Wait until it has read as often as it was asked to.

        Raises:
            RuntimeError: It has failed.
        """
        while self._heard < self.scrapes:
            if not await self._answers.readline():
                raise RuntimeError("The process that reads the metrics has failed.")
            self._heard += 1


async def send(task: dict[str, Any]) -> dict[str, Any]:
    """Send in turns; return what both halves have come to."""
    database = Path(task["database"])
    url, clock = f"sqlite:///{database}", SystemClock()
    await furnish(url, task)
    before = copy(database, database.with_suffix(".before"))
    carrier = Carrier(task["latency_ms"] / 1000)
    metrics = ServerMetrics(database=database)
    metrics.start_requests(ROUTES)
    every_seconds = engine_metrics.REFRESH_SECONDS
    # Here the turns do so.
    engine_metrics.REFRESH_SECONDS = _NEVER_SECONDS  # type: ignore[misc]
    engine = Outreach(
        storage_from_url(url, clock=clock),
        dispatch=True,
        clock=clock,
        sandbox_carrier=carrier,
        instrumentation=[metrics.engine],
    )
    async with engine, metrics.engine.watching(engine), scraping(metrics) as scraper:
        # The first and the second turns of each kind.
        parts = {on: (Part(), Part()) for on in (True, False)}
        seconds_on = 0.0
        # In the middle of the interval first, so that a run has as many as its seconds make, on average.
        telling, read_after = Telling(engine), every_seconds / 2
        # What the start does is not what is compared.
        await anyio.sleep(task["turn_seconds"])
        ends = time.perf_counter() + task["most_seconds"]
        sent_in_a_round = 0
        pattern: Sequence[bool] = [on != task["off_first"] for on in _PATTERN]
        while (
            task["campaigns"] * task["recipients"] - len(carrier.requests) > 1.2 * sent_in_a_round
            and time.perf_counter() < ends
        ):
            sent_in_a_round = -len(carrier.requests)
            for turn, on in enumerate(pattern):
                part = parts[on][turn // 2]
                telling.turn(on=on)
                begun, computing, sent = time.perf_counter(), time.process_time(), len(carrier.requests)
                for scrape in range(1, task["scrapes_a_turn"] + 1):
                    if on:
                        scraper.ask()
                        if seconds_on + time.perf_counter() - begun >= read_after:
                            read_after += every_seconds
                            await metrics.engine.refresh()
                    until = begun + task["turn_seconds"] * scrape / task["scrapes_a_turn"]
                    await anyio.sleep(until - time.perf_counter())
                took = time.perf_counter() - begun
                seconds_on += took if on else 0.0
                part.seconds += took
                part.computing += time.process_time() - computing
                part.messages += len(carrier.requests) - sent
            sent_in_a_round += len(carrier.requests)
        await scraper.finished()
        scrapes = scraper.scrapes
    a_scrape = await _seconds_a_scrape(metrics, f"sqlite:///{before}")
    figures = {on: (first + second).figures() for on, (first, second) in parts.items()}
    return {
        "with": figures[True],
        "without": figures[False],
        "without, first": parts[False][0].figures(),
        "without, second": parts[False][1].figures(),
        "scrapes": scrapes,
        "CPU ms a scrape": 1000 * a_scrape,
        "% of the computing for metrics": metrics_cost.share(
            figures[False],
            a_message=metrics_cost.seconds_a_message(),
            a_look=await metrics_cost.seconds_a_look(f"sqlite:///{before}"),
            a_scrape=a_scrape,
            scrapes_a_second=task["scrapes_a_turn"] / task["turn_seconds"],
        ),
    }


@asynccontextmanager
async def scraping(metrics: ServerMetrics) -> AsyncIterator[Scraper]:
    """Answer `/metrics` on the engine's loop, as `serve` does, and start the process that reads it."""
    with bind("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        async with answering(metrics.app(), listener, level="error"):
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "benchmarks.sides.scraper", json.dumps({"port": port})),
                cwd=ROOT,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            scraper = Scraper(process)
            try:
                yield scraper
            finally:
                process.kill()
                await process.wait()


async def _seconds_a_scrape(metrics: ServerMetrics, url: str) -> float:
    """Return how much computing it takes to answer a scrape, while nobody sends."""
    async with Outreach.open(url) as engine, metrics.engine.watching(engine), scraping(metrics) as scraper:
        await metrics.engine.refresh()
        begun = time.process_time()
        for _ in range(_SCRAPES_AT_REST):
            scraper.ask()
            await scraper.finished()
        return (time.process_time() - begun) / _SCRAPES_AT_REST


if __name__ == "__main__":
    logging.disable(logging.ERROR)
    arguments = told()

    async def run() -> None:
        """Send, and tell."""
        tell(await send(arguments))

    run_fast(run)
