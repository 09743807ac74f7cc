"""What a person chooses for this browser: the theme, and whether single keys do something."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.responses import Response

from outreach_server.console import words
from outreach_server.console.context import Visit
from outreach_server.console.look import THEMES, Look, keep


async def show(visit: Visit) -> Response:
    """Show what is chosen."""
    return visit.page("look", title="Your settings", themes=THEMES)


async def act(visit: Visit) -> Response:
    """Keep what was chosen."""
    theme = visit.form.get("theme", "")
    if visit.form.get("action") != "look" or theme not in THEMES:
        raise HTTPException(400, words.NO_SUCH_ACTION)
    look = Look(theme=theme, keys=visit.form.get("keys") == "yes")
    answer = visit.go("account" if visit.console.has_login else "look")
    return keep(answer, look, visit.request, path=visit.url("home"), public_url=visit.console.public_url)
