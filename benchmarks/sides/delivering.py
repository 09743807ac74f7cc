"""Our engine, which sends and delivers its events to webhooks, with or without endpoints that take nothing.

Told: `database`, a file that is not there yet; `campaigns` and `recipients` of each; `rate` a minute; `good` and `bad`,
the URLs of endpoints; `most_seconds`.

It runs as in `outreach-server`. The carrier accepts at once; each message's contact is an event for each endpoint.
"""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from benchmarks.sides.engine import Carrier, furnish
from benchmarks.sides.telling import tell, told
from outreach import EngineConfig, Outreach
from outreach.models import NewWebhook
from outreach_server.cli.serving.serving import run_fast

_LOOK_AGAIN_SECONDS: Final = 0.05
_TYPES: Final = ("recipient.ended",)
_AT_ONCE: Final = 16
"""Deliveries to an endpoint at a time: the most that one may have."""


async def run(task: dict[str, Any]) -> dict[str, Any]:
    """Send everything, and wait until the good endpoints have all of it; return both paces."""
    url = f"sqlite:///{Path(task['database'])}"
    workspace = await furnish(url, {**task, "start": False})
    carrier, messages = Carrier(0.0), task["campaigns"] * task["recipients"]
    config = EngineConfig(webhook_allow="127.0.0.0/8", webhook_allow_http=True)
    async with Outreach.open(url, config=config, dispatch=True, sandbox_carrier=carrier) as engine:

        async def listening(url: str) -> str:
            new = NewWebhook(url=url, types=_TYPES, concurrency=_AT_ONCE)
            return (await engine.webhooks.create(workspace, new)).webhook.id

        good = [await listening(one) for one in task["good"]]
        for one in task["bad"]:
            await listening(one)
        begun, began_at = time.perf_counter(), datetime.now(UTC)
        ends = begun + task["most_seconds"]
        async for campaign in engine.campaigns.iter_all(workspace):
            await engine.campaigns.start(workspace, campaign.id)
        while len(carrier.requests) < messages and time.perf_counter() < ends:  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        seconds = time.perf_counter() - begun
        while True:
            # Each contact ends with its message; the position passes the last event once it was taken.
            progress = await engine.webhooks.progress(workspace, *good)
            if not any(one.waiting for one in progress) or time.perf_counter() > ends:
                break
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)
        delivered = max(one.last.at for one in progress if one.last is not None)
    return {
        "messages": len(carrier.requests),
        "messages a second": len(carrier.requests) / seconds,
        "deliveries a second": len(good) * messages / (delivered - began_at).total_seconds(),
    }


if __name__ == "__main__":
    logging.disable(logging.ERROR)
    arguments = told()

    async def measured() -> None:
        """Run, and tell."""
        tell(await run(arguments))

    run_fast(measured)
