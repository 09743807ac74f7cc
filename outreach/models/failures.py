"""What a provider said of a request that did not come to its end, with what it means."""

from __future__ import annotations

import attrs

from outreach.models.recipient import Recipient
from outreach.models.states import MessageStatus


@attrs.frozen(kw_only=True)
class ProviderFailure:
    """What a provider said of a request.

    Attributes:
        provider: The carrier or voice provider.
        reason: Failure class, or why it was put off or is unknown, in the engine's words.
        error_code: The provider's own code or reason, as it was given; None where there is none.
        error_message: The provider's own words; None where there are none, or they were not told.
        explanation: What that means and what to do; None where nothing is known of it.
    """

    provider: str
    reason: str | None
    error_code: str | None
    error_message: str | None
    explanation: Explanation | None


@attrs.frozen(kw_only=True)
class RecipientOutcome:
    """A recipient, and what its provider last said.

    Attributes:
        failure: Of a request that did not come to its end; None where its last request was accepted and has not failed
            since, and where there was none.
        report: Of a message that was accepted: what the carrier has told since; None for nothing yet, and of calls.
    """

    recipient: Recipient
    failure: ProviderFailure | None
    report: MessageStatus | None = None


@attrs.frozen(kw_only=True)
class Explanation:
    """What an error of a provider means, and what to do about it.

    Attributes:
        meaning: A sentence or two.
        advice: The same, of what can be done.
        source: The provider's page of its codes; None where the error is explained by its failure class alone.
    """

    meaning: str
    advice: str
    source: str | None = None
