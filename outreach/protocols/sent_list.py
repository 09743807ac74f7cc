"""The provider's list of an account's messages or calls, for campaigns of a restored database."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from outreach.models.dispatch import DispatchOutcome


class SentListFailed(Exception):
    """A provider's list that could not be read to its end; a missing request proves nothing.

    Args:
        reason: Why, without secrets and numbers of contacts.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@attrs.frozen(kw_only=True)
class SentQuery:
    """Which messages or calls are to be listed.

    Attributes:
        from_number: The sending number, name or Messaging Service of messages; None for calls of any caller ID.
        since: Those that the provider accepted at this time or later.
        until: And no later than this.
    """

    workspace_id: str
    from_number: str | None
    since: datetime
    until: datetime


@attrs.frozen(kw_only=True)
class SentRequest:
    """One message or call as its provider lists it.

    Attributes:
        outcome: `accepted` or `refused`, with the provider's id.
        to: The contact's number, as the provider writes it.
        at: When the provider took it.
        dispatch_id: Our id, where the provider returns it.
        body: The text of a message, where the provider returns it; None for a call.
    """

    outcome: DispatchOutcome
    to: str
    at: datetime
    dispatch_id: str | None = None
    body: str | None = attrs.field(default=None, repr=False)
