"""Reports of providers on accepted messages and calls."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import attrs

from outreach.models.call import CallOutcome
from outreach.models.dispatch import FailureClass
from outreach.models.states import CallStatus, MessageStatus


@attrs.frozen(kw_only=True)
class MessageReport:
    """A delivery receipt.

    Attributes:
        dispatch_id: Our id, where the carrier returns it.
        provider_id: The carrier's id.
        reason: Failure class of a failure; else None.
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
    """A call event.

    Attributes:
        dispatch_id: Our id, where the provider returns it.
        provider_id: The provider's id.
        telephony_id: The id of the underlying telephony, if the provider may have answered the request with that one.
        outcome: The provider's verdict, if any. One that comes after the end of the call fills in an unknown outcome.
        error: Why the call failed or was canceled, for people; else None.
        reason: Failure class of a failure; else None. A temporary one means that nobody was reached.
        do_not_call: Whether the contact asked for no more calls.
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
        """Whether the call was answered and has ended, without the provider's analysis yet."""
        return self.status is CallStatus.COMPLETED and self.outcome is None and self.summary is None


Report = MessageReport | CallReport
