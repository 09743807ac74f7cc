"""Asking a provider by HTTP, many requests at a time, through the clients of some accounts or one pool of connections.

Told: `url` of the provider, how many `requests`, `at_once`, `connections`, and whether accounts have `shared` ones.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

import anyio
import httpx

from benchmarks.sides.telling import tell, told
from outreach.providers.http.account_client import SharedConnections
from outreach.providers.http.client import ProviderClient

_ACCOUNTS = 4
_SECONDS = 60.0
_KEPT_SECONDS = 4.0


def main() -> None:
    """Ask, and tell how it went."""
    gc.set_threshold(100_000, 10, 10)
    tell(anyio.run(_ask, told(), backend_options={"use_uvloop": True}))


async def _ask(asked: dict[str, Any]) -> dict[str, float]:
    turns = anyio.Semaphore(asked["at_once"])
    begun, computed = time.perf_counter(), time.process_time()
    async with AsyncExitStack() as opened:
        clients = await _clients(asked, opened)
        async with anyio.create_task_group() as tasks:

            async def one(http: ProviderClient) -> None:
                async with turns:
                    (await http.post(asked["url"], json={"text": "Hello"})).raise_for_status()

            for number in range(asked["requests"]):
                tasks.start_soon(one, clients[number % len(clients)])
    seconds, count = time.perf_counter() - begun, asked["requests"]
    return {"requests a second": count / seconds, "CPU ms a request": (time.process_time() - computed) / count * 1000}


async def _clients(asked: dict[str, Any], opened: AsyncExitStack) -> Sequence[ProviderClient]:
    most, timeout = asked["connections"], httpx.Timeout(_SECONDS)
    if asked["shared"]:
        shared = SharedConnections(most=most, keepalive_expiry=_KEPT_SECONDS, timeout=timeout)
        connections = await opened.enter_async_context(shared)
        return [connections.client(f"{number}") for number in range(_ACCOUNTS)]
    limits = httpx.Limits(max_connections=most, keepalive_expiry=_KEPT_SECONDS)
    return [await opened.enter_async_context(ProviderClient(limits=limits, timeout=timeout))]


if __name__ == "__main__":
    main()
