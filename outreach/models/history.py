"""Everything with one number."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import attrs

HistoryKind = Literal["campaign", "message", "call", "opted_out", "opted_in"]
"""The kind of an item of a number's history; `opted_out` and `opted_in` are its moves onto the register and off it."""


@attrs.frozen(kw_only=True)
class HistoryItem:
    """Something with a number: its place in a campaign, a message, a call, or a move of the register.

    Attributes:
        at: When it was created; of a place, when its campaign was; of an inbound message, when it arrived.
        kind: Its kind.
        direction: Of a message or a call; else None.
        phone: The number as it is stored: it may be another spelling of the one that was asked for.
        own_number: Our number, of a message or call; None for the provider's default.
        status: The state of the recipient, message or call; of a campaign's message, the carrier's report, or the state
            of its request before there is one; of an opt-out, its scope. Else None.
        reason: Why it has that status: that of the recipient or request; the outcome or error of a call; the source of
            an opt-out; the keyword of an inbound message, or `unclear`. A message that the engine wrote by itself has
            its purpose, such as `stop`, unless it failed.
        text: The text of a message; None if it was erased, and for everything else.
        campaign_id: The campaign; None if it belongs to none.
        campaign_name: Its name.
        position: The recipient's position in the campaign.
        message_id: A single message or an inbound one; None for a campaign's message.
        call_id: The call.
        dispatch_id: The request of a campaign's message.
    """

    at: datetime
    kind: HistoryKind
    direction: Literal["outbound", "inbound"] | None = None
    phone: str
    own_number: str | None = None
    status: str | None = None
    reason: str | None = None
    text: str | None = None
    campaign_id: str | None = None
    campaign_name: str | None = None
    position: int | None = None
    message_id: str | None = None
    call_id: str | None = None
    dispatch_id: str | None = None
