"""The client that providers are asked with: what it takes from them is bounded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http.cookiejar import DefaultCookiePolicy
from typing import Any, Final

import httpx

from outreach.wire.last_moment import MayStart, present

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
"""What fails before the first byte of a request: the provider cannot have heard of it."""


class TooLate(httpx.ConnectError):
    """The connection was there when the request could not start any more: nothing of it was written."""


class ResponseTooLarge(httpx.RequestError):
    """An answer that was not read to its end. The request had arrived: nobody can tell what the provider did."""


class ProviderClient(httpx.AsyncClient):
    """A client of httpx that asks for answers that are not packed, reads none without a bound, and keeps no cookies."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(headers={"accept-encoding": "identity"}, **settings)
        # Many accounts share a client: what a provider sets for one must not come with the requests of another.
        self.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=()))

    async def send(self, request: httpx.Request, *, stream: bool = False, **options: Any) -> httpx.Response:
        """Send a request, and read its answer unless it is to be streamed.

        Raises:
            TooLate: By `last_moment` it may not start any more.
            ResponseTooLarge: The answer is larger than `MAX_RESPONSE_BYTES`.
            httpx.RequestError: What httpx raises.
        """
        if (may_start := present()) is not None:
            request.extensions = {**request.extensions, "trace": _refusing(may_start, request)}
        response = await super().send(request, stream=True, **options)
        if stream:
            return response
        try:
            content = await _read(response)
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
    """Return what httpcore tells of its steps, and what ends the request before it is written."""

    async def trace(step: str, _: object) -> None:
        if step.endswith(".send_request_headers.started") and not may_start():
            raise TooLate("It took too long to connect.", request=request)

    return trace


async def _read(response: httpx.Response) -> bytes:
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
