"""The dispatch ledger: one dispatch is one request to a provider (docs/states.md#dispatches)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

import attrs

from outreach.models.base import Channel
from outreach.models.campaign import PauseReason
from outreach.models.fields import Checked, sized
from outreach.models.states import DispatchState, MessageStatus

FailureClass = Literal[
    "invalid_number",
    "opted_out",
    "unreachable",
    "filtered",
    "bad_sender",
    "bad_body",
    "rate_limited",
    "temporary",
    "provider_funds",
    "provider_auth",
    "provider_error",
    "rejected",
]
"""Failure class: why a provider refused, or failed later.

`provider_error` is for calls alone: a placed call ended by an error of the provider, or of our settings there.
"""


@attrs.frozen(kw_only=True)
class FailureTraits:
    """The consequences of a failure of one class.

    Attributes:
        passes: Whether a later attempt may overcome it.
        counts: Whether it counts against the campaign's error budget: it is the provider's or the account's, not the
            contact's.
        pauses: For a failure of the account: why all its campaigns pause. The contact's turn comes again when they are
            resumed.
        lasts: Whether the number cannot be reached on this channel in later campaigns either.
    """

    passes: bool = False
    counts: bool = False
    pauses: PauseReason | None = None
    lasts: bool = False


FAILURE_CLASSES: Final[Mapping[str, FailureTraits]] = MappingProxyType(
    {
        "opted_out": FailureTraits(),
        "provider_auth": FailureTraits(counts=True, pauses="provider_auth"),
        "provider_funds": FailureTraits(counts=True, pauses="provider_funds"),
        "bad_sender": FailureTraits(counts=True),
        "invalid_number": FailureTraits(lasts=True),
        "bad_body": FailureTraits(),
        "filtered": FailureTraits(),
        "rejected": FailureTraits(counts=True),
        "provider_error": FailureTraits(counts=True),
        "unreachable": FailureTraits(passes=True),
        "temporary": FailureTraits(passes=True),
        "rate_limited": FailureTraits(passes=True),
    }
)
"""All failure classes. Of several in one answer the first of this order decides: a STOP, then what is wrong for
everybody (the contact keeps its turn), then what is final for this message, then what passes."""

OperatorDecision = Literal["assume_sent", "retry"]
"""An operator's decision about a request whose outcome nobody knows."""


@attrs.frozen(kw_only=True)
class DispatchFilter(Checked):
    """Which requests an operator decides about at once; all conditions hold together, None is no condition.

    Attributes:
        campaign_id: Those of this campaign.
        provider: Those to this carrier or voice provider: a workspace has one account there.
        since: Those committed at this time or later.
        until: Those committed before this time.
        reason: Those with this reason or this error code of the provider; a decision replaces those of a
            provider by `assumed_sent` or `operator_retry`.
    """

    campaign_id: str | None = sized(1, 100, default=None)
    provider: str | None = sized(1, 100, default=None)
    since: datetime | None = None
    until: datetime | None = None
    reason: str | None = sized(1, 200, default=None)


@attrs.frozen(kw_only=True)
class DecisionResult:
    """The effect of a decision about many requests; each request has its own contact, single message or call.

    Attributes:
        changed: The requests that the decision changes.
        kept: The requests that stay as they are: before a retry, those that may still be on their way; before an undo,
            those whose contact was tried again, or that a provider has reported on since.
        becomes: The number of contacts, messages and calls by the state that they have afterwards.
    """

    changed: int = 0
    kept: int = 0
    becomes: Mapping[str, int] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class DispatchLookUp:
    """The result of the look-up of an unknown request.

    Attributes:
        dispatch: The request afterwards; still unknown without evidence.
        answer: The provider's answer: `accepted`, `refused` or `not_sent`; None if it had no evidence, or cannot be
            asked. Evidence that may be that of another request, or that is too early, leaves the request unknown.
    """

    dispatch: Dispatch
    answer: DispatchState | None


ASSUMED_SENT: Final = "assumed_sent"
"""Reason of an unknown dispatch that an operator took as accepted, without a report since."""

DECISION_UNDONE: Final = "decision_undone"
"""Reason of an unknown dispatch whose decision an operator has taken back."""

OPTED_OUT: Final[FailureClass] = "opted_out"
"""Failure class of a provider that knows of an opt-out, which is added to our register too."""


FROM_ELSEWHERE: Final = 0
"""The epoch of a request that a replaced database or a provider's list has brought; those of workers begin at 1."""


@attrs.frozen(kw_only=True)
class Dispatch:
    """One request to a provider, committed before it is sent.

    It belongs to a recipient (`campaign_id` and `position`), a message or a call; a campaign's call has both a
    recipient and a call record.

    Attributes:
        step: Index of the flow's step; 0 outside flows.
        attempt: The number of the step's attempt, from 1.
        leg: 1, or 2 for the second call of a double dial.
        try_number: The number of the dispatch in this attempt, from 1; more than one after deferrals.
        provider: Name of the carrier or voice provider.
        from_number: The sending number; None for the provider's default.
        to: E.164.
        body: The rendered message, footer included; None for calls.
        segments: SMS segments of the text; None for calls.
        state: What is known of the request.
        provider_id: The provider's id; None until it is known.
        report: The carrier's latest report on an accepted message; None before.
        reason: Failure class, or why it was deferred or withdrawn. None when accepted, unless the message or call
            failed later.
        error_code: The provider's own code, unchanged.
        slot_at: Its slot in the pace; the request starts no earlier.
        valid_until: The request starts no later.
        epoch: Epoch of the worker that committed it, or `FROM_ELSEWHERE`.
        settled_at: When its outcome was committed.
    """

    id: str
    workspace_id: str
    channel: Channel
    campaign_id: str | None = None
    position: int | None = None
    message_id: str | None = None
    call_id: str | None = None
    step: int = 0
    attempt: int = 1
    leg: int = 1
    try_number: int = 1
    provider: str
    from_number: str | None
    to: str
    body: str | None = None
    segments: int | None = None
    state: DispatchState = DispatchState.DISPATCHING
    provider_id: str | None = None
    report: MessageStatus | None = None
    reason: str | None = None
    error_code: str | None = None
    error_message: str | None = None
    slot_at: datetime
    valid_until: datetime
    epoch: int
    created_at: datetime
    settled_at: datetime | None = None

    @property
    def unsettled(self) -> bool:
        """Whether its outcome is still open; at most one such dispatch per recipient and step."""
        return self.state in {DispatchState.DISPATCHING, DispatchState.UNKNOWN}


@attrs.frozen(kw_only=True)
class DispatchCount:
    """The number of a campaign's requests with the same outcome.

    Attributes:
        report: The carrier's latest report on accepted messages; None before, and for calls.
        error_code: The provider's own code; for placed calls, why they failed or were canceled.
        error_message: The provider's words about one of them, if any.
    """

    provider: str
    state: DispatchState
    report: MessageStatus | None
    reason: str | None
    error_code: str | None
    error_message: str | None
    count: int


@attrs.frozen(kw_only=True)
class UnknownDispatchCount:
    """The number of a workspace's requests with an unknown outcome.

    Attributes:
        since: When the oldest was committed.
    """

    workspace_id: str
    count: int
    since: datetime


class RecentRequest(NamedTuple):
    """A request to a number, as the frequency cap counts it.

    Attributes:
        at: When its dispatch was created.
        in_flight: Whether it is still `dispatching`, and may turn out not to have been sent.
    """

    at: datetime
    in_flight: bool


@attrs.frozen(kw_only=True)
class DispatchOutcome:
    """The outcome of one request to a provider.

    Attributes:
        state: `accepted`, `refused`, `not_sent`, `withdrawn`, `deferred` or `unknown`.
        reason: Failure class of a refusal; why it was deferred, withdrawn or is unknown.
        retry_after_seconds: The provider's `Retry-After`; None if it named no time.
        account_wide: Whether a deferral throttles the whole account; False where only the sending number, or its
            traffic to one network, is at its limit.
        circumstantial: It was matched by numbers, text and time alone, so it is evidence only if no other dispatch
            matches.
    """

    state: DispatchState
    provider_id: str | None = None
    reason: str | None = None
    error_code: str | None = None
    error_message: str | None = None
    retry_after_seconds: float | None = None
    account_wide: bool = True
    circumstantial: bool = False
