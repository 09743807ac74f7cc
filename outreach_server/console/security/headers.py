"""The headers of every response of the console."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from outreach import ConfigError

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Scripts, styles and connections of the same origin alone, nothing inline, and no frame around."""

HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
    "X-Frame-Options": "DENY",
}

NO_STORE: Final = "no-store"

_SELF: Final = "'self'"


def headers_of(frame_ancestors: Sequence[str]) -> Mapping[str, str]:
    """Return the headers of a console that some sites may show in a frame.

    Args:
        frame_ancestors: Their origins, such as `https://app.acme.example`; `'self'` is the console's own one.

    Raises:
        ConfigError: One is no origin.
    """
    given: object = frame_ancestors
    if isinstance(given, str) or not all(map(_is_origin, frame_ancestors)):
        raise ConfigError(
            f"frame_ancestors is {frame_ancestors!r}; it must be a list of \"'self'\" and of origins such as "
            "'https://app.acme.example'."
        )
    if not frame_ancestors:
        return HEADERS
    policy = POLICY.replace("frame-ancestors 'none'", f"frame-ancestors {' '.join(frame_ancestors)}")
    # The older header knows no list of origins; browsers obey it only where the policy says nothing.
    kept = {name: value for name, value in HEADERS.items() if name != "X-Frame-Options"}
    return {**kept, "Content-Security-Policy": policy}


def _is_origin(text: object) -> bool:
    if not isinstance(text, str):
        return False
    # Another character would end the directive, and begin one of its own.
    plain = all(one.isalnum() or one in ":/.-[]" for one in text) and text.isascii()
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    if not plain or port == 0:
        return text == _SELF
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and text == f"{parts.scheme}://{parts.netloc}"


class SecurityHeadersMiddleware:
    """Adds headers, and forbids to store what has no `Cache-Control` of its own.

    Args:
        app: The wrapped app.
        headers: The headers.
    """

    def __init__(self, app: ASGIApp, headers: Mapping[str, str] = HEADERS) -> None:
        self._app = app
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", NO_STORE)
            await send(message)

        await self._app(scope, receive, send_with_headers)
