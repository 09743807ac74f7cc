"""Sends one delivery of a webhook over HTTP, to an address that was checked as the connection was made."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from time import monotonic
from types import TracebackType
from typing import Any, Final, Self

import anyio
import anyio.lowlevel
import anyio.to_thread

from outreach.core.extras import needed_for
from outreach.dispatch.webhook_endpoint import MAX_CONNECTIONS, WHOLE_SECONDS, DeliveryAnswer
from outreach.providers.http.account_client import verified_tls
from outreach.rules.webhook_targets import Address, Allowed, TargetRefused, check_addresses, check_url

with needed_for("Webhooks"):
    import httpx

import httpcore

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host, for a port; an `OSError` where it has none."""

CONNECT_SECONDS: Final = 5.0
MAX_ANSWER_BYTES: Final = 4096

_ADDRESSES_TRIED: Final = 2
_IDLE_SECONDS: Final = 5.0
_RESOLVER_THREADS: Final = 16


async def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host as the system resolves it.

    It takes threads of its own: a name server that does not answer delays no request to a provider.
    """
    found = await anyio.to_thread.run_sync(
        lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM), abandon_on_cancel=True, limiter=_threads()
    )
    return list(dict.fromkeys(str(one[4][0]) for one in found))


_limiter: anyio.lowlevel.RunVar[anyio.CapacityLimiter] = anyio.lowlevel.RunVar("webhook_resolver_threads")


def _threads() -> anyio.CapacityLimiter:
    try:
        return _limiter.get()
    except LookupError:
        made = anyio.CapacityLimiter(_RESOLVER_THREADS)
        _limiter.set(made)
        return made


class WebhookSender:
    """Makes requests to endpoints; use it as an async context manager.

    It follows no redirect, uses no proxy of the environment, keeps no cookie, and reads 4 kB of each answer.

    Args:
        allowed: What the operator allows beside public addresses.
        resolver: Resolves names, anew for each connection.
        tls: How certificates are verified; by default as httpx does.
        clock: Returns monotonic seconds.
    """

    def __init__(
        self,
        *,
        allowed: Allowed,
        resolver: Resolver = resolve,
        tls: ssl.SSLContext | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._allowed = allowed
        transport = _Connections(_CheckedNetwork(allowed, resolver), tls or verified_tls(), clock)
        self._http = httpx.AsyncClient(
            transport=transport,
            trust_env=False,
            follow_redirects=False,
            timeout=httpx.Timeout(WHOLE_SECONDS, connect=CONNECT_SECONDS),
            headers={"accept-encoding": "identity", "user-agent": "outreach-webhooks"},
        )

    async def __aenter__(self) -> Self:
        """Return this sender."""
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Close all connections."""
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> DeliveryAnswer:
        """Make one request, and return what came of it; it raises for nothing that the receiver or the network does."""
        began = monotonic()
        status: int | None = None
        text, retry_after, error = b"", None, None
        self._http.cookies.clear()
        try:
            check_url(url, self._allowed)
            with anyio.fail_after(WHOLE_SECONDS):
                async with self._http.stream(
                    "POST", url, content=body, headers={"content-type": "application/json", **headers}
                ) as answer:
                    status, retry_after = answer.status_code, answer.headers.get("retry-after")
                    text = await _beginning(answer)
        except TargetRefused:
            error = "target_refused"
        except (
            httpx.ConnectError,
            httpx.ConnectTimeout,
            httpx.PoolTimeout,
            httpx.InvalidURL,
            httpx.LocalProtocolError,
            # The host is no name of the DNS, such as `xn--`.
            UnicodeError,
        ) as failure:
            error = _connection_error(failure)
        except (TimeoutError, httpx.TimeoutException):
            error = "timeout"
        except (httpx.HTTPError, httpx.StreamError, ValueError):
            error = "dropped"
        return DeliveryAnswer(
            status=status,
            # The status decides, also where the rest of the answer did not come.
            error=error if status is None else None,
            text=text,
            retry_after=retry_after,
            seconds=monotonic() - began,
        )


def _connection_error(failure: BaseException) -> str:
    """Return why a connection failed; of a certificate also what TLS says, such as that its time is over."""
    cause: BaseException | None = failure
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"certificate: {cause.verify_message.rstrip('.')}"
        cause = cause.__cause__ or cause.__context__
    return "not_connected"


async def _beginning(answer: httpx.Response) -> bytes:
    content = bytearray()
    async for part in answer.aiter_raw():
        content += part
        if len(content) >= MAX_ANSWER_BYTES:
            break
    return bytes(content[:MAX_ANSWER_BYTES])


class _Connections(httpx.AsyncBaseTransport):
    """The connections of each host apart: a pool looks at all of its connections twice in each request."""

    def __init__(self, network: httpcore.AsyncNetworkBackend, tls: ssl.SSLContext, clock: Callable[[], float]) -> None:
        self._network = network
        self._tls = tls
        self._clock = clock
        self._hosts: dict[str, tuple[float, httpx.AsyncHTTPTransport]] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Make a request over a connection of its host."""
        now, host = self._clock(), f"{request.url.scheme}://{request.url.netloc.decode()}"
        known = self._hosts.pop(host, None)
        transport = known[1] if known else self._opened()
        # The one that was used last stands last.
        self._hosts[host] = (now, transport)
        while now - next(iter(self._hosts.values()))[0] > 2 * WHOLE_SECONDS:
            # No request lasts that long.
            _, unused = self._hosts.pop(next(iter(self._hosts)))
            await unused.aclose()
        return await transport.handle_async_request(request)

    async def aclose(self) -> None:
        """Close all connections."""
        hosts, self._hosts = self._hosts, {}
        for _, transport in hosts.values():
            await transport.aclose()

    def _opened(self) -> httpx.AsyncHTTPTransport:
        transport = httpx.AsyncHTTPTransport(verify=self._tls)
        transport._pool = httpcore.AsyncConnectionPool(
            ssl_context=self._tls,
            max_connections=MAX_CONNECTIONS,
            max_keepalive_connections=MAX_CONNECTIONS,
            keepalive_expiry=_IDLE_SECONDS,
            network_backend=self._network,
        )
        return transport


class _CheckedNetwork(httpcore.AsyncNetworkBackend):
    """Connects to the addresses that it has checked: a second look-up could find others."""

    def __init__(self, allowed: Allowed, resolver: Resolver) -> None:
        self._allowed = allowed
        self._resolver = resolver
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the interface of httpcore
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to an address of a host.

        Raises:
            TargetRefused: One of its addresses is not allowed.
            httpcore.ConnectError: It has no address, or none answers.
            httpcore.ConnectTimeout: It took too long.
        """
        try:
            with anyio.fail_after(timeout):
                return await self._connect(host, port, socket_options)
        except TimeoutError:
            raise httpcore.ConnectTimeout from None

    async def _connect(self, host: str, port: int, options: Iterable[Any] | None) -> httpcore.AsyncNetworkStream:
        try:
            found = await self._resolver(host, port)
        except (OSError, UnicodeError):
            raise httpcore.ConnectError("The name has no address.") from None
        addresses: Sequence[Address] = check_addresses(found, host, self._allowed)[:_ADDRESSES_TRIED]
        for address in addresses[:-1]:
            try:
                # The second one gets half of the time.
                return await self._network.connect_tcp(
                    str(address), port, timeout=CONNECT_SECONDS / _ADDRESSES_TRIED, socket_options=options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return await self._network.connect_tcp(str(addresses[-1]), port, socket_options=options)
