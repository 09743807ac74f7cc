"""Identification of a request's person by the session cookie, looked up in the database each time."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from starlette.requests import Request

from outreach import Outreach
from outreach.models import User
from outreach.server_support import public_url_of
from outreach_server.config import SECOND_FACTOR_FOR
from outreach_server.console.access import ConsoleUser, Identify
from outreach_server.console.identities.cookies import token_in


def identify_by_session(get_engine: Callable[[], Outreach], require_second_factor: str | None = None) -> Identify:
    """Return what identifies people by their sessions.

    Args:
        get_engine: Returns the open engine.
        require_second_factor: The least role whose people need a second factor, `operator` for operators alone; None
            for nobody.
    """
    least = None if require_second_factor is None else SECOND_FACTOR_FOR.index(require_second_factor)

    def needs_second_factor(user: User, roles: Iterable[str]) -> bool:
        ranks = [SECOND_FACTOR_FOR.index(role) for role in (*roles, *(["operator"] if user.operator else []))]
        return least is not None and max(ranks, default=-1) >= least

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
            verified=found.session.is_verified(engine.now()),
            incomplete=not user.has_second_factor and needs_second_factor(user, found.roles.values()),
        )

    return identify
