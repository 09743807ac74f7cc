"""Asking a provider by HTTP, many requests at a time, through the client of accounts or one pool of connections.

Told: `url` of the provider, how many `requests`, `at_once`, `connections`, and whether they are `spread`.
"""

from __future__ import annotations

import gc
import time
from typing import Any

import anyio
import httpx

from benchmarks.sides.telling import tell, told
from outreach.wire.client import ProviderClient
from outreach.wire.spread_client import SpreadClient

_SECONDS = 60.0
_KEPT_SECONDS = 4.0


def main() -> None:
    """Ask, and tell how it went."""
    gc.set_threshold(100_000, 10, 10)
    tell(anyio.run(_ask, told(), backend_options={"use_uvloop": True}))


async def _ask(asked: dict[str, Any]) -> dict[str, float]:
    turns = anyio.Semaphore(asked["at_once"])
    begun, computed = time.perf_counter(), time.process_time()
    async with _client(asked) as http, anyio.create_task_group() as tasks:

        async def one() -> None:
            async with turns:
                (await http.post(asked["url"], json={"text": "Hello"})).raise_for_status()

        for _ in range(asked["requests"]):
            tasks.start_soon(one)
    seconds, count = time.perf_counter() - begun, asked["requests"]
    return {"requests a second": count / seconds, "CPU ms a request": (time.process_time() - computed) / count * 1000}


def _client(asked: dict[str, Any]) -> ProviderClient:
    most, timeout = asked["connections"], httpx.Timeout(_SECONDS)
    if asked["spread"]:
        return SpreadClient(connections=most, keepalive_expiry=_KEPT_SECONDS, timeout=timeout)
    return ProviderClient(
        limits=httpx.Limits(max_connections=most, keepalive_expiry=_KEPT_SECONDS),
        timeout=timeout,
    )


if __name__ == "__main__":
    main()
