"""The password again, before what is dangerous."""

from __future__ import annotations

from starlette.exceptions import HTTPException

from outreach.errors import LoginThrottled, Unauthorized
from outreach_server.console.context import Visit
from outreach_server.console.identities import words
from outreach_server.console.identities.cookies import token_in

PROOF_FIELD = "current"

_OF_HOST = "Confirm in the application where you signed in who you are, and do this again. Nothing was changed."


def needs_proof(visit: Visit) -> bool:
    """Return whether a form of something dangerous asks for the password."""
    return not visit.user.verified


async def problem_of_proof(visit: Visit) -> str:
    """Check the password that a form has, where one is needed; return what is wrong with it, else an empty text.

    Raises:
        HTTPException: The host of the console has to ask, not the console.
    """
    if not visit.console.has_login:
        if needs_proof(visit):
            raise HTTPException(403, _OF_HOST)
        return ""
    token = token_in(visit.request, visit.console.public_url)
    # Another process may have ended the session since the request came.
    if not needs_proof(visit) and await visit.engine.sessions.find(token) is not None:
        return ""
    given = visit.form.get(PROOF_FIELD)
    if given is None:
        return words.PROOF_ENDED
    if not given:
        return words.REQUIRED
    try:
        await visit.engine.sessions.verify(token, password=given)
    except (Unauthorized, LoginThrottled) as error:
        return error.message
    return ""
