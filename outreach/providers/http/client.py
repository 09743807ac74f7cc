"""The HTTP client for providers; it limits how much it reads from them."""

from __future__ import annotations

import functools
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from http.cookiejar import DefaultCookiePolicy
from typing import Any, Final

import httpx

from outreach.providers.http.request_gate import MayStart, current_gate

_log = logging.getLogger(__name__)

MAX_RESPONSE_BYTES: Final = 8 * 1024 * 1024
"""The largest answer that is read, unpacked: a call with its transcript, or a thousand messages in a list."""

_UNPACKED: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})

NOT_SENT_ERRORS: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
    httpx.InvalidURL,
    httpx.LocalProtocolError,
)
"""Errors before the first byte of a request: the provider cannot have received it."""


class TooLate(httpx.ConnectError):
    """The connection was there when the request could not start any more: nothing of it was written."""


class ResponseTooLarge(httpx.RequestError):
    """An answer that was not read to its end. The request had arrived: its outcome is unknown."""


class ProviderClient(httpx.AsyncClient):
    """A client of httpx that asks for answers that are not packed, reads none without a bound, and keeps no cookies."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(headers={"accept-encoding": "identity"}, **settings)
        # A session of a provider is for browsers: no request depends on what an earlier one set.
        self.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=()))

    async def send(self, request: httpx.Request, *, stream: bool = False, **options: Any) -> httpx.Response:
        """Send a request, and read its answer unless it is to be streamed.

        Raises:
            TooLate: By `request_gate` it may not start any more.
            ResponseTooLarge: The answer is larger than `MAX_RESPONSE_BYTES`.
            httpx.RequestError: What httpx raises.
        """
        if (may_start := current_gate()) is not None:
            request.extensions = {**request.extensions, "trace": _refusing(may_start, request)}
        response = await super().send(request, stream=True, **options)
        response.stream = _LastAnswer(response)
        if stream:
            return response
        try:
            content = await _read_body(response)
        finally:
            await response.aclose()
        return httpx.Response(
            response.status_code,
            headers=[(name, value) for name, value in response.headers.multi_items() if name not in _UNPACKED],
            content=content,
            request=response.request,
            extensions=response.extensions,
        )


def _refusing(may_start: MayStart, request: httpx.Request) -> Callable[[str, object], Awaitable[None]]:
    """Return a trace function for httpcore that ends a request before it is written if `may_start` returns False."""

    async def trace(step: str, _: object) -> None:
        if step.endswith(".send_request_headers.started") and not await may_start():
            raise TooLate(
                "It may not start any more. A background task starts with context=contextvars.Context().",
                request=request,
            )

    return trace


class _LastAnswer(httpx.AsyncByteStream):
    """An answer whose connection is closed if more than the answer has come over it.

    The rest, such as a second answer in one segment, would be taken for the answer to the next request.
    """

    def __init__(self, response: httpx.Response) -> None:
        self._stream: Any = response.stream
        self._network: Any = response.extensions.get("network_stream")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            yield part

    async def aclose(self) -> None:
        try:
            # Without a network there is a double of a test.
            if self._network is not None:
                await self._close_network()
        finally:
            await self._stream.aclose()

    async def _close_network(self) -> None:
        parser, queue = _parser_of(self._stream), _queue_of(self._network)
        if parser is None or queue is None:
            warn_of_closed_connections()
            await self._network.aclose()
        elif parser.trailing_data[0] or queue or _has_more(self._network.get_extra_info("ssl_object")):
            # httpcore closes the connection of a request that failed, and keeps every other one.
            parser.send_failed()


@functools.cache
def warn_of_closed_connections() -> None:
    """Log once that whether more than an answer has come cannot be seen, so that no connection is kept."""
    _log.warning(
        "Each request to a provider makes a connection, because this version of httpx, httpcore or anyio does not show "
        "what comes beyond an answer. Install a version that `pip install outreach` chooses.",
        extra={"action": "connections_not_kept"},
    )


_WAY_TO_PARSER: Final = ("_stream", "_httpcore_stream", "_stream", "_connection", "_h11_state")
"""From the stream of an answer of httpx through those of httpcore, which do not show their parser."""

_WAY_TO_QUEUE: Final = ("_protocol", "read_queue")
"""From a stream of anyio, below that of TLS, to what has arrived and was not read: what is more than 64 KiB at once."""


def _parser_of(stream: object) -> Any:
    """Return the `h11.Connection` of an answer's connection; None if httpx or httpcore are made another way."""
    found = _at_end(stream, _WAY_TO_PARSER)
    return found if hasattr(found, "trailing_data") and hasattr(found, "send_failed") else None


def _queue_of(network: object) -> Any:
    """Return what has arrived at a connection and was not read; None if httpcore or anyio are made another way."""
    stream = getattr(network, "_stream", None)
    while (below := getattr(stream, "transport_stream", None)) is not None:
        stream = below
    return _at_end(stream, _WAY_TO_QUEUE)


def _at_end(found: Any, way: Iterable[str]) -> Any:
    for name in way:
        found = getattr(found, name, None)
    return found


def _has_more(tls: ssl.SSLObject | None) -> bool:
    """Return whether TLS has received more than was read of it, or has come to its end."""
    if tls is None:
        return False
    try:
        tls.read(1)
    except ssl.SSLWantReadError:
        return False
    except ssl.SSLError:
        return True
    return True


async def _read_body(response: httpx.Response) -> bytes:
    announced = response.headers.get("content-length", "")
    if announced.isascii() and announced.isdigit() and int(announced[:20]) > MAX_RESPONSE_BYTES:
        raise _too_large(response)
    content = bytearray()
    async for part in response.aiter_bytes():
        content += part
        if len(content) > MAX_RESPONSE_BYTES:
            raise _too_large(response)
    return bytes(content)


def _too_large(response: httpx.Response) -> ResponseTooLarge:
    return ResponseTooLarge(f"The answer is larger than {MAX_RESPONSE_BYTES} bytes.", request=response.request)
