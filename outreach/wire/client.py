"""The client that providers are asked with: what it takes from them is bounded."""

from __future__ import annotations

import logging
import re
from typing import Any, Final

import httpx

MAX_RESPONSE_BYTES: Final = 8 * 1024 * 1024
"""The largest answer that is read, unpacked: a call with its transcript, or a thousand messages in a list."""

_UNPACKED: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})


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


_QUERY: Final = re.compile(r"(?P<address>https?://[^\s?\"']*)\?[^\s\"']*")
_ANSWER: Final = re.compile(r" return_value=(?:\(b'[^']*', (?P<status>[0-9]+))?.*", re.DOTALL)
_ERROR: Final = re.compile(r" exception=(?P<kind>[A-Za-z]*).*", re.DOTALL)

_WIRE: Final = ("connection", "http11", "http2", "proxy", "socks")
"""The loggers of httpcore; a filter of their parent would not be asked."""


class _WithoutQueries(logging.Filter):
    """Lets every line through, and cuts the query off each address in it."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the line where an address in it has a query."""
        told = record.getMessage()
        _tell(record, told, _QUERY.sub(r"\g<address>", told))
        return True


class _WithoutAnswers(logging.Filter):
    """Lets every line through, and leaves of an answer its status, and of an error its kind."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the line where it holds headers, or an error that quotes them."""
        told = record.getMessage()
        _tell(record, told, _ERROR.sub(_kind, _ANSWER.sub(_status, told)))
        return True


def _status(found: re.Match[str]) -> str:
    return f" status={found['status']}" if found["status"] else ""


def _kind(found: re.Match[str]) -> str:
    return f" exception={found['kind']}"


def _tell(record: logging.LogRecord, told: str, cut: str) -> None:
    if cut != told:
        record.msg, record.args = cut, ()


_QUERIES: Final = _WithoutQueries()
_ANSWERS: Final = _WithoutAnswers()


def redact_http_logs() -> None:
    """Keep what may hold phone numbers out of the log, in this process from now on; a second call changes nothing.

    httpx logs each request at INFO with its whole address (https://www.python-httpx.org/logging/), and httpcore at
    DEBUG the headers of each answer, a `Location` with what was asked for among them. A program that embeds the engine
    may log at either level, and no full phone number may stand in a log. The loggers are those of the whole process:
    other requests made with httpx are logged without these, too.
    """
    logging.getLogger("httpx").addFilter(_QUERIES)
    for name in _WIRE:
        logging.getLogger(f"httpcore.{name}").addFilter(_ANSWERS)
