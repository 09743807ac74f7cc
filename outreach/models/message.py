"""Single messages, those of POST /sms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import attrs

from outreach.errors import Problem
from outreach.models.base import CarrierName
from outreach.models.campaign import MAX_EXTERNAL_ID
from outreach.models.fields import Checked, bounded, ruled, sized
from outreach.models.metadata import METADATA
from outreach.models.resources import MAX_STEPS
from outreach.models.settings import ReplyPurpose
from outreach.models.states import MessageStatus

Keyword = Literal["stop", "start", "help"]
"""The meaning of a recognised keyword."""


Purpose = Literal["message", "test", ReplyPurpose]
"""The purpose of a single message: requested, a test of a campaign's text, or the engine's reply to a keyword.

Only requested ones count for the frequency cap.
"""


@attrs.frozen(kw_only=True)
class Message:
    """A single message; campaign messages live in the ledger alone.

    Attributes:
        to: E.164.
        from_number: The sending number.
        purpose: `message`, `test`, or the engine's reply to a keyword.
        send_until: Sent before this or never; None for the rule of all single messages.
        reason: Why it failed or was canceled; else None.
        attempts: Attempts spent.
        tries: Dispatches opened, deferred ones included; the backoff grows with it.
        external_id: The application's own name of the message; need not be unique.
        metadata: What the application attached to it.
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
    external_id: str | None = None
    metadata: Mapping[str, Any] | None = None
    created_at: datetime
    ended_at: datetime | None = None


@attrs.frozen(kw_only=True)
class InboundMessage:
    """An inbound message.

    Attributes:
        from_number: The sender in E.164; as the carrier gave it if it is not a phone number.
        to: Our number, as the carrier gave it.
        provider: The carrier that delivered it; None if a program passed it in without one.
        provider_id: The carrier's id, which makes the message unique; None if none.
        media: The links to its media, as the carrier gave them: most need the account's credentials to be opened.
        keyword: The recognised keyword; None for any other text.
        unclear: Whether a person has to read it: it has a word of opting out but is not a keyword, or is a START that
            the carrier does not know, from somebody who opted out by a keyword.
        written_at: When it was written, by the carrier's clock, never after `received_at`; keywords take effect in
            this order.
        received_at: When it arrived.
    """

    id: str
    workspace_id: str
    from_number: str
    to: str
    body: str
    provider: str | None = None
    provider_id: str | None = None
    media: tuple[str, ...] = ()
    keyword: Keyword | None = None
    unclear: bool = False
    written_at: datetime
    received_at: datetime


@attrs.frozen(kw_only=True)
class NewMessage(Checked):
    """A message to send with POST /sms.

    Attributes:
        to: The number, in any notation where the workspace has a default region.
        body: The text, which is sent as it is: placeholders are filled in campaigns alone.
        from_number: Sending number; None for the workspace's number at the carrier that the contact wrote to last, else
            its first one.
        carrier: None for the carrier of the sending number.
        external_id: The application's own name of the message; need not be unique.
        metadata: A JSON object to keep with it, at most 4,096 bytes.
    """

    to: str
    body: str = sized(1, 1600)
    from_number: str | None = None
    carrier: CarrierName | None = None
    external_id: str | None = sized(1, MAX_EXTERNAL_ID, default=None)
    metadata: Mapping[str, Any] | None = ruled(METADATA, default=None)

    def _problems(self) -> Sequence[Problem]:
        return () if self.body.strip() else (Problem(path="body", message="must not be blank"),)


@attrs.frozen(kw_only=True)
class NewTestMessage(Checked):
    """A test message to send: the text that a contact of a campaign would get, to a number of one's own.

    Attributes:
        contact: The contact's number, in any notation, or as supplied if it is none.
        to: Where to send it.
        message: Which message of a flow, from 1.
        at_any_hour: Whether to send it outside the campaign's hours and the contact hours at `to` too.
    """

    contact: str = sized(1, 255)
    to: str = sized(1, 255)
    message: int = bounded(1, MAX_STEPS, default=1)
    at_any_hour: bool = False
