"""Everything with one number as steps in words, with the messages both ways at their place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import attrs

from outreach import NotFound, Unsubscribe
from outreach.models import HistoryItem
from outreach_server.console import words
from outreach_server.console.context import Visit
from outreach_server.console.pages.campaign_views import MomentView, moment_of
from outreach_server.console.words import Tone

SOURCES: Final[Mapping[str, str]] = {
    "operator": "entered by a person",
    "keyword": "the person wrote STOP",
    "carrier": "the carrier knows of an opt-out",
    "call": "asked for it in a call",
    "import": "from an imported list",
    "unclear": "a message that may be an opt-out",
}
SCOPES: Final[Mapping[str, str]] = {
    "all": "messages and calls",
    "sms": "messages",
    "call": "calls",
    "held": "campaigns, until somebody decides",
}
"""The scope of an entry of the register, in words."""

_GOOD: Final = frozenset({"accepted", "sent", "delivered", "completed", "positive"})
_BAD: Final = frozenset({"failed", "refused", "canceled", "busy", "no-answer"})


@attrs.frozen(kw_only=True)
class ItemView:
    """Something with the number.

    Attributes:
        why: How it stands, and why.
        sent: The text of a message to the number; empty without one.
        received: The text of a message from it.
        url: The page of the contact or call; empty without one.
        link: The words of that link.
    """

    at: MomentView
    icon: str
    tone: Tone
    text: str
    why: str
    sent: str = ""
    received: str = ""
    url: str = ""
    link: str = ""


@attrs.frozen(kw_only=True)
class DayView:
    """The items of a day."""

    day: str
    items: Sequence[ItemView]


def days_of(
    visit: Visit, found: Iterable[HistoryItem], senders: Mapping[str, str] = MappingProxyType({})
) -> Sequence[DayView]:
    """Return items by day, in the order in which they are given.

    Args:
        visit: The request.
        found: The items.
        senders: The names of the people who have sent messages, by the message's id.
    """
    days: dict[str, list[ItemView]] = {}
    for one in found:
        days.setdefault(visit.clocks().weekday(one.at), []).append(_item(visit, one, senders))
    return [DayView(day=day, items=items) for day, items in days.items()]


async def entry_of(visit: Visit, phone: str) -> Unsubscribe | None:
    """Return a number's entry on the register, if there is one."""
    try:
        return await visit.engine.unsubscribes.get(visit.place.id, phone)
    except NotFound:
        return None


def entry_words(entry: Unsubscribe) -> str:
    """Return the scope and the source of an entry of the register, in words."""
    return f"It stops {SCOPES[entry.scope]}: {SOURCES.get(entry.source, entry.source)}."


def _item(visit: Visit, one: HistoryItem, senders: Mapping[str, str]) -> ItemView:
    status, reason = _said(one.status), _said(one.reason)
    text, icon, url, link = "", "circle-alert", "", ""
    match one.kind:
        case "campaign":
            text, icon = f"In the campaign {one.campaign_name or ''}", "users"
            status = words.CONTACT_STATES.get(one.status or "", (status, "", ""))[0].lower()
        case "message":
            theirs = one.direction == "inbound"
            text, icon = ("Wrote", "message-square") if theirs else ("Got a message", "send")
            if one.campaign_name:
                text = f"{text} of the campaign {one.campaign_name}"
            if sender := senders.get(one.message_id or ""):
                text = f"{text} from {sender}"
        case "call":
            text, icon = ("Called us" if one.direction == "inbound" else "Was called"), "phone"
            if one.campaign_name:
                text = f"{text} by the campaign {one.campaign_name}"
            status = words.CALL_STATES.get(one.status or "", status).lower()
            reason = words.OUTCOMES.get(one.reason or "", (reason, "", ""))[0].lower()
        case "opted_out":
            text, icon = "Came onto the register", "shield-off"
            status = f"stops {SCOPES.get(one.status or '', status)}"
            reason = SOURCES.get(one.reason or "", reason)
        case "opted_in":
            text, icon, status = "Was taken off the register", "check", ""
            reason = SOURCES.get(one.reason or "", reason)
    if one.campaign_id is not None and one.position is not None:
        url, link = visit.url("contact", campaign=one.campaign_id, position=one.position), "Why"
    if one.call_id is not None:
        url, link = visit.url("call", call=one.call_id), "Open the call"
    is_text = one.kind == "message"
    gone = "its text was erased" if is_text and one.text is None else ""
    return ItemView(
        at=moment_of(one.at, visit.now, visit.clocks(), seconds=True),
        icon=icon,
        tone=_tone(one),
        text=words.visible(text),
        why=words.visible(" · ".join(part for part in (status, reason, gone) if part)),
        sent=(one.text or "") if is_text and one.direction != "inbound" else "",
        received=(one.text or "") if is_text and one.direction == "inbound" else "",
        url=url,
        link=link,
    )


def _said(text: str | None) -> str:
    return (text or "").replace("_", " ")


def _tone(one: HistoryItem) -> Tone:
    if one.kind == "opted_out":
        return "bad"
    if one.status in _BAD:
        return "bad"
    return "good" if one.status in _GOOD or one.kind == "opted_in" else "plain"
