"""Asking a person for the password again before something dangerous."""

from __future__ import annotations

from outreach.errors import LoginThrottled, Unauthorized
from outreach_server.console.context import Visit
from outreach_server.console.identities import cookies, words

PASSWORD_FIELD = "current"  # noqa: S105 - a field's name


async def needs_password(visit: Visit) -> bool:
    """Return whether the password has to be given again: the last time is too long ago.

    Where the host has the accounts there is no password here, and the host decides who is signed in.
    """
    if not visit.console.has_login:
        return False
    found = await visit.engine.sessions.find(_token(visit))
    return found is None or not found.session.is_verified(visit.now)


async def problem_with_password(visit: Visit) -> str:
    """Check the password that the form has, if one is needed; return what is wrong, empty if nothing is."""
    if not await needs_password(visit):
        return ""
    given = visit.form.get(PASSWORD_FIELD, "")
    if not given:
        return words.REQUIRED
    try:
        await visit.engine.sessions.verify(_token(visit), password=given)
    except (Unauthorized, LoginThrottled) as error:
        return error.message
    return ""


def _token(visit: Visit) -> str:
    return cookies.token_in(visit.request, visit.console.public_url)
