"""The choices of a person for this browser: the theme, how dates are written, whether single keys do something."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import Response

from outreach_server.console import words
from outreach_server.console.clocks import DateStyle
from outreach_server.console.context import Visit
from outreach_server.console.look import THEMES, Look, keep


async def show(visit: Visit) -> Response:
    """Show what is chosen."""
    return visit.page("look", title="Your settings", **choices(visit))


def choices(visit: Visit) -> Mapping[str, Any]:
    """Return the possible choices, in words; a style of dates shows the present moment."""
    now = visit.clocks().local(visit.now)
    return {"themes": THEMES, "dates": {one: one.moment(now) for one in DateStyle}}


async def act(visit: Visit) -> Response:
    """Keep what was chosen."""
    theme, dates = visit.form.get("theme", ""), visit.form.get("dates", "")
    if visit.form.get("action") != "look" or theme not in THEMES or dates not in set(DateStyle):
        raise HTTPException(400, words.NO_SUCH_ACTION)
    look = Look(theme=theme, keys=visit.form.get("keys") == "yes", dates=DateStyle(dates))
    answer = visit.go("account" if visit.console.has_login else "look", said="look")
    return keep(answer, look, visit.request, path=visit.url("home"), public_url=visit.console.public_url)
