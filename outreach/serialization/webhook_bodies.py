"""The bodies of webhook deliveries, their types, and the keys within which they are delivered in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

import attrs
import orjson

from outreach.models.events import (
    CallEnded,
    CampaignChange,
    CampaignStatusChanged,
    ContactHeld,
    Event,
    EventsPurged,
    MessageReceived,
    MessageStatusChanged,
    OptedIn,
    OptedOut,
    RecipientEnded,
    ScheduleRan,
    ScheduleSkipped,
    WebhookDisabled,
    WebhookTest,
)
from outreach.serialization.documents import document_of, to_json

WebhookPayload = Literal["thin", "full"]
"""The content of the bodies: ids, states and reasons; or numbers, texts, metadata and actors too."""

MAX_BODY_BYTES: Final = 20_000

_CAMPAIGN: Final = "campaign."
_HEAD: Final = ("at", "change")
"""Fields that are said outside `data`."""

_FULL_ONLY: Final = frozenset({"phone", "from_number", "text", "metadata", "actor"})


@attrs.frozen(kw_only=True)
class EventContent:
    """The data of an event's message, call or recipient beside the event itself.

    Attributes:
        phone: The person's number; None if it was erased or there is none.
        text: The message's text; None likewise.
    """

    phone: str | None = None
    text: str | None = None


_NO_CONTENT: Final = EventContent()


@attrs.frozen(kw_only=True)
class _Kind:
    """How events of one class are delivered.

    Attributes:
        type: The type; for campaigns its first part.
        key: Returns the key of an event: events of one key are in order.
        content: The fields of `EventContent` that a full body has.
    """

    type: str
    key: Callable[[Any], str]
    content: tuple[str, ...] = ()


def contact_key(phone: str) -> str:
    """Return the key of the events of a number."""
    return f"contact:{phone}"


def _contact(event: ContactHeld | OptedIn | OptedOut) -> str:
    return contact_key(event.phone)


_KINDS: Final[Mapping[type[Event], _Kind]] = MappingProxyType(
    {
        CampaignStatusChanged: _Kind(type=_CAMPAIGN, key=lambda one: f"campaign:{one.campaign_id}"),
        RecipientEnded: _Kind(
            type="recipient.ended", key=lambda one: f"contact:{one.campaign_id}:{one.position}", content=("phone",)
        ),
        CallEnded: _Kind(type="call.ended", key=lambda one: f"call:{one.call_id}", content=("phone",)),
        MessageStatusChanged: _Kind(
            type="message.status",
            key=lambda one: f"message:{one.message_id or one.dispatch_id}",
            content=("phone", "text"),
        ),
        MessageReceived: _Kind(
            type="message.received", key=lambda one: contact_key(one.from_number), content=("text",)
        ),
        OptedOut: _Kind(type="contact.opted_out", key=_contact),
        OptedIn: _Kind(type="contact.opted_in", key=_contact),
        ContactHeld: _Kind(type="contact.held", key=_contact),
        ScheduleRan: _Kind(type="schedule.ran", key=lambda one: f"schedule:{one.schedule_id}"),
        ScheduleSkipped: _Kind(type="schedule.skipped", key=lambda one: f"schedule:{one.schedule_id}"),
        WebhookDisabled: _Kind(type="webhook.disabled", key=lambda one: f"webhook:{one.endpoint_id}"),
        WebhookTest: _Kind(type="webhook.test", key=lambda one: f"webhook:{one.endpoint_id}"),
        EventsPurged: _Kind(type="events.gap", key=lambda one: f"gap:{one.last}"),
    }
)

DELIVERED: Final = tuple(_KINDS)
"""The classes of events that webhooks deliver."""

WEBHOOK_TYPES: Final = tuple(
    name
    for kind in _KINDS.values()
    for name in ([_CAMPAIGN + change for change in get_args(CampaignChange)] if kind.type == _CAMPAIGN else [kind.type])
)
"""The types of all bodies."""

TYPES_FOR_ONE_ENDPOINT: Final = (_KINDS[WebhookTest].type, _KINDS[EventsPurged].type)
"""Types that an endpoint receives whatever types it chose: they are about itself."""


def type_of(event: Event) -> str:
    """Return the type that an event is delivered under, such as `campaign.completed`."""
    name = _KINDS[type(event)].type
    return name + event.change if isinstance(event, CampaignStatusChanged) else name


def key_of(event: Event) -> str:
    """Return what an event is about; an endpoint gets the events of one key one after the other."""
    return _KINDS[type(event)].key(event)


def body_of(event: Event, payload: WebhookPayload, content: EventContent = _NO_CONTENT) -> bytes:
    """Return the body of an event's delivery: JSON, in UTF-8, of less than `MAX_BODY_BYTES` bytes.

    Args:
        event: The event; of no class but those that are delivered.
        payload: How much it holds.
        content: Added to the event by a full body. If a body were too long, its metadata is left out, then the end
            of its text is; `truncated` in its data is true then.
    """
    data = document_of(event, *_HEAD)
    data |= {name: getattr(content, name) for name in _KINDS[type(event)].content}
    if payload == "thin":
        data = {name: value for name, value in data.items() if name not in _FULL_ONLY}
    body = {"type": type_of(event), "timestamp": to_json(event.at), "data": data}
    return _fitting(body, data)


def _fitting(body: dict[str, Any], data: dict[str, Any]) -> bytes:
    """Return a body as bytes, shortened where it is too long."""
    written = orjson.dumps(body)
    if len(written) < MAX_BODY_BYTES:
        return written
    data["truncated"] = True
    if data.get("metadata") is not None:
        data["metadata"] = None
    while len(written := orjson.dumps(body)) >= MAX_BODY_BYTES:
        # Half of the longest text: of what is stored, only texts of messages are long.
        longest = max((name for name in data if isinstance(data[name], str)), key=lambda name: len(data[name]))
        data[longest] = data[longest][: len(data[longest]) // 2]
    return written
