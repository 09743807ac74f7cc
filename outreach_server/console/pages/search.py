"""The search over numbers, people's ids, and the names of campaigns, schedules and webhooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
from starlette.responses import Response

from outreach.errors import InvalidRequest
from outreach.models import HistoryItem, Recipient, Schedule, Webhook
from outreach.server_support import JoinedReads, normalise
from outreach_server.console import words
from outreach_server.console.access import Right
from outreach_server.console.context import Visit
from outreach_server.console.pages.campaign_views import CampaignRow, MomentView, StateView, moment_of, row_of
from outreach_server.console.pages.contacts import number_in, state_of_contact
from outreach_server.console.pages.named import schedules_named, webhooks_named
from outreach_server.console.pages.number_history import entry_of
from outreach_server.console.pages.phones import phone_url

MAX_FOUND: Final = 20
"""The most of each kind that are shown."""

_LONGEST: Final = 100
_KINDS: Final = {
    ("message", "outbound"): ("Message to it", "message-square"),
    ("message", "inbound"): ("Message from it", "inbox"),
    ("call", "outbound"): ("Call to it", "phone"),
    ("call", "inbound"): ("Call from it", "phone"),
    ("opted_out", None): ("Opted out", "ban"),
    ("opted_in", None): ("Taken off the register", "check"),
}


@attrs.frozen(kw_only=True)
class FoundView:
    """Something with the number or id that was searched.

    Attributes:
        what: What it is; the campaign's name where it is a place in one.
        url: Its page; empty without one.
        text: The text of a message; empty for everything else.
    """

    what: str
    url: str
    state: StateView
    text: str = ""
    at: MomentView | None = None


@attrs.frozen(kw_only=True)
class OtherView:
    """A schedule or a webhook whose name has what was searched.

    Attributes:
        kind: Which of them it is.
        state: Its state, in words.
    """

    kind: str
    name: str
    url: str
    state: str


async def show(visit: Visit) -> Response:
    """Show what was found."""
    text = visit.request.query_params.get("q", "").strip()[:_LONGEST]
    number = number_in(text)
    found: Sequence[FoundView] = ()
    campaigns: Sequence[CampaignRow] = ()
    others: Sequence[OtherView] = ()
    known_as = normalise(number, visit.place.default_region) if number else None
    phone = known_as or number
    person_url = phone_url(visit, "person", phone) if visit.has("person") else ""
    may_opt_out = bool(person_url) and visit.may(Right.DECIDE)
    if text:
        async with JoinedReads() as reads:
            known = reads.start(_with_number(visit, number) if number else _with_id(visit, text))
            registered = reads.start(entry_of(visit, phone)) if may_opt_out else None
            schedules = reads.start(schedules_named(visit, text)) if visit.has("schedules") else None
            hooks = reads.start(webhooks_named(visit, text)) if visit.has("webhooks") and visit.may(Right.OWN) else None
            named = reads.start(visit.engine.campaigns.list(visit.place.id, search=text, limit=MAX_FOUND))
        found, campaigns = known.result(), [row_of(visit, one) for one in named.result().items]
        others = [
            *(_of_schedule(visit, one) for one in (schedules.result() if schedules else ())[:MAX_FOUND]),
            *(_of_webhook(visit, one) for one in (hooks.result() if hooks else ())[:MAX_FOUND]),
        ]
        entry = None if registered is None else registered.result()
        may_opt_out = may_opt_out and (entry is None or entry.scope == "held")
    return visit.page(
        "search",
        title="Search",
        current="search",
        text=text,
        number=number,
        lacks_country=bool(number) and known_as is None,
        person_url=person_url,
        opt_out_key=visit.new_key() if may_opt_out else "",
        found=found,
        campaigns=campaigns,
        others=others,
        most=MAX_FOUND,
    )


async def _with_number(visit: Visit, number: str) -> Sequence[FoundView]:
    try:
        page = await visit.engine.contacts.list_history(visit.place.id, number, limit=MAX_FOUND)
    except InvalidRequest:
        # Digits that are no number may stand in a campaign's name.
        return ()
    return [_of_history(visit, one) for one in page.items]


async def _with_id(visit: Visit, text: str) -> Sequence[FoundView]:
    page = await visit.engine.campaigns.list_appearances(visit.place.id, text, limit=MAX_FOUND)
    return [_of_recipient(visit, one) for one in page.items]


def _of_history(visit: Visit, item: HistoryItem) -> FoundView:
    url = ""
    if item.campaign_id is not None and item.position is not None:
        url = visit.url("contact", campaign=item.campaign_id, position=item.position)
    at = moment_of(item.at, visit.now, visit.clocks())
    if item.kind == "campaign":
        state = state_of_contact(item.status or "", (item.reason or "").replace("_", " "))
        return FoundView(what=words.visible(item.campaign_name or ""), url=url, state=state, at=at)
    word, icon = _KINDS[item.kind, item.direction]
    if not url and visit.has("person"):
        url = phone_url(visit, "person", item.phone)
    why = " · ".join(part.replace("_", " ") for part in (item.status, item.reason) if part)
    return FoundView(
        what=words.visible(item.campaign_name or "No campaign"),
        url=url,
        state=StateView(word=word, icon=icon, tone="plain", why=words.visible(why)),
        text=item.text or "",
        at=at,
    )


def _of_schedule(visit: Visit, one: Schedule) -> OtherView:
    url = visit.url("schedules-one", id=one.id)
    return OtherView(kind="Schedule", name=one.name, url=url, state=words.sentence_of(one.state))


def _of_webhook(visit: Visit, one: Webhook) -> OtherView:
    url = visit.url("webhooks-one", id=one.id)
    return OtherView(kind="Webhook", name=one.url, url=url, state=words.sentence_of(one.state))


def _of_recipient(visit: Visit, one: Recipient) -> FoundView:
    return FoundView(
        what=words.visible(one.phone_number),
        url=visit.url("contact", campaign=one.campaign_id, position=one.position),
        state=state_of_contact(one.status, (one.reason or "").replace("_", " ")),
    )
