"""Made-up events of every class that webhooks deliver."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import attrs
from hypothesis import strategies as st

from outreach.models.events import Event
from outreach.models.states import CallStatus, CampaignStatus, MessageStatus, RecipientStatus, TrailRule
from outreach.serialization.webhook_bodies import DELIVERED, EventContent

TEXTS: Final = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
"""What can be stored."""
_LONG: Final = st.builds(lambda text, times: text * times, TEXTS, st.integers(1, 3_000))
_IDS: Final = st.uuids(version=4).map(str)
_PHONES: Final = st.one_of(st.from_regex(r"\+[1-9][0-9]{6,14}", fullmatch=True), st.just(""))
_TIMES: Final = st.datetimes(datetime(2020, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
_METADATA: Final = st.dictionaries(TEXTS, st.one_of(TEXTS, st.integers(-(2**53), 2**53), st.none()), max_size=4)

_OF: Final[dict[str, st.SearchStrategy[Any]]] = {
    "number": st.integers(1, 2**53),
    "first": st.integers(1, 2**53),
    "last": st.integers(1, 2**53),
    "at": _TIMES,
    "planned_at": _TIMES,
    "position": st.integers(0, 10**6),
    "external_id": TEXTS,
    "metadata": _METADATA,
    "reason": TEXTS,
    "outcome": TEXTS,
    "actor": TEXTS,
    "phone": _PHONES,
    "from_number": _PHONES,
    "source": TEXTS,
    "scope": st.sampled_from(["all", "sms", "call"]),
    "unclear": st.booleans(),
    "rule": st.sampled_from(TrailRule),
    "state": st.sampled_from(["blocked", "skipped", "missed"]),
}
_STATUSES: Final = {
    "CampaignStatusChanged": CampaignStatus,
    "RecipientEnded": RecipientStatus,
    "CallEnded": CallStatus,
    "MessageStatusChanged": MessageStatus,
}
_CHANGES: Final = st.sampled_from(
    ["created", "draft", "ready", "scheduled", "started", "paused", "resumed", "completed", "cancelled", "expired"]
)

CONTENTS: Final = st.builds(EventContent, phone=st.one_of(st.none(), _PHONES), text=st.one_of(st.none(), TEXTS, _LONG))


def events_of(kind: type[Event]) -> st.SearchStrategy[Event]:
    """Return a strategy that makes events of a class, with None wherever the class allows it."""
    return st.builds(kind, **{field.name: _values(kind, field) for field in attrs.fields(kind)})


def _values(kind: type[Event], field: attrs.Attribute[Any]) -> st.SearchStrategy[Any]:
    if field.name == "change":
        return _CHANGES
    if field.name == "status":
        return st.sampled_from(list(_STATUSES[kind.__name__]))
    values = _OF.get(field.name, _IDS)
    return st.one_of(st.none(), values) if "None" in str(field.type) else values


EVENTS: Final = st.one_of([events_of(kind) for kind in DELIVERED])
"""Events of all classes."""
