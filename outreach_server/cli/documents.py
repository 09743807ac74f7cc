"""Domain objects as JSON documents: the names of the HTTP interface where it has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from outreach import (
    CallSettings,
    Campaign,
    Dispatch,
    Message,
    MessageStatus,
    Recipient,
    ReplySettings,
    SmsSettings,
)
from outreach.errors import Problem
from outreach.http import (
    document_of,
    to_json,
    write_blocker,
    write_managed_campaign,
    write_reply_settings,
    write_sms_settings,
)
from outreach.models import (
    RecipientCount,
    ReplyText,
)
from outreach.protocols import SystemClock
from outreach.server_support import hidden_fields

Document = dict[str, Any]


def resource(item: object) -> Document:
    """Return the document of a workspace, or of what is set up in it: never a key's digest."""
    return document_of(item, *hidden_fields(type(item)))


def message(item: Message) -> Document:
    """Return a single message's document."""
    return document_of(item, "workspace_id", "send_until")


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
    for name, one in write_reply_settings(replies, texts)["effective"].items():
        shown |= {f"reply_{name}_text": one["text"], f"reply_{name}_segments": one["segments"]}
    return {
        **write_sms_settings(messages),
        **{f"call_{name}": value for name, value in document_of(calls).items()},
        **shown,
    }


def dispatch(item: Dispatch) -> Document:
    """Return a dispatch's document, without its text."""
    return document_of(item, "body", "epoch")


def campaign(item: Campaign) -> Document:
    """Return a campaign's document, with the names of docs/interface.md#2.2."""
    document = write_managed_campaign(item, now=SystemClock().now())
    # Commands that show these read them.
    del document["blockers"], document["warnings"]
    return document


def blockers(items: Sequence[Problem]) -> Document:
    """Return what blocks a campaign: the most urgent as `blocked_by`, and all."""
    first = items[0] if items else None
    return {
        "blocked_by": first.code if first else None,
        "blocked_until": to_json(first.until) if first else None,
        "blockers": [write_blocker(item) for item in items],
    }


def provider_throttle(blocked_until: datetime | None) -> str | None:
    """Return `provider_throttle` while a provider throttles; else None."""
    return "provider_throttle" if blocked_until is not None else None


def group(item: RecipientCount, campaign: Campaign, waits: Mapping[tuple[str, str | None], datetime]) -> Document:
    """Return the document of a group of recipients, with its reason in words and when its first one is due."""
    from outreach.reasons import describe_reason

    until = waits.get((item.status, item.reason))
    why = describe_reason(item.status, item.reason, campaign.channel, campaign=campaign.status)
    return {**document_of(item), "why": why, "until": to_json(until)}


def recipient(item: Recipient, campaign: Campaign, report: MessageStatus | None = None) -> Document:
    """Return a recipient's document, with the carrier's report and its reason in words."""
    from outreach.reasons import describe_reason

    why = describe_reason(item.status, item.reason, campaign.channel, report=report, campaign=campaign.status)
    document = {**document_of(item, "campaign_id"), "report": to_json(report), "why": why}
    first = {name: document.pop(name) for name in ("position", "phone_number", "phone", "status", "reason", "why")}
    return {**first, **document}


def in_words(document: Document) -> Document:
    """Return a campaign's document with its counters under people's names."""
    return {_COUNTERS.get(name, name): value for name, value in document.items()}


_COUNTERS = {
    "total_recipients": "recipients",
    "pending_calls": "pending",
    "completed_calls": "completed",
    "successful_calls": "successful",
    "failed_calls": "failed",
}
"""The interface counts recipients as calls in both channels; people see recipients."""
