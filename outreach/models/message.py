"""Single messages, those of POST /sms."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import attrs

from outreach.models.base import CarrierName
from outreach.models.states import MessageStatus

Keyword = Literal["stop", "start", "help"]
"""What somebody wants who writes a word that carriers and the law know."""

ReplyPurpose = Literal["opt_out_confirmation", "opt_in_confirmation", "help"]
"""Why the engine answers a keyword."""

Purpose = Literal["message", ReplyPurpose]
"""What a single message is for: asked for by somebody, or the engine's own answer to a keyword."""


@attrs.frozen(kw_only=True)
class Message:
    """A single message; campaign messages live in the ledger alone.

    Attributes:
        to: E.164.
        from_number: The number it is sent from.
        purpose: Anything but `message` is an answer to a keyword, which nobody but the engine makes.
        send_until: It is sent before this or never; None for the rule of all single messages.
        reason: Why it failed or was canceled; None otherwise.
        attempts: Attempts spent.
        tries: Dispatches opened, deferred ones included; the back-off grows with it.
    """

    id: str
    workspace_id: str
    to: str
    from_number: str | None
    carrier: CarrierName
    body: str
    segments: int
    status: MessageStatus
    reason: str | None = None
    attempts: int = 0
    tries: int = 0
    provider_id: str | None = None
    purpose: Purpose = "message"
    send_until: datetime | None = None
    created_at: datetime
    ended_at: datetime | None = None


@attrs.frozen(kw_only=True)
class InboundMessage:
    """A message that somebody wrote back.

    Attributes:
        from_number: Who wrote, in E.164; as the carrier gave it when it is no phone number.
        to: Our number, as the carrier gave it.
        provider: The carrier that brought it; None when a program handed it in without naming one.
        provider_id: The carrier's identifier: one message is taken in once. None where there is none.
        keyword: What it was taken for; None for anything else that people write.
        unclear: Whether it was taken for no keyword and a person has to read it: it holds a word of opting out, or is
            a START that the carrier does not know, of somebody who has opted out by a keyword.
        written_at: When it was written, by the carrier's clock, and never after it reached us: keywords count in
            this order, whatever order they come in.
        received_at: When it reached us.
    """

    id: str
    workspace_id: str
    from_number: str
    to: str
    body: str
    provider: str | None = None
    provider_id: str | None = None
    keyword: Keyword | None = None
    unclear: bool = False
    written_at: datetime
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
