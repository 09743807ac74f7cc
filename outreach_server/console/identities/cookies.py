"""The cookie of a session."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from outreach.models import SignedIn

SECURE_NAME: Final = "__Host-outreach"
"""Behind TLS: no other host of the domain, and no page without TLS, can set it."""

PLAIN_NAME: Final = "outreach-session"

_SECONDS: Final = 30 * 86_400


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
    plain = "" if is_secure(request, public_url) else request.cookies.get(PLAIN_NAME, "")
    return request.cookies.get(SECURE_NAME) or plain


def keep(answer: Response, signed_in: SignedIn, request: Request, public_url: str | None) -> Response:
    """Have the browser keep the token of a session, out of reach of scripts and of other sites' forms."""
    secure = is_secure(request, public_url)
    answer.set_cookie(
        SECURE_NAME if secure else PLAIN_NAME,
        signed_in.token,
        max_age=_SECONDS,
        path="/",
        secure=secure,
        httponly=True,
        samesite="lax",
    )
    return answer


def forget(answer: Response, request: Request, public_url: str | None) -> Response:
    """Have the browser forget the token."""
    secure = is_secure(request, public_url)
    name = SECURE_NAME if secure else PLAIN_NAME
    answer.delete_cookie(name, path="/", secure=secure, httponly=True, samesite="lax")
    return answer
