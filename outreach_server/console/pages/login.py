"""Login, second factor, logout."""

from __future__ import annotations

from starlette.responses import Response

from outreach.errors import LoginThrottled, Unauthorized
from outreach_server.console.context import Visit
from outreach_server.console.identities import cookies, words
from outreach_server.console.identities.public_pages import PublicVisit
from outreach_server.console.identities.setting_up import needs_setup


async def show(visit: PublicVisit) -> Response:
    """Show the login; somebody who is signed in goes on, and who owes a code gives it."""
    onward = visit.request.query_params.get("next", "")
    if visit.token and visit.request.query_params.get("again") != "yes":
        if await visit.engine.sessions.find(visit.token) is not None:
            return visit.go("home")
        if await visit.engine.sessions.find(visit.token, awaited=True) is not None:
            return visit.go("two-factor", {"next": onward})
    return await _login(visit, onward=onward)


async def act(visit: PublicVisit) -> Response:
    """Sign in: always under a new token; a session that the browser had ends."""
    form = visit.form
    onward = form.get("next", "")
    try:
        made = await visit.engine.sessions.sign_in(
            form.get("email", ""),
            form.get("password", ""),
            address=visit.address,
            agent=visit.agent,
            known_by=visit.known_by,
        )
    except Unauthorized as error:
        return await _login(visit, onward=onward, status=422, problem=error.message)
    except LoginThrottled as error:
        return _waiting(error, await _login(visit, onward=onward, status=429, problem=_wait(error)))
    await _end(visit)
    return visit.enter(made, onward)


async def _login(visit: PublicVisit, *, onward: str, status: int = 200, problem: str = "") -> Response:
    return visit.page(
        "login",
        title="Sign in",
        status=status,
        problem=problem,
        email=visit.form.get("email", ""),
        onward=onward,
        setup_url=visit.url("setup") if await needs_setup(visit.engine) else "",
    )


async def show_code(visit: PublicVisit) -> Response:
    """Ask for the code of a login that needs one."""
    onward = visit.request.query_params.get("next", "")
    if await visit.engine.sessions.find(visit.token, awaited=True) is None:
        return visit.go("login", {"next": onward})
    return _code(visit, onward)


async def act_code(visit: PublicVisit) -> Response:
    """Complete the login, under another token."""
    onward = visit.form.get("next", "")
    if await visit.engine.sessions.find(visit.token, awaited=True) is None:
        return visit.go("login", {"next": onward})
    try:
        made = await visit.engine.sessions.confirm(visit.token, visit.form.get("code", ""), known_by=visit.known_by)
    except Unauthorized as error:
        return _code(visit, onward, status=422, problem=error.message)
    except LoginThrottled as error:
        return _waiting(error, _code(visit, onward, status=429, problem=_wait(error)))
    return visit.enter(made, onward)


def _code(visit: PublicVisit, onward: str, *, status: int = 200, problem: str = "") -> Response:
    return visit.page("two_factor", title="Code", status=status, problem=problem, onward=onward)


async def show_logout(visit: Visit) -> Response:
    """Ask whether to sign out: a link alone changes nothing."""
    return visit.page("logout", title="Sign out")


async def act_logout(visit: Visit) -> Response:
    """End the session."""
    await visit.engine.sessions.end(visit.user.id, visit.user.session, actor=visit.actor)
    return cookies.forget(visit.go("login"), visit.request, visit.console.public_url)


async def _end(visit: PublicVisit) -> None:
    """End the session that a browser had before a login."""
    for awaited in (False, True):
        before = await visit.engine.sessions.find(visit.token, awaited=awaited) if visit.token else None
        if before is not None:
            await visit.engine.sessions.end(before.user.id, before.session.id, actor=f"user:{before.user.id}")


def _wait(error: LoginThrottled) -> str:
    return words.WAIT.format(seconds=error.retry_after_seconds)


def _waiting(error: LoginThrottled, answer: Response) -> Response:
    answer.headers["Retry-After"] = str(error.retry_after_seconds)
    return answer
