"""The client that providers are asked with: what it takes from them is bounded."""

from __future__ import annotations

from typing import Any, Final

import httpx

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


class ResponseTooLarge(httpx.RequestError):
    """An answer that was not read to its end. The request had arrived: nobody can tell what the provider did."""


class ProviderClient(httpx.AsyncClient):
    """A client of httpx that asks for answers that are not packed, and reads none without a bound."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(headers={"accept-encoding": "identity"}, **settings)

    async def send(self, request: httpx.Request, *, stream: bool = False, **options: Any) -> httpx.Response:
        """Send a request, and read its answer unless it is to be streamed.

        Raises:
            ResponseTooLarge: The answer is larger than `MAX_RESPONSE_BYTES`.
            httpx.RequestError: What httpx raises.
        """
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
