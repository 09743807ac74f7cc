"""The thread of one number, and an answer by a single message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from starlette.responses import RedirectResponse, Response

from outreach import Conflict, InvalidRequest, NewMessage
from outreach.errors import RecipientUnsubscribed
from outreach.models import HistoryItem
from outreach.server_support import JoinedReads
from outreach_server.console.access import Right
from outreach_server.console.context import Visit
from outreach_server.console.pages.inbox import next_unanswered
from outreach_server.console.pages.new.steps import key_of
from outreach_server.console.pages.number_history import days_of, entry_of, entry_words
from outreach_server.console.pages.phones import phone_of, phone_url
from outreach_server.console.security.forms import KEY_FIELD
from outreach_server.console.sent_again import as_of_form

SHOWN: Final = 100
_MOST_SENDERS: Final = 15
"""The newest messages that the page looks up who has sent them."""

_NO_MESSAGE: Final = "none"
_EMPTY: Final = "Write an answer first."
_OPTED_OUT: Final = "The person has opted out meanwhile, so nothing was sent."
_MEANWHILE: Final = (
    "Something was written meanwhile: see the end of the thread. Nothing was sent. Send your answer again if it still "
    "fits."
)


async def show(visit: Visit) -> Response:
    """Show the thread."""
    return await _page(visit, phone_of(visit))


async def act(visit: Visit) -> Response:
    """Send an answer from the number that the person wrote to, and open the next reply that waits for one.

    The form's key is the newest message that it shows: one answer is sent to it, also if two people answer at once.
    Where the person has not written, it is no answer, and takes the right to start.
    """
    phone = phone_of(visit)
    name, key = visit.chosen("answer"), key_of(visit)
    items = await _items(visit, phone)
    if _ours(items) is None:
        visit.require(Right.START)
    # Browsers send a line break as two characters, which would count in the message.
    body = visit.form.get("body", "").replace("\r\n", "\n").strip()
    if not body:
        return await _page(visit, phone, items, status=422, problems={"body": _EMPTY})
    if visit.form[KEY_FIELD] != _newest(items) and not _is_sent(items, body, visit.form[KEY_FIELD]):
        return await _page(visit, phone, items, status=409, problems={"": _MEANWHILE})
    try:
        new = NewMessage(to=phone, body=body, from_number=_ours(items))
        await visit.engine.messages.send(visit.place.id, new, idempotency_key=f"{key}:{phone}", actor=visit.actor)
    except InvalidRequest as refused:
        if any(one.path == "idempotency_key" for one in refused.details):
            return await _page(visit, phone, status=409, problems={"": _MEANWHILE})
        error = as_of_form(refused)
        problems = {one.path if one.path == "body" else "": f"The answer {one.message}." for one in error.details}
        return await _page(visit, phone, items, status=422, problems=problems or {"": error.message})
    except RecipientUnsubscribed:
        return await _page(visit, phone, items, status=409, problems={"": _OPTED_OUT})
    except Conflict as error:
        return await _page(visit, phone, items, status=409, problems={"": error.message})
    onward = await next_unanswered(visit)
    if onward:
        return RedirectResponse(f"{onward}?done={name}", 303)
    return visit.go("inbox", said=name)


async def _items(visit: Visit, phone: str) -> Sequence[HistoryItem]:
    return (await visit.engine.contacts.list_history(visit.place.id, phone, limit=SHOWN)).items


async def _colleagues(visit: Visit) -> Mapping[str, str]:
    """Return the names of the people of the workspace, by how the audit trail names them."""
    if not visit.console.has_login:
        return {}
    members = (await visit.engine.users.list_members(visit.place.id, limit=SHOWN)).items
    return {f"user:{one.user.id}": one.user.name for one in members}


async def _senders(visit: Visit, items: Sequence[HistoryItem], named: Mapping[str, str]) -> Mapping[str, str]:
    """Return who has sent the newest messages that are of no campaign, by the message's id, where it is known."""
    single = [one.message_id for one in items if one.direction == "outbound" and one.message_id is not None]
    if not single:
        return {}
    newest = single[:_MOST_SENDERS]
    # Each message is sent once, and has one such entry.
    found = await visit.engine.audit.list(visit.place.id, action="message.send", subject=newest, limit=len(newest))
    entries = found.items
    names = {one.actor: named.get(one.actor) or one.actor.removeprefix("host:") for one in entries}
    return {one.subject: names[one.actor] for one in entries if not names[one.actor].startswith("user:")}


def _is_sent(items: Sequence[HistoryItem], body: str, key: str) -> bool:
    """Return whether the newest item is this very answer: then the form was sent twice, and its key sends nothing."""
    return bool(items) and (items[0].direction, items[0].text, _newest(items[1:])) == ("outbound", body, key)


def _newest(items: Sequence[HistoryItem]) -> str:
    """Return what identifies the newest message of a thread."""
    newest = next((one for one in items if one.kind == "message"), None)
    return _NO_MESSAGE if newest is None else f"{newest.message_id or newest.dispatch_id}"


def _ours(items: Sequence[HistoryItem]) -> str | None:
    """Return the number that the person wrote to last; None for the workspace's first."""
    return next((one.own_number for one in items if one.direction == "inbound" and one.kind == "message"), None)


async def _page(
    visit: Visit,
    phone: str,
    items: Sequence[HistoryItem] | None = None,
    *,
    status: int = 200,
    problems: Mapping[str, str] | None = None,
) -> Response:
    async with JoinedReads() as reads:
        registered = reads.start(entry_of(visit, phone))
        named = reads.start(_colleagues(visit))
        history = None if items is not None else reads.start(_items(visit, phone))
    entry = registered.result()
    items = items or (() if history is None else history.result())
    stops = entry is not None and entry.stops("sms")
    path = visit.request.path_params["phone"]
    ours = _ours(items)
    return visit.page(
        "thread",
        title="Thread",
        current="inbox",
        status=status,
        problems=problems or {},
        phone=phone,
        person_url=phone_url(visit, "person", phone),
        page_url=visit.url("thread", phone=path),
        entry="" if entry is None else entry_words(entry),
        held=entry is not None and entry.scope == "held",
        stops=stops,
        days=days_of(visit, reversed(items), await _senders(visit, items, named.result())),
        more=len(items) == SHOWN,
        body=visit.form.get("body", ""),
        ours=ours or "",
        may_write=ours is not None or visit.may(Right.START),
        key=_newest(items),
    )
