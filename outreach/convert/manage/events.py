"""Events as JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from outreach.convert.manage.documents import document_of
from outreach.models.events import (
    CallEnded,
    CampaignStatusChanged,
    Event,
    MessageReceived,
    MessageStatusChanged,
    OptedIn,
    OptedOut,
    RecipientEnded,
)


def _name(kind: type[Event]) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()


EVENT_TYPES: Final[Mapping[str, type[Event]]] = {
    _name(kind): kind
    for kind in (
        CampaignStatusChanged,
        RecipientEnded,
        CallEnded,
        MessageStatusChanged,
        MessageReceived,
        OptedOut,
        OptedIn,
    )
}
"""The classes of events by their names in JSON."""


def write_event(event: Event) -> dict[str, Any]:
    """Return an event, with its type."""
    return {
        "number": event.number,
        "type": _name(type(event)),
        **document_of(event, "number", "workspace_id"),
    }
