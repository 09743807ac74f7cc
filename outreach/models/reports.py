"""Reports of providers on accepted messages and calls, and what providers said of failures."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import attrs

from outreach.models.account import CallbackResult
from outreach.models.call import CallOutcome
from outreach.models.campaign import Recipient
from outreach.models.dispatch import FailureClass
from outreach.models.states import CallStatus, MessageStatus


@attrs.frozen(kw_only=True)
class MessageReport:
    """A delivery receipt.

    Attributes:
        dispatch_id: Our id, where the carrier returns it.
        provider_id: The carrier's id.
        from_number: Its sender, if the carrier names it.
        reason: Failure class of a failure; else None. With `rate_limited` nobody was reached, and the contact of an
            open campaign waits for another try.
        retry_after_seconds: How long the whole account has to wait from `at` on, if the message failed at a limit of
            the account; else None.
        raw: The carrier's own event.
    """

    workspace_id: str
    provider: str
    dispatch_id: str | None
    provider_id: str | None
    status: MessageStatus
    at: datetime
    from_number: str | None = None
    reason: str | None = None
    retry_after_seconds: float | None = None
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
        retry_after_seconds: As in `MessageReport`.
        message_left: Whether the machine that answered got a message; None for what the agent is set to do.
        do_not_call: Whether the contact asked for no more calls.
        raw: The provider's own event.
        transcript: The talk, as far as the provider reports it; of several the longest is stored.
        cost: The provider's charge; of several amounts the highest is stored.
        cost_currency: ISO 4217; without it a cost is not stored.
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
    retry_after_seconds: float | None = None
    message_left: bool | None = None
    do_not_call: bool = False
    telephony_id: str | None = None
    raw: Any = None
    transcript: str | None = None
    cost: Decimal | None = None
    cost_currency: str | None = None

    @property
    def lacks_analysis(self) -> bool:
        """Whether the call was answered and has ended, without the provider's analysis yet."""
        return self.status is CallStatus.COMPLETED and self.outcome is None and self.summary is None


Report = MessageReport | CallReport


@attrs.frozen(kw_only=True)
class ProviderFailure:
    """A failed or unfinished request, as the provider reported it.

    Attributes:
        provider: The carrier or voice provider.
        reason: Failure class, or why it was deferred or is unknown.
        error_code: The provider's own code or reason, unchanged; None if none.
        error_message: The provider's own words; None if none.
        meaning: What that means, a sentence or two; None if unknown.
        advice: What to do about it, a sentence or two; None if unknown.
        source: URL of the provider's page of codes; None if only the failure class is explained.
    """

    provider: str
    reason: str | None
    error_code: str | None
    error_message: str | None
    meaning: str | None = None
    advice: str | None = None
    source: str | None = None


@attrs.frozen(kw_only=True)
class RecipientOutcome:
    """A recipient with its provider's latest report.

    Attributes:
        failure: Of the last request; None if it was accepted and has not failed since, or if there was none.
        report: The carrier's report on an accepted message; None before, and for calls.
    """

    recipient: Recipient
    failure: ProviderFailure | None
    report: MessageStatus | None = None


@attrs.frozen(kw_only=True)
class Explanation:
    """The meaning of a provider's error, and the advice about it.

    Attributes:
        meaning: A sentence or two.
        advice: A sentence or two.
        source: URL of the provider's page of codes; None if only the failure class is explained.
    """

    meaning: str
    advice: str
    source: str | None = None


@attrs.frozen(kw_only=True)
class CallbackRecord:
    """One event of a provider's callback, as received.

    Attributes:
        event_id: Unique in the account: a repeated event is dropped, unless the first could not be matched.
        body: The verified bytes of the callback.
        report: The report of an unmatched event, merged when a dispatch gets the provider id that it names; else None.
    """

    workspace_id: str
    account_id: str
    event_id: str
    result: CallbackResult
    body: bytes = attrs.field(repr=False)
    received_at: datetime
    report: Report | None = attrs.field(default=None, repr=False)
