"""What a provider tells after it has accepted a message or a call."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import attrs

from outreach.models.call import CallOutcome
from outreach.models.dispatch import FailureClass
from outreach.models.states import CallStatus, MessageStatus


@attrs.frozen(kw_only=True)
class MessageReport:
    """A delivery receipt, in the engine's words.

    Attributes:
        dispatch_id: Our identifier, where the carrier carries it back.
        provider_id: The carrier's identifier.
        reason: Failure class of a failure; None otherwise.
        raw: The carrier's own event.
    """

    workspace_id: str
    provider: str
    dispatch_id: str | None
    provider_id: str | None
    status: MessageStatus
    at: datetime
    reason: str | None = None
    error_code: str | None = None
    raw: Any = None


@attrs.frozen(kw_only=True)
class CallReport:
    """A call event, in the engine's words.

    Attributes:
        dispatch_id: Our identifier, where the provider carries it back.
        provider_id: The provider's identifier.
        telephony_id: The identifier that the telephony behind the provider gave the call, where the event tells it and
            the provider may have answered the request with that one.
        outcome: The provider's own verdict, when it gives one with the end of the call. One that comes after the end,
            from an analysis that takes its time, is filled in where none was known.
        error: Why the call failed or was canceled, for people; None otherwise.
        reason: Failure class of a failure; None otherwise. One that may pass says that nobody was reached.
        do_not_call: Whether the contact said, in the call, that no more calls are wanted.
        raw: The provider's own event.
    """

    workspace_id: str
    provider: str
    dispatch_id: str | None
    provider_id: str | None
    status: CallStatus
    at: datetime
    outcome: CallOutcome | None = None
    answered_by: str | None = None
    summary: str | None = None
    error: str | None = None
    reason: FailureClass | None = None
    do_not_call: bool = False
    telephony_id: str | None = None
    raw: Any = None

    @property
    def lacks_analysis(self) -> bool:
        """Whether it tells the end of a talk, and nothing of what the provider's analysis says of it."""
        return self.status is CallStatus.COMPLETED and self.outcome is None and self.summary is None


Report = MessageReport | CallReport
