"""The events that applications subscribe to, sent after their commit. A public module."""

from __future__ import annotations

from outreach.models.events import (
    CallEnded,
    CampaignStatusChanged,
    ContactHeld,
    Event,
    EventPage,
    MessageReceived,
    MessageStatusChanged,
    OptedIn,
    OptedOut,
    RecipientEnded,
    ScheduleRan,
    ScheduleSkipped,
    WebhookDisabled,
)
from outreach.models.subscription import EventGap, Subscription
from outreach.services.messaging.events import EventStream
from outreach.services.messaging.named_streams import NamedStream

__all__ = [
    "CallEnded",
    "CampaignStatusChanged",
    "ContactHeld",
    "Event",
    "EventGap",
    "EventPage",
    "EventStream",
    "MessageReceived",
    "MessageStatusChanged",
    "NamedStream",
    "OptedIn",
    "OptedOut",
    "RecipientEnded",
    "ScheduleRan",
    "ScheduleSkipped",
    "Subscription",
    "WebhookDisabled",
]
