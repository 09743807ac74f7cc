"""One contact of an export as JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from outreach.clock import format_timestamp
from outreach.convert.json_responses import write_call
from outreach.models.campaign_export import ExportedContact
from outreach.models.dispatch import Dispatch


def write_exported_contact(contact: ExportedContact) -> dict[str, Any]:
    """Return a contact with its requests, calls and replies as JSON types."""
    recipient, failure = contact.recipient, contact.failure
    explanation = failure.explanation if failure is not None else None
    return {
        "position": recipient.position,
        "phone_number": recipient.phone_number,
        "phone": recipient.phone,
        "first_name": recipient.first_name,
        "last_name": recipient.last_name,
        "email": recipient.email,
        "company": recipient.company,
        "custom_variables": dict(recipient.custom_variables),
        "status": recipient.status.value,
        "reason": recipient.reason,
        "meaning": contact.meaning,
        "attempts": recipient.attempts,
        "contacted": recipient.dispatched,
        "successful": recipient.successful,
        "due_at": moment(recipient.due_at),
        "ended_at": moment(recipient.ended_at),
        "texts": list(contact.texts),
        "segments": contact.segments,
        "failure": None
        if failure is None
        else {
            "provider": failure.provider,
            "reason": failure.reason,
            "error_code": failure.error_code,
            "error_message": failure.error_message,
            "meaning": None if explanation is None else explanation.meaning,
            "advice": None if explanation is None else explanation.advice,
        },
        "requests": [_request(one) for one in contact.dispatches],
        "calls": [write_call(one) for one in contact.calls],
        "replies": [{"received_at": moment(one.received_at), "body": one.body} for one in contact.replies],
        "opted_out_at": moment(contact.opted_out_at),
    }


def _request(one: Dispatch) -> dict[str, Any]:
    return {
        "id": one.id,
        "step": one.step,
        "attempt": one.attempt,
        "leg": one.leg,
        "try_number": one.try_number,
        "provider": one.provider,
        "provider_id": one.provider_id,
        "from_number": one.from_number,
        "body": one.body,
        "segments": one.segments,
        "state": one.state.value,
        "report": None if one.report is None else one.report.value,
        "reason": one.reason,
        "error_code": one.error_code,
        "error_message": one.error_message,
        "created_at": moment(one.created_at),
        "settled_at": moment(one.settled_at),
    }


def moment(at: datetime | None) -> str | None:
    """Return a time as in the HTTP interface."""
    return None if at is None else format_timestamp(at)
