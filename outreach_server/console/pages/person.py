"""Everything about one number: what happened, the register, and erasure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.responses import Response

from outreach import Conflict, InvalidRequest
from outreach.errors import ArchiveUnavailable
from outreach.server_support import JoinedReads
from outreach_server.console import words
from outreach_server.console.access import Right
from outreach_server.console.context import Visit
from outreach_server.console.identities.proof import PROOF_FIELD, needs_proof, problem_of_proof
from outreach_server.console.pages.campaign_views import with_times
from outreach_server.console.pages.new.steps import key_of
from outreach_server.console.pages.number_history import days_of, entry_of, entry_words
from outreach_server.console.pages.phones import is_typed, phone_of, phone_url

PAGE_SIZE: Final = 50
NUMBER_FIELD: Final = "number"
_OTHER: Final = "This is another number."


async def show(visit: Visit) -> Response:
    """Show a page of the history."""
    return await _page(visit, phone_of(visit))


async def act(visit: Visit) -> Response:
    """Do what a form of the page says."""
    phone, place = phone_of(visit), visit.place.id
    name, key = visit.chosen("opt-out", "take-off", "erase"), key_of(visit)
    problems: dict[str, str] = {}
    if name != "opt-out" and not is_typed(visit.form.get(NUMBER_FIELD, ""), phone):
        problems[f"{name}-number"] = _OTHER
    elif name == "take-off" and not visit.form.get("reason", "").strip():
        problems["reason"] = words.NO_REASON
    elif name == "erase" and (wrong := await problem_of_proof(visit)):
        problems[PROOF_FIELD] = wrong
    if problems:
        return await _page(visit, phone, status=422, problems=problems, tried=name)
    try:
        match name:
            case "opt-out":
                await visit.engine.unsubscribes.add(place, phone, idempotency_key=key, actor=visit.actor)
            case "take-off":
                reason = visit.form["reason"].strip()
                await visit.engine.unsubscribes.remove(place, phone, evidence=reason, actor=visit.actor)
            case _:
                await visit.engine.erasure.purge(place, phone, actor=visit.actor)
                return visit.go("overview", said=name)
    except InvalidRequest as error:
        return await _page(visit, phone, status=422, problems={"": error.message})
    except (Conflict, ArchiveUnavailable) as error:
        return await _page(visit, phone, status=409, problems={"": error.message}, tried=name)
    return visit.go("person", said=name, phone=visit.request.path_params["phone"])


async def _page(
    visit: Visit, phone: str, *, status: int = 200, problems: Mapping[str, str] | None = None, tried: str = ""
) -> Response:
    after = visit.request.query_params.get("after")
    async with JoinedReads() as reads:
        read = reads.start(
            visit.engine.contacts.list_history(visit.place.id, phone, after=after or None, limit=PAGE_SIZE)
        )
        registered = reads.start(entry_of(visit, phone))
    history, entry = read.result(), registered.result()
    path = visit.request.path_params["phone"]
    return visit.page(
        "person",
        title="One number",
        status=status,
        problems=problems or {},
        tried=tried,
        typed=visit.form.get(NUMBER_FIELD, ""),
        reason=visit.form.get("reason", ""),
        phone=phone,
        page_url=visit.url("person", phone=path),
        thread_url=phone_url(visit, "thread", phone) if visit.may(Right.REPLY) else "",
        inbox_url=visit.url("inbox", {"folder": "held"}) if visit.may(Right.REPLY) else "",
        entry=None if entry is None else entry_words(entry),
        evidence="" if entry is None else with_times(visit, entry.evidence or ""),
        held=entry is not None and entry.scope == "held",
        may_decide=visit.may(Right.DECIDE),
        may_erase=visit.may(Right.ERASE),
        asks_password=visit.may(Right.ERASE)
        and visit.console.has_login
        and (needs_proof(visit) or PROOF_FIELD in (problems or {})),
        days=days_of(visit, history.items),
        zone=visit.clocks().name,
        first_url=visit.url("person", phone=path) if after else "",
        next_url=visit.url("person", {"after": history.next}, phone=path) if history.next else "",
        keys=[visit.new_key() for _ in range(3)],
    )
