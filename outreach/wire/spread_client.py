"""A client with many connections, in several small pools."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from types import TracebackType
from typing import Any, Final

import anyio
import attrs
import httpx

from outreach.wire.client import ProviderClient

_EACH: Final = 10
"""Connections of one pool. For each request httpcore goes through the idle connections of a pool, and for each of them
through all that the pool has: one pool of 100 takes many times the computing of ten pools of ten."""


@attrs.define(eq=False)
class _Pool:
    """A pool, how many requests it has, and since when (by the loop's clock) it has none."""

    client: ProviderClient
    requests: int = 0
    idle_since: float = 0.0


class SpreadClient(ProviderClient):
    """A `ProviderClient` whose requests go through several small pools, the first of them that has a free connection.

    A request waits for a connection as long as its timeout for the pool says.

    Args:
        connections: How many there may be.
        keepalive_expiry: After how many seconds an idle one is closed.
        settings: What all pools have in common, as for `httpx.AsyncClient`.
    """

    def __init__(self, *, connections: int, keepalive_expiry: float, **settings: Any) -> None:
        # Made once, because it reads all certificates of the machine.
        settings = {"verify": httpx.create_ssl_context(), **settings}
        # It has no connections of its own.
        super().__init__(transport=httpx.AsyncBaseTransport(), **settings)
        self._keepalive_expiry = keepalive_expiry
        self._settings = {"limits": httpx.Limits(max_connections=_EACH, keepalive_expiry=keepalive_expiry), **settings}
        self._pools: list[_Pool] = []
        self._free = anyio.Semaphore(connections, fast_acquire=True)
        self._expiry: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()

    async def send(self, request: httpx.Request, *, stream: bool = False, **options: Any) -> httpx.Response:
        """Send a request through one of the pools; see `ProviderClient`."""
        pool = await self._take(request)
        try:
            response = await pool.client.send(request, stream=stream, **options)
        except BaseException:
            self._give_back(pool)
            raise
        if stream:
            response.stream = _LastingStream(response.stream, partial(self._give_back, pool))
        else:
            self._give_back(pool)
        return response

    async def aclose(self) -> None:
        """Close all pools."""
        await super().aclose()
        await self._close_pools()

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        """Close all pools."""
        await super().__aexit__(exc_type, exc_value, traceback)
        await self._close_pools()

    async def _close_pools(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        while self._pools:
            await self._pools.pop().client.aclose()
        if self._closing:
            await asyncio.wait(self._closing)

    def _expire(self) -> None:
        """Close the pools that nobody has asked for long enough, with their connections.

        A pool of httpcore itself closes what has expired, or was closed by the provider, only at its next request.
        """
        self._expiry = None
        latest = asyncio.get_running_loop().time() - self._keepalive_expiry
        expired = [pool for pool in self._pools if not pool.requests and pool.idle_since <= latest]
        self._pools = [pool for pool in self._pools if pool not in expired]
        for pool in expired:
            task = asyncio.create_task(pool.client.aclose())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
        self._expire_later()

    def _expire_later(self) -> None:
        if self._expiry is None and any(not pool.requests for pool in self._pools):
            self._expiry = asyncio.get_running_loop().call_later(self._keepalive_expiry, self._expire)

    async def _take(self, request: httpx.Request) -> _Pool:
        """Return a pool with a free connection, after waiting for one."""
        try:
            with anyio.fail_after(request.extensions.get("timeout", {}).get("pool")):
                await self._free.acquire()
        except TimeoutError:
            raise httpx.PoolTimeout("No connection was free in time.", request=request) from None
        if self.is_closed:
            self._free.release()
            raise RuntimeError("The client is closed.")
        pool = next((pool for pool in self._pools if pool.requests < _EACH), None)
        if pool is None:
            pool = _Pool(ProviderClient(**self._settings))
            self._pools.append(pool)
        pool.requests += 1
        return pool

    def _give_back(self, pool: _Pool) -> None:
        pool.requests -= 1
        self._free.release()
        if not pool.requests:
            pool.idle_since = asyncio.get_running_loop().time()
            if not self.is_closed:
                self._expire_later()


class _LastingStream(httpx.AsyncByteStream):
    """An answer that is read as it comes, and has its connection until it is closed."""

    def __init__(self, stream: Any, give_back: Callable[[], None]) -> None:
        self._stream = stream
        self._give_back: Callable[[], None] | None = give_back

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            yield part

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            give_back, self._give_back = self._give_back, None
            if give_back is not None:
                give_back()
