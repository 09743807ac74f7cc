"""Entries of the decision trail as events."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple, cast

from outreach.models.events import (
    CallEnded,
    CampaignChange,
    CampaignStatusChanged,
    ContactHeld,
    Event,
    MessageReceived,
    MessageStatusChanged,
    OptedIn,
    OptedOut,
    RecipientEnded,
    ScheduleRan,
    ScheduleSkipped,
    WebhookDisabled,
)
from outreach.models.states import (
    UNCLEAR,
    CallStatus,
    CampaignStatus,
    MessageStatus,
    RecipientStatus,
    TrailEntry,
    TrailRule,
    TrailStepKind,
)


class OwnData(NamedTuple):
    """The data that an application attached to the subject of an event: its own id, and metadata."""

    external_id: str | None = None
    metadata: Mapping[str, Any] | None = None


def event_from_entry(entry: TrailEntry, own: OwnData, *, first_started_at: datetime | None = None) -> Event | None:
    """Return an entry's event for applications; None for an entry of the trail alone.

    Args:
        entry: The entry.
        own: The data that the application attached to its recipient, single message, single call or campaign.
        first_started_at: When its campaign was started for the first time, for an entry of a campaign.
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
                change=_change(entry, first_started_at),
                reason=entry.reason,
                rule=entry.rule,
                actor=entry.actor,
                **own._asdict(),
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
                external_id=own.external_id,
            )
        case TrailStepKind.CALL_ENDED:
            return CallEnded(
                **head,
                **place,
                call_id=row.call_id,
                status=CallStatus(row.state),
                outcome=entry.reason,
                dispatch_id=entry.dispatch_id,
                **own._asdict(),
            )
        case TrailStepKind.REPORTED if entry.call_id is None:
            return MessageStatusChanged(
                **head,
                **place,
                dispatch_id=row.dispatch_id,
                message_id=entry.message_id,
                status=MessageStatus(row.state),
                reason=entry.reason,
                **own._asdict(),
            )
        case TrailStepKind.OPTED_OUT:
            return OptedOut(**head, phone=phone, scope=row.state, source=row.reason, actor=entry.actor)
        case TrailStepKind.OPTED_IN:
            return OptedIn(**head, phone=phone, actor=entry.actor)
        case TrailStepKind.HELD if entry.campaign_id is None:
            return ContactHeld(**head, phone=phone, reason=row.reason)
        case TrailStepKind.REPLIED:
            return MessageReceived(
                **head, message_id=row.message_id, from_number=phone, unclear=entry.reason == UNCLEAR
            )
        case TrailStepKind.SCHEDULE:
            run = {"schedule_id": row.schedule_id, "planned_at": row.due_at, "campaign_id": entry.campaign_id}
            if row.state == "started":
                return ScheduleRan(**head, **run)
            return ScheduleSkipped(**head, **run, state=row.state, reason=row.reason)
        case TrailStepKind.WEBHOOK:
            return WebhookDisabled(**head, endpoint_id=row.webhook_id, reason=row.reason)
        case _:
            return None


def _change(entry: TrailEntry, first_started_at: datetime | None) -> CampaignChange:
    """Return what happened to a campaign."""
    if entry.rule is TrailRule.LOAD:
        return "created"
    if entry.state == CampaignStatus.ACTIVE:
        return "started" if entry.at == first_started_at else "resumed"
    return cast("CampaignChange", entry.state)
