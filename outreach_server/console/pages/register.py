"""The register of opt-outs: who must not be contacted, since when and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args

import attrs
from starlette.exceptions import HTTPException
from starlette.responses import Response

from outreach import InvalidRequest, Unsubscribe
from outreach.models import UnsubscribeScope
from outreach.server_support import imports_of
from outreach_server.console import words
from outreach_server.console.access import Right
from outreach_server.console.context import Visit
from outreach_server.console.pages.campaign_views import MomentView, moment_of, with_times
from outreach_server.console.pages.new.steps import Choice, key_of
from outreach_server.console.pages.number_history import SCOPES, SOURCES, entry_of
from outreach_server.console.pages.phones import is_typed, phone_url
from outreach_server.console.security.forms import ACTION_FIELD
from outreach_server.console.sent_again import as_of_form

PAGE_SIZE: Final = 50
_MOST_AT_ONCE: Final = 1000
_NO_NUMBER: Final = "Give at least one number."
_TOO_MANY: Final = "At most 1,000 numbers at a time; a longer list is imported from a file."
_OTHER: Final = "Another number was typed, so it is still on the register."


@attrs.frozen(kw_only=True)
class EntryView:
    """An entry of the register.

    Attributes:
        url: The page of the number; empty for an erased person.
        held: Whether somebody has to decide about it.
        carrier: Whether it comes from a carrier, which keeps an opt-out of its own.
        tried: Whether it was to be taken off, and something is wrong with the form.
        imports: The pages of the imports that have put it there.
    """

    phone: str
    url: str
    stops: str
    source: str
    evidence: str
    at: MomentView
    held: bool
    carrier: bool
    tried: bool
    imports: Sequence[str]
    key: str


async def show(visit: Visit) -> Response:
    """Show a page of the register, or the entry of the number that is looked up."""
    return await _page(visit)


async def act(visit: Visit) -> Response:
    """Add numbers, or take one off whose number was typed."""
    name, key = visit.chosen("opt-out", "take-off"), key_of(visit)
    form, place = visit.form, visit.place.id
    try:
        if name == "take-off":
            phone = form.get("phone", "")
            if not is_typed(form.get("number", ""), phone):
                return await _page(visit, status=422, problems={"": _OTHER})
            reason = form.get("reason", "").strip()
            if not reason:
                return await _page(visit, status=422, problems={"": words.NO_REASON})
            await visit.engine.unsubscribes.remove(place, phone, evidence=reason, actor=visit.actor)
        else:
            numbers = [line.strip() for line in form.get("numbers", "").splitlines() if line.strip()]
            if not 1 <= len(numbers) <= _MOST_AT_ONCE:
                return await _page(visit, status=422, problems={"numbers": _TOO_MANY if numbers else _NO_NUMBER})
            scope: Any = form.get("scope", "all")
            if scope not in get_args(UnsubscribeScope):
                raise HTTPException(400)
            await visit.engine.unsubscribes.add(
                place,
                *numbers,
                scope=scope,
                evidence=form.get("evidence", "").strip() or None,
                idempotency_key=key,
                actor=visit.actor,
            )
    except InvalidRequest as error:
        return await _page(visit, status=422, problems=_problems(error))
    return visit.go("register", said=name)


def _problems(error: InvalidRequest) -> Mapping[str, str]:
    """Return what is wrong with some numbers, by their lines."""
    error = as_of_form(error)
    found: dict[str, str] = {}
    for one in error.details:
        line = one.path.removeprefix("phone_numbers[").rstrip("]")
        if line.isdigit():
            found.setdefault("numbers", f"Line {int(line) + 1}: {one.message.rstrip('.')}. Nothing was added.")
        else:
            found.setdefault(one.path if one.path == "evidence" else "", f"{one.path} {one.message}")
    return found or {"": error.message}


async def _page(visit: Visit, *, status: int = 200, problems: Mapping[str, str] | None = None) -> Response:
    query, form = visit.request.query_params, visit.form
    text, after = query.get("q", "").strip(), query.get("after")
    next_after: str | None = None
    entries: Sequence[Unsubscribe]
    if text:
        found = await entry_of(visit, text)
        entries = [] if found is None else [found]
    else:
        page = await visit.engine.unsubscribes.list(visit.place.id, after=after or None, limit=PAGE_SIZE)
        entries, next_after = page.items, page.next
    return visit.page(
        "register",
        title="Opt-outs",
        current="register",
        status=status,
        problems=problems or {},
        text=text,
        entries=[_view(visit, one) for one in entries],
        export_url=visit.url("register-file") if entries and visit.may(Right.EXPORT) else "",
        numbers=form.get("numbers", text),
        evidence=form.get("evidence", ""),
        scopes=[
            Choice(value=one, word=SCOPES[one].capitalize(), chosen=one == form.get("scope", "all"))
            for one in get_args(UnsubscribeScope)
        ],
        number=form.get("number", ""),
        reason=form.get("reason", ""),
        adding=form.get(ACTION_FIELD) == "opt-out" or bool(text and not entries),
        first_url=visit.url("register") if after else "",
        next_url=visit.url("register", {"after": next_after}) if next_after else "",
        zone=visit.clocks().name,
        key=visit.new_key(),
    )


def _view(visit: Visit, entry: Unsubscribe) -> EntryView:
    return EntryView(
        phone=entry.phone,
        url=phone_url(visit, "person", entry.phone),
        stops=SCOPES[entry.scope].capitalize(),
        source=SOURCES.get(entry.source, entry.source),
        evidence=with_times(visit, entry.evidence or ""),
        at=moment_of(entry.created_at, visit.now, visit.clocks()),
        held=entry.scope == "held",
        carrier=entry.source == "carrier",
        tried=visit.form.get(ACTION_FIELD) == "take-off" and visit.form.get("phone") == entry.phone,
        imports=[visit.url("register-import", {"import": one}) for one in imports_of(entry)],
        key=visit.new_key(),
    )
