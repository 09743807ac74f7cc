"""The cookies of a browser: of its session, and of its last login."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from outreach.models import SignedIn

SECURE_NAME: Final = "__Host-outreach"
"""Behind TLS: no other host of the domain, and no page without TLS, can set it."""

PLAIN_NAME: Final = "outreach-session"

SECURE_KNOWN: Final = "__Host-outreach-known"
PLAIN_KNOWN: Final = "outreach-known"
"""Keeps the token of the last login beyond its end. Then it opens nothing, but nobody else makes this browser wait."""

_SECONDS: Final = 30 * 86_400
_KNOWN_SECONDS: Final = 90 * 86_400


def is_secure(request: Request, public_url: str | None) -> bool:
    """Return whether the browser sends a request over TLS, be it only to the proxy of the public URL.

    A proxy may name another host than the browser does; forms then say by `Origin` where they come from.
    """
    public = urlsplit(public_url or "")
    shown = {request.headers.get("host", "").lower(), urlsplit(request.headers.get("origin", "")).netloc.lower()}
    return request.url.scheme == "https" or (public.scheme == "https" and public.netloc.lower() in shown)


def token_in(request: Request, public_url: str | None) -> str:
    """Return the token that a request brings; empty without one.

    The cookie of TLS counts always, since browsers keep and send it over TLS alone; the other one only without TLS.
    """
    return _kept(request, public_url, SECURE_NAME, PLAIN_NAME)


def known_in(request: Request, public_url: str | None) -> str:
    """Return the token of the last login in the browser, ended or not; empty without one."""
    return _kept(request, public_url, SECURE_KNOWN, PLAIN_KNOWN)


def _kept(request: Request, public_url: str | None, secure_name: str, plain_name: str) -> str:
    plain = "" if is_secure(request, public_url) else request.cookies.get(plain_name, "")
    return request.cookies.get(secure_name) or plain


def keep(answer: Response, signed_in: SignedIn, request: Request, public_url: str | None) -> Response:
    """Have the browser keep the token of a session, out of reach of scripts and of other sites' forms."""
    secure = is_secure(request, public_url)
    kept = [(SECURE_NAME if secure else PLAIN_NAME, _SECONDS)]
    if signed_in.session.second_factor != "awaited":
        kept.append((SECURE_KNOWN if secure else PLAIN_KNOWN, _KNOWN_SECONDS))
    for name, seconds in kept:
        answer.set_cookie(
            name, signed_in.token, max_age=seconds, path="/", secure=secure, httponly=True, samesite="lax"
        )
    return answer


def forget(answer: Response, request: Request, public_url: str | None) -> Response:
    """Have the browser forget the token of its session; it stays known."""
    secure = is_secure(request, public_url)
    name = SECURE_NAME if secure else PLAIN_NAME
    answer.delete_cookie(name, path="/", secure=secure, httponly=True, samesite="lax")
    return answer
