"""The rows of a campaign's export: one contact each, with all that happened to it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import attrs

from outreach.models.call import Call
from outreach.models.dispatch import Dispatch
from outreach.models.failures import ProviderFailure
from outreach.models.recipient import Recipient

ExportFormat = Literal["csv", "jsonl", "xlsx"]


@attrs.frozen(kw_only=True)
class ExportedReply:
    """A message from a contact."""

    received_at: datetime
    body: str


@attrs.frozen(kw_only=True)
class ExportedContact:
    """A contact of a campaign with its requests, calls and replies.

    Attributes:
        meaning: Its status and reason in words; None if nobody has words for it.
        failure: What the provider said of the last request, if it failed; else None.
        dispatches: Its requests, oldest first.
        calls: Its call records, oldest first; empty in an SMS campaign.
        replies: What it wrote, oldest first; a message belongs to the campaign that sent the last request before it.
        opted_out_at: When it opted out after a request of this campaign; None if it did not.
    """

    recipient: Recipient
    meaning: str | None
    failure: ProviderFailure | None
    dispatches: Sequence[Dispatch]
    calls: Sequence[Call]
    replies: Sequence[ExportedReply]
    opted_out_at: datetime | None

    @property
    def texts(self) -> Sequence[str]:
        """The messages that a carrier accepted, in order, each once."""
        accepted = (one.body for one in self.dispatches if one.state == "accepted" and one.body is not None)
        return tuple(dict.fromkeys(accepted))

    @property
    def segments(self) -> int:
        """The segments of all messages that a carrier accepted."""
        return sum(one.segments or 0 for one in self.dispatches if one.state == "accepted")
