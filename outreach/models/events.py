"""Committed events, for embedding applications."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, Literal

import attrs

from outreach.models.call import CallOutcome
from outreach.models.campaign import PauseReason
from outreach.models.schedule import OccurrenceState
from outreach.models.states import CallStatus, CampaignStatus, MessageStatus, RecipientStatus, TrailRule
from outreach.models.unsubscribe import UnsubscribeScope

CampaignChange = Literal[
    "created", "draft", "ready", "scheduled", "started", "paused", "resumed", "completed", "cancelled", "expired"
]
"""The change of a campaign: `started` for the first time, `resumed` for each time after; else its new status."""


@attrs.frozen(kw_only=True)
class Event:
    """Something that has happened.

    Attributes:
        number: Its position in the database's order of commits, which only increases; numbers have gaps.
        at: When it happened.
        workspace_id: The workspace.
    """

    number: int
    at: datetime
    workspace_id: str


@attrs.frozen(kw_only=True)
class EventPage:
    """Some events, read without waiting for more.

    Attributes:
        events: In the order of their commits.
        position: Go on after this number; everything up to it was returned, or was not asked for.
        more: Whether there may be more right now.
    """

    events: Sequence[Event]
    position: int
    more: bool


@attrs.frozen(kw_only=True)
class CampaignStatusChanged(Event):
    """A campaign was created, or changed its status.

    Attributes:
        status: The new status.
        change: What happened to it.
        reason: Why it was paused; else None.
        rule: The rule that decided.
        actor: Who did it; None for the engine.
        external_id: The application's own name of the campaign, if any.
        metadata: What the application attached to the campaign, if anything.
    """

    campaign_id: str
    status: CampaignStatus
    change: CampaignChange
    reason: PauseReason | str | None
    rule: TrailRule
    actor: str | None
    external_id: str | None = None
    metadata: Mapping[str, Any] | None = None


@attrs.frozen(kw_only=True)
class RecipientEnded(Event):
    """A recipient of a campaign has ended.

    A later report of the provider may end it again, in another way. Recipients that end on loading (duplicates, invalid
    numbers) have no event.

    Attributes:
        reason: How it ended; None if there is nothing to say.
        rule: The rule that decided.
        dispatch_id: The request that led to this; None if none did.
        external_id: The application's own name of the contact, if any.
    """

    campaign_id: str
    position: int
    status: RecipientStatus
    reason: str | None
    rule: TrailRule
    dispatch_id: str | None
    external_id: str | None = None


@attrs.frozen(kw_only=True)
class CallEnded(Event):
    """A call has ended, single or of a campaign; the call record has the rest.

    Attributes:
        campaign_id: None for a single call, as is `position`.
        outcome: The outcome, or why it failed; None if unknown.
        external_id: The application's own name of the single call, or of the campaign's contact, if any.
        metadata: What the application attached to the single call, if anything.
    """

    call_id: str
    campaign_id: str | None
    position: int | None
    status: CallStatus
    outcome: CallOutcome | str | None
    dispatch_id: str | None
    external_id: str | None = None
    metadata: Mapping[str, Any] | None = None


@attrs.frozen(kw_only=True)
class MessageStatusChanged(Event):
    """A carrier reported the status of an accepted message.

    Attributes:
        message_id: The single message; None for a campaign's, which has `campaign_id` and `position`.
        reason: Failure class of a failure; else None.
        external_id: The application's own name of the single message, or of the campaign's contact, if any.
        metadata: What the application attached to the single message, if anything.
    """

    dispatch_id: str
    message_id: str | None
    campaign_id: str | None
    position: int | None
    status: MessageStatus
    reason: str | None
    external_id: str | None = None
    metadata: Mapping[str, Any] | None = None


@attrs.frozen(kw_only=True)
class OptedOut(Event):
    """A number was unsubscribed, or from more channels than before.

    Attributes:
        phone: E.164; a random name or a hash once the person is purged, empty once the retention has erased it.
        source: The source of the register's entry.
        actor: Who did it.
    """

    phone: str
    scope: UnsubscribeScope
    source: str
    actor: str | None


@attrs.frozen(kw_only=True)
class OptedIn(Event):
    """A number was removed from the register, by its START or by an operator.

    Attributes:
        phone: E.164; a random name or a hash once the person is purged, empty once the retention has erased it.
        actor: Who did it.
    """

    phone: str
    actor: str | None


@attrs.frozen(kw_only=True)
class ContactHeld(Event):
    """Campaigns no longer contact a number until a person has read its message, which may be an opt-out.

    Attributes:
        phone: As in `OptedOut`.
        reason: Why it is held: `unclear`.
    """

    phone: str
    reason: str


@attrs.frozen(kw_only=True)
class MessageReceived(Event):
    """An inbound message has arrived.

    Attributes:
        message_id: Its id in `messages.list_inbound`.
        from_number: As `phone` in `OptedOut`.
        unclear: Whether it may be an opt-out or opt-in that was not recognised: a person has to read it.
    """

    message_id: str
    from_number: str
    unclear: bool = False


@attrs.frozen(kw_only=True)
class ScheduleRan(Event):
    """A run of a schedule was started.

    Attributes:
        planned_at: The time that it was planned for.
        campaign_id: Its campaign; None once that is deleted.
    """

    schedule_id: str
    planned_at: datetime
    campaign_id: str | None


@attrs.frozen(kw_only=True)
class ScheduleSkipped(Event):
    """A run of a schedule was not started.

    Attributes:
        planned_at: The time that it was planned for.
        state: Whether it was blocked, left out or missed.
        reason: Why.
        campaign_id: Its campaign, if one was made, which waits for a person; None once that is deleted.
    """

    schedule_id: str
    planned_at: datetime
    state: OccurrenceState
    reason: str
    campaign_id: str | None


@attrs.frozen(kw_only=True)
class WebhookDisabled(Event):
    """A webhook endpoint receives nothing more until it is enabled.

    Attributes:
        endpoint_id: The endpoint.
        reason: Why: `gone` or `failing`.
    """

    endpoint_id: str
    reason: str


@attrs.frozen(kw_only=True)
class WebhookTest(Event):
    """An event without effect that an operator sends to one webhook endpoint; the feed does not have it.

    Attributes:
        number: The number of the feed's last event.
        endpoint_id: The endpoint.
    """

    endpoint_id: str


@attrs.frozen(kw_only=True)
class EventsPurged(Event):
    """Events were purged before a webhook endpoint had received them; the feed does not have it.

    Attributes:
        number: The same as `last`.
        first: The first number that may be missing.
        last: The last one; the events that are left between them are delivered all the same.
    """

    first: int
    last: int


@attrs.frozen(kw_only=True)
class EventKind:
    """How events of one class are delivered to webhooks.

    Attributes:
        type: The type; for `campaign.`, the change follows.
        key: Returns the key of an event: an endpoint gets the events of one key in order.
        content: Fields of the event's message, call or recipient that a full body has too.
        in_feed: Whether the feed of events has it; otherwise an endpoint gets it whatever types it chose.
    """

    type: str
    key: Callable[[Any], str]
    content: tuple[str, ...] = ()
    in_feed: bool = True


def contact_key(phone: str) -> str:
    """Return the key of the events of a number."""
    return f"contact:{phone}"


def _contact(event: ContactHeld | OptedIn | OptedOut) -> str:
    return contact_key(event.phone)


def _schedule(event: ScheduleRan | ScheduleSkipped) -> str:
    return f"schedule:{event.schedule_id}"


def _endpoint(event: WebhookDisabled | WebhookTest) -> str:
    return f"webhook:{event.endpoint_id}"


EVENT_KINDS: Final[Mapping[type[Event], EventKind]] = MappingProxyType(
    {
        CampaignStatusChanged: EventKind(type="campaign.", key=lambda one: f"campaign:{one.campaign_id}"),
        RecipientEnded: EventKind(
            type="recipient.ended", key=lambda one: f"contact:{one.campaign_id}:{one.position}", content=("phone",)
        ),
        CallEnded: EventKind(type="call.ended", key=lambda one: f"call:{one.call_id}", content=("phone",)),
        MessageStatusChanged: EventKind(
            type="message.status",
            key=lambda one: f"message:{one.message_id or one.dispatch_id}",
            content=("phone", "text"),
        ),
        MessageReceived: EventKind(
            type="message.received", key=lambda one: contact_key(one.from_number), content=("text",)
        ),
        OptedOut: EventKind(type="contact.opted_out", key=_contact),
        OptedIn: EventKind(type="contact.opted_in", key=_contact),
        ContactHeld: EventKind(type="contact.held", key=_contact),
        ScheduleRan: EventKind(type="schedule.ran", key=_schedule),
        ScheduleSkipped: EventKind(type="schedule.skipped", key=_schedule),
        WebhookDisabled: EventKind(type="webhook.disabled", key=_endpoint),
        WebhookTest: EventKind(type="webhook.test", key=_endpoint, in_feed=False),
        EventsPurged: EventKind(type="events.gap", key=lambda one: f"gap:{one.last}", in_feed=False),
    }
)
"""Every class of events."""
