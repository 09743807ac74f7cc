"""Login, second factor, logout."""

from __future__ import annotations

from starlette.responses import Response

from outreach.errors import LoginThrottled, Unauthorized
from outreach_server.console.context import Visit
from outreach_server.console.identities import cookies, words
from outreach_server.console.identities.guests import Guest
from outreach_server.console.identities.setting_up import needs_setup


async def show(guest: Guest) -> Response:
    """Show the login; somebody who is signed in goes on, and who owes a code gives it."""
    onward = guest.request.query_params.get("next", "")
    if guest.token and guest.request.query_params.get("again") != "yes":
        if await guest.engine.sessions.find(guest.token) is not None:
            return guest.go("home")
        if await guest.engine.sessions.find(guest.token, awaited=True) is not None:
            return guest.go("two-factor", {"next": onward})
    return await _login(guest, onward=onward)


async def act(guest: Guest) -> Response:
    """Sign in: always under a new token; a session that the browser had ends."""
    form = guest.form
    onward = form.get("next", "")
    try:
        made = await guest.engine.sessions.sign_in(
            form.get("email", ""),
            form.get("password", ""),
            address=guest.address,
            agent=guest.agent,
            known_by=guest.known_by,
        )
    except Unauthorized as error:
        return await _login(guest, onward=onward, status=422, problem=error.message)
    except LoginThrottled as error:
        return _waiting(error, await _login(guest, onward=onward, status=429, problem=_wait(error)))
    await _end(guest)
    return guest.enter(made, onward)


async def _login(guest: Guest, *, onward: str, status: int = 200, problem: str = "") -> Response:
    return guest.page(
        "login",
        title="Sign in",
        status=status,
        problem=problem,
        email=guest.form.get("email", ""),
        onward=onward,
        setup_url=guest.url("setup") if await needs_setup(guest.engine) else "",
    )


async def show_code(guest: Guest) -> Response:
    """Ask for the code of a login that needs one."""
    onward = guest.request.query_params.get("next", "")
    if await guest.engine.sessions.find(guest.token, awaited=True) is None:
        return guest.go("login", {"next": onward})
    return _code(guest, onward)


async def act_code(guest: Guest) -> Response:
    """Complete the login, under another token."""
    onward = guest.form.get("next", "")
    if await guest.engine.sessions.find(guest.token, awaited=True) is None:
        return guest.go("login", {"next": onward})
    try:
        made = await guest.engine.sessions.confirm(guest.token, guest.form.get("code", ""), known_by=guest.known_by)
    except Unauthorized as error:
        return _code(guest, onward, status=422, problem=error.message)
    except LoginThrottled as error:
        return _waiting(error, _code(guest, onward, status=429, problem=_wait(error)))
    return guest.enter(made, onward)


def _code(guest: Guest, onward: str, *, status: int = 200, problem: str = "") -> Response:
    return guest.page("two_factor", title="Code", status=status, problem=problem, onward=onward)


async def show_logout(visit: Visit) -> Response:
    """Ask whether to sign out: a link alone changes nothing."""
    return visit.page("logout", title="Sign out")


async def act_logout(visit: Visit) -> Response:
    """End the session."""
    await visit.engine.sessions.end(visit.user.id, visit.user.session, actor=visit.actor)
    return cookies.forget(visit.go("login"), visit.request, visit.console.public_url)


async def _end(guest: Guest) -> None:
    """End the session that a browser had before a login."""
    for awaited in (False, True):
        before = await guest.engine.sessions.find(guest.token, awaited=awaited) if guest.token else None
        if before is not None:
            await guest.engine.sessions.end(before.user.id, before.session.id, actor=f"user:{before.user.id}")


def _wait(error: LoginThrottled) -> str:
    return words.WAIT.format(seconds=error.retry_after_seconds)


def _waiting(error: LoginThrottled, answer: Response) -> Response:
    answer.headers["Retry-After"] = str(error.retry_after_seconds)
    return answer
