"""Domain objects as JSON documents: the names of the HTTP interface where it has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, Final

import attrs

from outreach import (
    Call,
    CallSettings,
    Campaign,
    Dispatch,
    InboundMessage,
    Message,
    MessageStatus,
    Recipient,
    ReplySettings,
    SmsSettings,
    Unsubscribe,
)
from outreach.http import format_timestamp, write_call, write_campaign, write_sms_settings
from outreach.models import (
    INTERNAL_FIELDS,
    AuditEntry,
    CampaignBlocker,
    ContactHistory,
    RecipientCount,
    ReplyText,
)
from outreach.protocols import SystemClock
from outreach.reasons import PAUSE_REASONS, describe_reason

Document = dict[str, Any]

_REPLIES: Final = {"opt_out_confirmation": "stop", "opt_in_confirmation": "start", "help": "help"}


def plain(value: object) -> Any:
    """Return a value as JSON types."""
    match value:
        case Enum():
            return value.value
        case datetime():
            return format_timestamp(value)
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple() | frozenset():
            return [plain(item) for item in value]
        case _:
            kind: Any = type(value)
            if not attrs.has(kind):
                return value
            return {field.name: plain(getattr(value, field.name)) for field in attrs.fields(kind)}


def resource(item: object) -> Document:
    """Return the document of a workspace, or of what is set up in it: never a key's digest."""
    return _document(item, *INTERNAL_FIELDS)


def message(item: Message) -> Document:
    """Return a single message's document."""
    return _document(item, "workspace_id", "send_until")


def inbound(item: InboundMessage) -> Document:
    """Return an inbound message's document."""
    return _document(item)


def settings(
    messages: SmsSettings, calls: CallSettings, replies: ReplySettings, texts: Sequence[ReplyText]
) -> Document:
    """Return the document of a workspace's settings: the interface's names, with the prefix `call_` for calls.

    Replies to keywords have the prefix `reply_`, with the effective texts.
    """
    shown: Document = {
        "reply_enabled": replies.enabled,
        "reply_help_when_opted_out": replies.help_when_opted_out,
    }
    for item in texts:
        name = _REPLIES[item.purpose]
        shown |= {f"reply_{name}_text": item.text, f"reply_{name}_segments": item.segments}
    return {
        **write_sms_settings(messages),
        **{f"call_{name}": value for name, value in _document(calls).items()},
        **shown,
    }


def dispatch(item: Dispatch) -> Document:
    """Return a dispatch's document, without its text."""
    return _document(item, "body", "epoch")


def unsubscribe(item: Unsubscribe) -> Document:
    """Return the document of an entry of the register."""
    return _document(item)


def campaign(item: Campaign) -> Document:
    """Return a campaign's document, with the names of docs/interface.md#2.2."""
    document = write_campaign(item, now=SystemClock().now())
    return {
        **document,
        "retry_voicemail": item.retry_voicemail,
        "pause_reason": item.pause_reason,
        "pause_why": PAUSE_REASONS.get(item.pause_reason or ""),
        "open_recipients": item.counters.open,
        "archived_at": plain(item.archived_at),
        "erased_at": plain(item.erased_at),
    }


def blockers(items: Sequence[CampaignBlocker]) -> Document:
    """Return what blocks a campaign: the most urgent as `blocked_by`, and all."""
    first = items[0] if items else None
    return {
        "blocked_by": first.by if first else None,
        "blocked_until": plain(first.until) if first else None,
        "blockers": [plain(item) for item in items],
    }


def provider_throttle(blocked_until: datetime | None) -> str | None:
    """Return `provider_throttle` while a provider throttles; else None."""
    return "provider_throttle" if blocked_until is not None else None


def group(item: RecipientCount, campaign: Campaign, waits: Mapping[tuple[str, str | None], datetime]) -> Document:
    """Return the document of a group of recipients, with its reason in words and when its first one is due."""
    until = waits.get((item.status, item.reason))
    why = describe_reason(item.status, item.reason, campaign.channel, campaign=campaign.status)
    return {**_document(item), "why": why, "until": plain(until)}


def recipient(item: Recipient, campaign: Campaign, report: MessageStatus | None = None) -> Document:
    """Return a recipient's document, with the carrier's report and its reason in words."""
    why = describe_reason(item.status, item.reason, campaign.channel, report=report, campaign=campaign.status)
    document = {**_document(item, "campaign_id"), "report": plain(report), "why": why}
    first = {name: document.pop(name) for name in ("position", "phone_number", "phone", "status", "reason", "why")}
    return {**first, **document}


def history(item: ContactHistory) -> Document:
    """Return the document of a contact's history."""
    return _document(item)


def call(item: Call) -> Document:
    """Return a call's document, with the names of GET /calls/{id}."""
    return write_call(item)


def audit_entry(item: AuditEntry) -> Document:
    """Return the document of an entry of the audit trail."""
    return _document(item)


def _document(item: object, *hidden: str) -> Document:
    document: Document = plain(item)
    return {name: value for name, value in document.items() if name not in hidden}
