"""The events that applications subscribe to, sent after their commit. A public module."""

from __future__ import annotations

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
from outreach.services.events import EventStream

__all__ = [
    "CallEnded",
    "CampaignStatusChanged",
    "Event",
    "EventStream",
    "MessageReceived",
    "MessageStatusChanged",
    "OptedIn",
    "OptedOut",
    "RecipientEnded",
]
