"""The content that full webhook bodies add, read at sending: an erased person has neither number nor text."""

from __future__ import annotations

from collections.abc import Sequence

from outreach.models.events import CallEnded, Event, MessageReceived, MessageStatusChanged, RecipientEnded
from outreach.rules.phones import is_erased
from outreach.serialization.webhook_bodies import EventContent
from outreach.storage.unit_of_work import Transaction


def contents_of(tx: Transaction, events: Sequence[Event]) -> Sequence[EventContent]:
    """Return the content of each event, in their order."""
    tx.recipients.prefetch(
        {(one.workspace_id, one.campaign_id, one.position) for one in events if isinstance(one, RecipientEnded)}
    )
    tx.calls.prefetch((one.workspace_id, one.call_id) for one in events if isinstance(one, CallEnded))
    tx.dispatches.prefetch(
        (one.workspace_id, one.dispatch_id) for one in events if isinstance(one, MessageStatusChanged)
    )
    return [_content_of(tx, event) for event in events]


def _content_of(tx: Transaction, event: Event) -> EventContent:
    match event:
        case RecipientEnded():
            recipient = tx.recipients.get(event.workspace_id, event.campaign_id, event.position)
            return EventContent(phone=None if recipient is None else _known(recipient.phone))
        case CallEnded():
            call = tx.calls.get(event.workspace_id, event.call_id)
            return EventContent(phone=None if call is None else _known(call.to))
        case MessageStatusChanged():
            dispatch = tx.dispatches.get(event.workspace_id, event.dispatch_id)
            if dispatch is None:
                return EventContent()
            return EventContent(phone=_known(dispatch.to), text=dispatch.body or None)
        case MessageReceived():
            message = tx.inbound.get(event.workspace_id, event.message_id)
            return EventContent(text=None if message is None else message.body or None)
        case _:
            return EventContent()


def _known(phone: str | None) -> str | None:
    return None if phone is None or is_erased(phone) else phone
