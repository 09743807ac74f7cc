"""The clients of the accounts at one provider, whose connections are bounded, shared fairly, and never used by two."""

from __future__ import annotations

import asyncio
import math
import ssl
from collections.abc import AsyncIterator, Callable
from functools import cache, partial
from types import TracebackType
from typing import Any, Final, Self

import attrs
import httpx

from outreach.providers.http.client import ProviderClient
from outreach.providers.http.request_gate import FairLimiter

_ONE: Final = 1
"""Connections of a pool of httpcore, which goes through all it has at each request."""


@attrs.define(eq=False)
class _Connection:
    """A client with one connection, the account that alone uses it, and since when (by the loop's clock) it is idle."""

    account: str
    client: ProviderClient
    idle_since: float = 0.0


@cache
def verified_tls() -> ssl.SSLContext:
    """Return how certificates are verified, as httpx does; made once, because it reads all those of the machine."""
    return httpx.create_ssl_context()


class SharedConnections:
    """The connections to one provider.

    Each is used by one account only: what a provider, or something before it, sends too much is never taken for the
    answer to another account. An account gets another connection only while it has less than a share of what is free
    (`FairLimiter`), so that one whose requests hang leaves some to the others.

    Args:
        most: How many there may be, in use and idle together.
        keepalive_expiry: After how many seconds an idle one is closed.
        settings: What all have in common, as for `httpx.AsyncClient`.
    """

    def __init__(self, *, most: int, keepalive_expiry: float, **settings: Any) -> None:
        self._settings = {"verify": verified_tls(), **settings}
        self._limits = httpx.Limits(max_connections=_ONE, keepalive_expiry=keepalive_expiry)
        self._keepalive_expiry = keepalive_expiry
        self._most = most
        self._places = FairLimiter(most)
        self._idle: dict[_Connection, None] = {}
        """The longest idle one first."""
        self._used: set[_Connection] = set()
        self._expiry: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._closed = False

    def client(self, account: str) -> AccountClient:
        """Return a client of an account."""
        return AccountClient(self, account, **self._settings)

    async def take(self, account: str, request: httpx.Request) -> _Connection:
        """Return a connection of an account, after waiting for one as long as the request's timeout for it says.

        Raises:
            httpx.PoolTimeout: None was free in time.
            httpx.ProxyError: The environment names a proxy that cannot be used.
            RuntimeError: They are closed.
        """
        seconds = request.extensions.get("timeout", {}).get("pool")
        if not await self._places.acquire_within(account, math.inf if seconds is None else seconds):
            raise httpx.PoolTimeout("No connection was free in time.", request=request)
        try:
            connection = self._take_now(account, request)
        except BaseException:
            self._places.release(account, 1)
            raise
        self._used.add(connection)
        return connection

    def give_back(self, connection: _Connection) -> None:
        """Leave a connection to the account's next request."""
        self._used.discard(connection)
        if not self._closed:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle[connection] = None
            self._expire_later()
        self._places.release(connection.account, 1)

    async def aclose(self) -> None:
        """Close all connections, also those in use."""
        self._closed = True
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        for connection in [*self._idle, *self._used]:
            self._close(connection)
        while self._closing:
            await asyncio.wait(self._closing)

    async def __aenter__(self) -> Self:
        """Return these connections."""
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Close all connections."""
        await self.aclose()

    def _take_now(self, account: str, request: httpx.Request) -> _Connection:
        """Return the last idle connection of an account, or a new one."""
        if self._closed:
            raise RuntimeError("The client is closed.")
        connection = next((idle for idle in reversed(self._idle) if idle.account == account), None)
        if connection is not None:
            del self._idle[connection]
            return connection
        try:
            # Before another one is closed for it.
            client = ProviderClient(limits=self._limits, **self._settings)
        except (ImportError, ValueError, httpx.InvalidURL) as error:
            # The words of the error may contain the proxy's password.
            raise httpx.ProxyError(
                "A proxy of the environment (HTTPS_PROXY, HTTP_PROXY or ALL_PROXY) cannot be used: "
                f"{type(error).__name__}. Correct its URL; a SOCKS proxy requires the package socksio.",
                request=request,
            ) from None
        if len(self._used) + len(self._idle) >= self._most:
            self._close(next(iter(self._idle)))
        return _Connection(account, client)

    def _close(self, connection: _Connection) -> None:
        self._idle.pop(connection, None)
        task = asyncio.get_running_loop().create_task(connection.client.aclose())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _expire(self) -> None:
        """Close the connections that were idle for long enough.

        A pool of httpcore itself closes what has expired, or was closed by the provider, only at its next request.
        """
        self._expiry = None
        latest = asyncio.get_running_loop().time() - self._keepalive_expiry
        for connection in [idle for idle in self._idle if idle.idle_since <= latest]:
            self._close(connection)
        self._expire_later()

    def _expire_later(self) -> None:
        if self._expiry is None and self._idle:
            self._expiry = asyncio.get_running_loop().call_later(self._keepalive_expiry, self._expire)


class AccountClient(ProviderClient):
    """A `ProviderClient` of one account, over connections of its own among those of all accounts at the provider."""

    def __init__(self, connections: SharedConnections, account: str, **settings: Any) -> None:
        # It has no connections of its own.
        super().__init__(transport=httpx.AsyncBaseTransport(), **settings)
        self._connections = connections
        self._account = account

    async def send(self, request: httpx.Request, *, stream: bool = False, **options: Any) -> httpx.Response:
        """Send a request; see `ProviderClient`.

        Raises:
            httpx.PoolTimeout: No connection was free in time.
        """
        connection = await self._connections.take(self._account, request)
        give_back = partial(self._connections.give_back, connection)
        try:
            response = await connection.client.send(request, stream=stream, **options)
        except BaseException:
            give_back()
            raise
        if stream:
            response.stream = _LastingStream(response.stream, give_back)
        else:
            give_back()
        return response


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
