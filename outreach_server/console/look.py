"""How a person wants the pages: the theme and the single keys, kept in a cookie, so that the first paint is right."""

from __future__ import annotations

from typing import Final

import attrs
from starlette.requests import Request
from starlette.responses import Response

from outreach_server.console.identities.cookies import is_secure

COOKIE: Final = "outreach-look"

THEMES: Final = {"": "As on this device", "light": "Light", "dark": "Dark"}
"""The words of each theme."""

_NO_KEYS: Final = "no-keys"
_SECONDS: Final = 365 * 86_400


@attrs.frozen(kw_only=True)
class Look:
    """What a person has chosen in this browser.

    Attributes:
        theme: One of `THEMES`.
        keys: Whether single keys do something.
    """

    theme: str = ""
    keys: bool = True


def look_of(request: Request) -> Look:
    """Return what was chosen in the browser that sends a request; the default where its cookie says nothing."""
    theme, _, keys = request.cookies.get(COOKIE, "").partition(".")
    return Look(theme=theme if theme in THEMES else "", keys=keys != _NO_KEYS)


def keep(answer: Response, look: Look, request: Request, *, path: str, public_url: str | None) -> Response:
    """Have the browser keep a choice for the pages below a path."""
    answer.set_cookie(
        COOKIE,
        f"{look.theme}.{'' if look.keys else _NO_KEYS}",
        max_age=_SECONDS,
        path=path,
        secure=is_secure(request, public_url),
        httponly=True,
        samesite="lax",
    )
    return answer
