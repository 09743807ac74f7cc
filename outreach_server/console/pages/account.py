"""A person's own account: name, time zone, password, second factor, sessions."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from starlette.exceptions import HTTPException
from starlette.responses import Response

from outreach import Conflict, InvalidRequest
from outreach.errors import LoginThrottled, Unauthorized
from outreach.models import Session, User, UserUpdate
from outreach.server_support import JoinedReads
from outreach_server.console import words as console_words
from outreach_server.console.context import Visit
from outreach_server.console.drawing.qr import qr_code
from outreach_server.console.identities import cookies, words
from outreach_server.console.identities.proof import PROOF_FIELD, needs_proof, problem_of_proof
from outreach_server.console.pages.look import choices

_MOST_SESSIONS = 50


@attrs.frozen(kw_only=True)
class SessionView:
    """A login in a table."""

    id: str
    begun: str
    seen: str
    address: str
    agent: str
    here: bool


async def show(visit: Visit) -> Response:
    """Show the account."""
    return await _account(visit)


async def act(visit: Visit) -> Response:
    """Do what a form of the page says."""
    action = visit.form.get("action", "")
    try:
        match action:
            case "profile":
                await _save_profile(visit)
            case "password":
                return await _change_password(visit)
            case "end":
                await visit.engine.sessions.end(visit.user.id, visit.form.get("session", ""), actor=visit.actor)
            case "end-others":
                await visit.engine.sessions.end_all(visit.user.id, but=visit.user.session, actor=visit.actor)
            case _:
                raise HTTPException(400, console_words.NO_SUCH_ACTION)
    except InvalidRequest as error:
        return await _account(visit, status=422, problems=words.problems_of(error))
    except Unauthorized as error:
        return await _account(visit, status=422, problems={"current": error.message})
    except LoginThrottled as error:
        return await _account(visit, status=429, problems={"current": error.message})
    return visit.go("account", said=action)


async def _save_profile(visit: Visit) -> None:
    form = visit.form
    change = UserUpdate(
        name=form.get("name", "").strip(),
        time_zone=form.get("time_zone", "").strip() or None,
        phone=form.get("phone", "").strip() or None,
    )
    await visit.engine.users.update(visit.user.id, change, actor=visit.actor)


async def _change_password(visit: Visit) -> Response:
    made = await visit.engine.sessions.change_password(
        _token(visit), current=visit.form.get("current", ""), password=visit.form.get("password", "")
    )
    return cookies.keep(visit.go("account", said="password"), made, visit.request, visit.console.public_url)


async def _account(visit: Visit, *, status: int = 200, problems: dict[str, str] | None = None) -> Response:
    users, user_id = visit.engine.users, visit.user.id
    async with JoinedReads() as reads:
        kept = reads.start(users.get(user_id))
        codes = reads.start(users.count_recovery_codes(user_id))
        page = reads.start(visit.engine.sessions.list(user_id, limit=_MOST_SESSIONS))
    user = kept.result()
    return visit.page(
        "account",
        title="Account",
        status=status,
        problems=problems or {},
        person=user,
        kept=_kept(visit, user),
        codes_left=codes.result(),
        sessions=_views(visit, page.result().items),
        zone=visit.clocks().name,
        **choices(visit),
    )


def _kept(visit: Visit, user: User) -> dict[str, str]:
    stored = {"name": user.name, "time_zone": user.time_zone or "", "phone": user.phone or ""}
    return {name: visit.form.get(name, value) for name, value in stored.items()}


def _views(visit: Visit, sessions: Sequence[Session]) -> Sequence[SessionView]:
    def at(session: Session) -> tuple[str, str]:
        moments = (session.created_at, session.seen_at)
        begun, seen = (visit.clocks().moment(one, visit.now) for one in moments)
        return begun, seen

    return [
        SessionView(
            id=one.id,
            begun=at(one)[0],
            seen=at(one)[1],
            address=one.address,
            agent=one.agent,
            here=one.id == visit.user.session,
        )
        for one in sessions
        if one.is_open(visit.now) and one.second_factor != "awaited"
    ]


async def show_second_factor(visit: Visit) -> Response:
    """Show whether there is a second factor, and how to change that."""
    return await _second_factor(visit)


async def act_second_factor(visit: Visit) -> Response:
    """Begin, confirm or remove a second factor, or make new codes: after the password was given lately."""
    form, users, user_id = visit.form, visit.engine.users, visit.user.id
    try:
        if wrong := await problem_of_proof(visit):
            return await _second_factor(visit, status=422, problems={PROOF_FIELD: wrong})
        match form.get("action", ""):
            case "begin":
                made = await users.begin_second_factor(user_id, issuer=visit.console.title)
                qr = qr_code(made.url, label="QR code of the second factor")
                return await _second_factor(visit, secret=made.secret, qr=qr)
            case "confirm":
                codes = await users.confirm_second_factor(
                    user_id, form.get("code", ""), session_id=visit.user.session, actor=visit.actor
                )
                return await _renewed(visit, codes)
            case "codes":
                codes = await users.renew_recovery_codes(user_id, actor=visit.actor)
                return await _second_factor(visit, codes=codes)
            case "remove":
                await users.remove_second_factor(user_id, actor=visit.actor)
                return visit.go("account-two-factor", said="remove-factor")
    except InvalidRequest as error:
        return await _second_factor(visit, status=422, problems=words.problems_of(error))
    except Conflict as error:
        return await _second_factor(visit, status=409, problems={"code": error.message})
    raise HTTPException(400, console_words.NO_SUCH_ACTION)


async def _renewed(visit: Visit, codes: Sequence[str]) -> Response:
    """Show the codes, and give the session, which may do more now, another token."""
    made = await visit.engine.sessions.renew(_token(visit))
    page = await _second_factor(visit, codes=codes)
    return cookies.keep(page, made, visit.request, visit.console.public_url)


async def _second_factor(
    visit: Visit,
    *,
    status: int = 200,
    problems: dict[str, str] | None = None,
    secret: str = "",
    qr: object = "",
    codes: Sequence[str] = (),
) -> Response:
    user = await visit.engine.users.get(visit.user.id)
    return visit.page(
        "account_two_factor",
        title="Second factor",
        status=status,
        problems=problems or {},
        person=user,
        secret=" ".join(secret[start : start + 4] for start in range(0, len(secret), 4)),
        qr=qr,
        codes=codes,
        codes_left=await visit.engine.users.count_recovery_codes(user.id),
        # A form that has come so far was proved.
        verified=not needs_proof(visit) or (visit.request.method == "POST" and PROOF_FIELD not in (problems or {})),
        confirms=bool(secret) or visit.form.get("action") == "confirm",
    )


def _token(visit: Visit) -> str:
    return cookies.token_in(visit.request, visit.console.public_url)
