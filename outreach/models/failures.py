"""A provider's failure of a request, with its explanation."""

from __future__ import annotations

import attrs

from outreach.models.recipient import Recipient
from outreach.models.states import MessageStatus


@attrs.frozen(kw_only=True)
class ProviderFailure:
    """A failed or unfinished request, as the provider reported it.

    Attributes:
        provider: The carrier or voice provider.
        reason: Failure class, or why it was deferred or is unknown.
        error_code: The provider's own code or reason, unchanged; None if none.
        error_message: The provider's own words; None if none.
        explanation: What that means and what to do; None if unknown.
    """

    provider: str
    reason: str | None
    error_code: str | None
    error_message: str | None
    explanation: Explanation | None


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
    """What a provider's error means, and what to do about it.

    Attributes:
        meaning: A sentence or two.
        advice: A sentence or two.
        source: URL of the provider's page of codes; None if only the failure class is explained.
    """

    meaning: str
    advice: str
    source: str | None = None
