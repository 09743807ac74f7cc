"""Requests from pages of other origins in a browser (https://fetch.spec.whatwg.org/#http-cors-protocol)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from outreach_server.errors import error_response

_METHODS: Final = ("GET", "HEAD", "POST", "PATCH", "PUT", "DELETE")
_REQUEST_HEADERS: Final = ("Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID", "X-Request-Id")
_RESPONSE_HEADERS: Final = ("Location", "RateLimit", "RateLimit-Policy", "Retry-After", "X-Request-Id", "ETag")


class CorsMiddleware(CORSMiddleware):
    """Answers preflight requests, and adds the CORS headers to all other responses.

    Browsers send no cookies with these requests: a page needs an API key, as every client does.

    Args:
        app: The wrapped app.
        origins: The origins whose pages may call.
    """

    def __init__(self, app: ASGIApp, *, origins: Sequence[str]) -> None:
        super().__init__(
            app,
            allow_origins=origins,
            allow_methods=_METHODS,
            allow_headers=_REQUEST_HEADERS,
            expose_headers=_RESPONSE_HEADERS,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection; a refused preflight request gets the envelope."""
        headers = Headers(scope=scope) if scope["type"] == "http" and scope["method"] == "OPTIONS" else Headers()
        if "origin" not in headers or "access-control-request-method" not in headers:
            await super().__call__(scope, receive, send)
            return
        response: Response = self.preflight_response(headers)
        if response.status_code != 200:
            refused = bytes(response.body).decode()
            message = f"{refused}. The setting cors_origins names the origins that may call."
            response = error_response(Request(scope), 400, "invalid_request", message, headers={"Vary": "Origin"})
        await response(scope, receive, send)
