"""Single messages, and messages that people wrote back."""

from __future__ import annotations

from typing import Any

from outreach.convert.manage.documents import document_of
from outreach.convert.manage.recipients import write_failure
from outreach.models.failures import ProviderFailure
from outreach.models.message import InboundMessage, Message


def write_sms(message: Message, failure: ProviderFailure | None) -> dict[str, Any]:
    """Return a single message, with what its carrier said where it failed."""
    return {**document_of(message, "workspace_id", "send_until", "tries"), **write_failure(failure)}


def write_inbound_message(message: InboundMessage) -> dict[str, Any]:
    """Return an inbound message."""
    return document_of(message, "workspace_id")
