"""The bodies and types of webhook deliveries; their table is `models.events.EVENT_KINDS`."""

from __future__ import annotations

from typing import Any, Final, get_args

import attrs
import orjson

from outreach.models.events import EVENT_KINDS, CampaignChange, CampaignStatusChanged, Event
from outreach.models.webhook import WebhookPayload
from outreach.serialization.documents import document_of, to_json

MAX_BODY_BYTES: Final = 20_000

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


DELIVERED: Final = tuple(EVENT_KINDS)
"""The classes of events that webhooks deliver."""

WEBHOOK_TYPES: Final = tuple(
    name
    for kind in EVENT_KINDS.values()
    for name in ([kind.type + change for change in get_args(CampaignChange)] if kind.type[-1] == "." else [kind.type])
)
"""The types of all bodies."""

TYPES_FOR_ONE_ENDPOINT: Final = tuple(kind.type for kind in EVENT_KINDS.values() if not kind.in_feed)
"""Types that an endpoint receives whatever types it chose: they are about itself."""


def type_of(event: Event) -> str:
    """Return the type that an event is delivered under, such as `campaign.completed`."""
    name = EVENT_KINDS[type(event)].type
    return name + event.change if isinstance(event, CampaignStatusChanged) else name


def key_of(event: Event) -> str:
    """Return what an event is about; an endpoint gets the events of one key one after the other."""
    return EVENT_KINDS[type(event)].key(event)


def body_of(event: Event, payload: WebhookPayload, content: EventContent = _NO_CONTENT) -> bytes:
    """Return the body of an event's delivery: JSON, in UTF-8, of less than `MAX_BODY_BYTES` bytes.

    Args:
        event: The event; of no class but those that are delivered.
        payload: How much it holds.
        content: Added to the event by a full body. If a body were too long, its metadata is left out, then the end
            of its text is; `truncated` in its data is true then.
    """
    data = document_of(event, *_HEAD)
    data |= {name: getattr(content, name) for name in EVENT_KINDS[type(event)].content}
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
