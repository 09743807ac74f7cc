"""Single messages, those of POST /sms."""

from __future__ import annotations

from datetime import datetime

import attrs

from outreach.models.carriers import CarrierName
from outreach.models.states import MessageStatus


@attrs.frozen(kw_only=True)
class Message:
    """A single message; campaign messages live in the ledger alone.

    Attributes:
        to: E.164.
        sender: The number it is sent from.
        reason: Why it failed or was canceled; None otherwise.
        attempts: Attempts spent.
        tries: Dispatches opened, deferred ones included; the back-off grows with it.
    """

    id: str
    workspace_id: str
    to: str
    sender: str | None
    carrier: CarrierName
    body: str
    segments: int
    status: MessageStatus
    reason: str | None = None
    attempts: int = 0
    tries: int = 0
    provider_id: str | None = None
    created_at: datetime
    ended_at: datetime | None = None


@attrs.frozen(kw_only=True)
class InboundMessage:
    """A message that somebody wrote back.

    Attributes:
        sender: Who wrote, in E.164.
        to: Our number, as the carrier gave it.
        received_at: When it reached us.
    """

    id: str
    workspace_id: str
    sender: str
    to: str
    body: str
    received_at: datetime


@attrs.frozen(kw_only=True)
class NewMessage:
    """What is asked for by POST /sms.

    Attributes:
        from_number: Sending number; None takes the workspace's first number of the carrier.
        carrier: None takes the carrier of the sending number.
    """

    to: str
    body: str
    from_number: str | None = None
    carrier: CarrierName | None = None
