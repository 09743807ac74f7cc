"""The look of the pages for a person: theme, single keys, dates. A cookie keeps it, so the first paint is right."""

from __future__ import annotations

from typing import Final

import attrs
from starlette.requests import Request
from starlette.responses import Response

from outreach_server.console.clocks import DateStyle
from outreach_server.console.identities.cookies import is_secure

COOKIE: Final = "outreach-look"

THEMES: Final = {"": "As on this device", "light": "Light", "dark": "Dark"}
"""The words of each theme."""

_NO_KEYS: Final = "no-keys"
_SECONDS: Final = 365 * 86_400


@attrs.frozen(kw_only=True)
class Look:
    """The choices of a person for this browser.

    Attributes:
        theme: One of `THEMES`.
        keys: Whether single keys do something.
        dates: How dates and times are written.
    """

    theme: str = ""
    keys: bool = True
    dates: DateStyle = DateStyle.DAY_FIRST


def look_of(request: Request) -> Look:
    """Return the choices for the browser that sends a request; the defaults where its cookie has none."""
    # An earlier version has kept the theme and the keys alone.
    theme, keys, dates, *_ = *request.cookies.get(COOKIE, "").split("."), "", ""
    return Look(
        theme=theme if theme in THEMES else "",
        keys=keys != _NO_KEYS,
        dates=DateStyle(dates if dates in set(DateStyle) else ""),
    )


def keep(answer: Response, look: Look, request: Request, *, path: str, public_url: str | None) -> Response:
    """Have the browser keep a choice for the pages below a path."""
    answer.set_cookie(
        COOKIE,
        f"{look.theme}.{'' if look.keys else _NO_KEYS}.{look.dates}",
        max_age=_SECONDS,
        path=path,
        secure=is_secure(request, public_url),
        httponly=True,
        samesite="lax",
    )
    return answer
