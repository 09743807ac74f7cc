"""The outermost layers: a request's id, the headers of every response, one line in the log, and the fast path.

Everything but a plain GET of the fast path's paths goes through the router: other methods, mounted apps, other paths.
Both ways call the same functions and handle errors alike.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from outreach import OutreachError
from outreach.http import RateLimitState
from outreach_server.context import RequestState, Server, is_cancelled_by_stop, set_request_state
from outreach_server.endpoints.campaigns import Campaigns, SmsCampaigns
from outreach_server.errors import answer_http_exception, answer_outreach_error, answer_stopping
from outreach_server.listening.proxies import client_address
from outreach_server.monitoring.log_context import REQUEST_ID as LOGGED_ID

REQUEST_ID: Final = b"x-request-id"

# Goes into log lines and headers, so it must be short and harmless.
_ACCEPTABLE: Final = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._~:=+/-]{0,127}")

_PIECE_BYTES: Final = 64 * 1024
"""The part of a body that is written at once: the next piece waits until the client has taken most of it. Bytes that
the client has not taken have a deadline, which a client on a slow line could not keep with a large body."""

_PROBES: Final = frozenset({"Health", "Ready", "metrics"})
"""Endpoints that a supervisor or Prometheus asks every few seconds: a good answer is worth no line of its own."""

_log = logging.getLogger("outreach_server.access")


class RequestStateMiddleware:
    """Adds the request's state, and its headers to the response.

    A valid `X-Request-Id` of the request is kept, so that it can be traced through several services.

    Args:
        app: The wrapped app.
        server: The server.
    """

    def __init__(self, app: ASGIApp, server: Server) -> None:
        self._app = app
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = RequestState(server=self._server, request_id=choose_request_id(scope["headers"]))
        set_request_state(scope, exchange)
        began = time.monotonic()
        status = 0
        token = LOGGED_ID.set(exchange.request_id)
        spans = self._server.spans
        span = None if spans is None else spans.begin(scope)

        async def send_marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message["headers"], (REQUEST_ID, exchange.request_id.encode())]
                headers += _limit_headers(exchange.quota)
                if exchange.closes:
                    headers.append((b"connection", b"close"))
                message["headers"] = headers
            elif len(message.get("body", b"")) > _PIECE_BYTES:
                message = await _send_all_but_the_last(message, send)
            await send(message)

        try:
            await self._app(scope, receive, send_marked)
        except asyncio.CancelledError:
            if status or not is_cancelled_by_stop(scope):
                raise
            await answer_stopping(Request(scope))(scope, receive, send_marked)
        finally:
            seconds = time.monotonic() - began
            _log_exchange(scope, exchange, status, seconds)
            if self._server.metrics is not None:
                self._server.metrics.request_ended(scope, status, seconds)
            if spans is not None and span is not None:
                spans.end(span, scope, status, request_id=exchange.request_id, workspace_id=exchange.workspace_id)
            LOGGED_ID.reset(token)


def _limit_headers(quota: RateLimitState | None) -> Sequence[tuple[bytes, bytes]]:
    """Return the rate-limit headers (draft-ietf-httpapi-ratelimit-headers); none without a limit or a count."""
    if quota is None:
        return ()
    return (
        (b"ratelimit-policy", b'"workspace";q=%d;w=60' % quota.limit),
        (b"ratelimit", b'"workspace";r=%d;t=%d' % (quota.remaining, quota.reset_seconds)),
    )


async def _send_all_but_the_last(message: Message, send: Send) -> Message:
    """Send a body in pieces, and return the last one."""
    body = memoryview(message["body"])
    last = (len(body) - 1) // _PIECE_BYTES * _PIECE_BYTES
    for start in range(0, last, _PIECE_BYTES):
        piece = bytes(body[start : start + _PIECE_BYTES])
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    return {**message, "body": bytes(body[last:])}


def choose_request_id(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Return the request's id, or a new one if it is absent or invalid.

    Args:
        headers: Raw headers with lower-case names.
    """
    given = next((value for name, value in headers if name == REQUEST_ID), b"")
    return given.decode("ascii") if _ACCEPTABLE.fullmatch(given) else secrets.token_hex(16)


def _log_exchange(scope: Scope, exchange: RequestState, status: int, seconds: float) -> None:
    # The endpoint's name, because the path may contain a phone number given as a call's id.
    endpoint = getattr(scope.get("endpoint"), "__name__", "none")
    level = logging.DEBUG if endpoint in _PROBES and status < 400 else logging.INFO
    if not _log.isEnabledFor(level):
        return
    client = {"client": client_address(scope.get("client"))} if exchange.server.logs_client_addresses else {}
    _log.log(
        level,
        "%s %s %d in %.0f ms, request %s, workspace %s%s",
        scope["method"],
        endpoint,
        status,
        seconds * 1000,
        exchange.request_id,
        exchange.workspace_id or "unknown",
        f", client {client['client'] or 'unknown'}" if client else "",
        extra={
            "action": "http_request",
            "method": scope["method"],
            "endpoint": endpoint,
            "status": status,
            "duration_ms": round(seconds * 1000, 1),
            "request_id": exchange.request_id,
            "workspace_id": exchange.workspace_id,
            **client,
        },
    )


_LISTS: Final[Mapping[str, type[Campaigns]]] = {"/sms-campaigns": SmsCampaigns, "/campaigns": Campaigns}


class FastListMiddleware:
    """Answers the lists of campaigns, and passes on everything else.

    Args:
        app: The wrapped app.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        short = scope["type"] == "http" and scope["method"] == "GET" and not scope.get("root_path")
        endpoint = _LISTS.get(scope["path"]) if short else None
        if endpoint is None:
            await self._app(scope, receive, send)
            return
        scope["endpoint"] = endpoint
        request = Request(scope, receive)
        try:
            response = await endpoint.list(request)
        except OutreachError as error:
            response = await answer_outreach_error(request, error)
        except HTTPException as error:
            # Raised by a host that authenticates requests itself.
            response = await answer_http_exception(request, error)
        await response(scope, receive, send)
