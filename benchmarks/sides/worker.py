"""Our engine as one of some workers on a PostgreSQL database: it sends what falls to it.

Told: `url`; `workers`, how many there are; `latency_ms` of the carrier; `count`, whether statements are counted, which
takes time; `begin` and `end`, gates (`benchmarks.postgres`) at which it waits before it opens the engine, and before it
closes it. It runs as in `outreach-server worker`.
"""

from __future__ import annotations

import logging
import time
from typing import Any

import anyio.to_thread
import psycopg

from benchmarks.postgres import wait_for
from benchmarks.sides.counting import Counts, count_round_trips
from benchmarks.sides.engine import Carrier
from benchmarks.sides.telling import tell, told
from outreach import EngineConfig, Outreach
from outreach.protocols import SystemClock
from outreach.storage.opening import storage_from_url

try:
    from outreach_server.cli.serving.serving import run_fast
except ModuleNotFoundError:  # an earlier version, in which this was no folder
    from outreach_server.cli.serving import run_fast  # type: ignore[attr-defined, no-redef]


async def work(task: dict[str, Any], counts: Counts | None) -> dict[str, Any]:
    """Send until the gate at the end is open."""
    url, workers, clock = task["url"], task["workers"], SystemClock()
    carrier = Carrier(task["latency_ms"] / 1000)
    engine = Outreach(
        storage_from_url(url, clock=clock, workers=workers),
        dispatch=True,
        clock=clock,
        config=EngineConfig(max_workers=workers),
        sandbox_carrier=carrier,
    )
    with psycopg.connect(url, autocommit=True) as gates:
        wait_for(gates, task["begin"])
        computing = time.process_time()
        begun = time.time()
        async with engine:
            await anyio.to_thread.run_sync(wait_for, gates, task["end"])
            answer: dict[str, Any] = {
                "messages": len(carrier.requests),
                "begun": begun,
                "CPU seconds": time.process_time() - computing,
            }
            if counts is not None:
                answer |= {
                    "statements": counts.statements,
                    "round trips": counts.round_trips,
                    "commits": counts.commits,
                    "most frequent statements": [[text[:200], count] for text, count in counts.texts.most_common(40)],
                }
    return answer


if __name__ == "__main__":
    logging.disable(logging.ERROR)
    arguments = told()
    counting = count_round_trips() if arguments.get("count") else None

    async def run() -> None:
        """Work, and tell."""
        tell(await work(arguments, counting))

    run_fast(run)
