"""The replies of people: those that wait for an answer, possible opt-outs, and all."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import attrs
from starlette.responses import Response

from outreach import Conflict, InboundMessage, NotFound, Unsubscribe
from outreach_server.console import words
from outreach_server.console.context import Visit, not_found
from outreach_server.console.pages.campaign_views import MomentView, moment_of, with_times
from outreach_server.console.pages.new.steps import key_of
from outreach_server.console.pages.phones import phone_url
from outreach_server.console.pages.views import Tab

PAGE_SIZE: Final = 50
FOLDERS: Final = {"unanswered": "Waiting for an answer", "held": "Needs a decision", "all": "All"}
_KEYWORDS: Final = {"stop": "STOP: opted out", "start": "START: opted in", "help": "HELP: was answered"}
_DECIDED: Final = "This number was decided meanwhile, or a further message came, so nothing was changed."


@attrs.frozen(kw_only=True)
class ReplyView:
    """The newest message of a number on a page of a folder.

    Attributes:
        url: The thread of the number; empty if it is none.
        more: How many older messages of the number are on the page.
        note: The engine's reading of it.
        media: How many pictures or other files it has.
    """

    phone: str
    url: str
    text: str
    at: MomentView
    more: int
    note: str
    media: int


@attrs.frozen(kw_only=True)
class HeldView:
    """A number whose message may be an opt-out.

    Attributes:
        evidence: Its messages, the latest first.
        seen: The time of the entry, which a decision names.
    """

    phone: str
    url: str
    evidence: str
    seen: str
    at: MomentView
    keys: tuple[str, str]


async def show(visit: Visit) -> Response:
    """Show a page of a folder."""
    return await _page(visit)


async def act(visit: Visit) -> Response:
    """Decide what the message of a held number meant."""
    name, key = visit.chosen("opted-out", "not-opted-out"), key_of(visit)
    try:
        await visit.engine.unsubscribes.resolve(
            visit.place.id,
            visit.form.get("phone", ""),
            opted_out=name == "opted-out",
            seen=datetime.fromisoformat(visit.form.get("seen", "")),
            idempotency_key=key,
            actor=visit.actor,
        )
    except (Conflict, NotFound, ValueError):
        # A form of an earlier version names no time.
        return await _page(visit, status=409, problem=_DECIDED)
    return visit.go("inbox", said=name, query={"folder": "held"})


async def next_unanswered(visit: Visit) -> str:
    """Return the address of the thread that waits for an answer, the newest; empty if nobody waits."""
    page = await visit.engine.messages.list_inbound(visit.place.id, unanswered=True, limit=PAGE_SIZE)
    return next((url for one in page.items if (url := phone_url(visit, "thread", one.from_number))), "")


async def _page(visit: Visit, *, status: int = 200, problem: str = "") -> Response:
    query, place = visit.request.query_params, visit.place.id
    folder, after = query.get("folder", "unanswered"), query.get("after") or None
    if folder not in FOLDERS:
        raise not_found()
    held: Sequence[Unsubscribe] = ()
    replies: Sequence[InboundMessage] = ()
    if folder == "held":
        entries = await visit.engine.unsubscribes.list_held(place, after=after, limit=PAGE_SIZE)
        held, onward = entries.items, entries.next
    else:
        page = await visit.engine.messages.list_inbound(
            place, unanswered=folder == "unanswered", after=after, limit=PAGE_SIZE
        )
        replies, onward = page.items, page.next
    waiting = visit.waiting.get("inbox", 0)
    return visit.page(
        "inbox",
        title="Replies",
        current="inbox",
        status=status,
        problem=problem,
        folder=folder,
        folders=[
            Tab(
                word=word,
                url=visit.url("inbox", {"folder": name}),
                current=name == folder,
                count=words.number(waiting) if name == "held" and waiting else "",
            )
            for name, word in FOLDERS.items()
        ],
        replies=_replies(visit, replies),
        held=[_held(visit, one) for one in held],
        first_url=visit.url("inbox", {"folder": folder}) if after else "",
        next_url=visit.url("inbox", {"folder": folder, "after": onward}) if onward else "",
        zone=visit.clocks().name,
    )


def _replies(visit: Visit, found: Sequence[InboundMessage]) -> Sequence[ReplyView]:
    """Return the newest message of each number, the newest first."""
    by_number: dict[str, list[InboundMessage]] = {}
    for one in found:
        by_number.setdefault(one.from_number, []).append(one)
    return [
        ReplyView(
            phone=phone,
            url=phone_url(visit, "thread", phone),
            text=newest.body,
            at=moment_of(newest.received_at, visit.now, visit.clocks()),
            more=len(older),
            note=_KEYWORDS.get(newest.keyword or "", "may be an opt-out" if newest.unclear else ""),
            media=len(newest.media),
        )
        for phone, (newest, *older) in by_number.items()
    ]


def _held(visit: Visit, entry: Unsubscribe) -> HeldView:
    return HeldView(
        phone=entry.phone,
        url=phone_url(visit, "thread", entry.phone),
        evidence=with_times(visit, entry.evidence or ""),
        seen=entry.created_at.isoformat(),
        at=moment_of(entry.created_at, visit.now, visit.clocks()),
        keys=(visit.new_key(), visit.new_key()),
    )
