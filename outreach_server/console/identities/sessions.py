"""Who sends a request, by the cookie of a session; looked up in the database each time."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request

from outreach import Outreach
from outreach.models import User
from outreach.server_support import public_url_of
from outreach_server.console.access import ConsoleUser, Identify
from outreach_server.console.identities.cookies import token_in


def identify_by_session(get_engine: Callable[[], Outreach]) -> Identify:
    """Return what identifies people by their sessions.

    Args:
        get_engine: Returns the open engine.
    """

    async def identify(request: Request) -> ConsoleUser | None:
        engine = get_engine()
        token = token_in(request, public_url_of(engine))
        found = await engine.sessions.find(token) if token else None
        if found is None:
            return None
        user: User = found.user
        return ConsoleUser(
            id=user.id,
            name=user.name,
            workspaces=found.roles,
            operator=user.operator,
            time_zone=user.time_zone or "",
            session=found.session.id,
        )

    return identify
