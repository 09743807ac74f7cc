"""Entries of the decision trail as events."""

from __future__ import annotations

from typing import Any

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
from outreach.models.states import CallStatus, CampaignStatus, MessageStatus, RecipientStatus
from outreach.models.trail import UNCLEAR, TrailEntry, TrailStepKind


def event_from_entry(entry: TrailEntry, external_id: str | None) -> Event | None:
    """Return an entry's event for applications; None for an entry of the trail alone.

    Args:
        entry: The entry.
        external_id: The application's id of its recipient, if any.
    """
    # The operations that write a row fill the fields that its kind needs.
    row: Any = entry
    head: dict[str, Any] = {"number": entry.number, "at": entry.at, "workspace_id": entry.workspace_id}
    # The retention takes numbers out of what nobody has read for so long.
    phone = entry.phone or ""
    place: dict[str, Any] = {"campaign_id": entry.campaign_id, "position": entry.position}
    match entry.what:
        case TrailStepKind.CAMPAIGN:
            return CampaignStatusChanged(
                **head,
                campaign_id=row.campaign_id,
                status=CampaignStatus(row.state),
                reason=entry.reason,
                rule=entry.rule,
                actor=entry.actor,
            )
        case TrailStepKind.ENDED:
            return RecipientEnded(
                **head,
                campaign_id=row.campaign_id,
                position=row.position,
                status=RecipientStatus(row.state),
                reason=entry.reason,
                rule=entry.rule,
                dispatch_id=entry.dispatch_id,
                external_id=external_id,
            )
        case TrailStepKind.CALL_ENDED:
            return CallEnded(
                **head,
                **place,
                call_id=row.call_id,
                status=CallStatus(row.state),
                outcome=entry.reason,
                dispatch_id=entry.dispatch_id,
                external_id=external_id,
            )
        case TrailStepKind.REPORTED if entry.call_id is None:
            return MessageStatusChanged(
                **head,
                **place,
                dispatch_id=row.dispatch_id,
                message_id=entry.message_id,
                status=MessageStatus(row.state),
                reason=entry.reason,
                external_id=external_id,
            )
        case TrailStepKind.OPTED_OUT:
            return OptedOut(**head, phone=phone, scope=row.state, source=row.reason, actor=entry.actor)
        case TrailStepKind.OPTED_IN:
            return OptedIn(**head, phone=phone, actor=entry.actor)
        case TrailStepKind.REPLIED:
            return MessageReceived(
                **head, message_id=row.message_id, from_number=phone, unclear=entry.reason == UNCLEAR
            )
        case _:
            return None
