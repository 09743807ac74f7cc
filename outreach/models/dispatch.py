"""The ledger's rows: one dispatch is one request to a provider (docs/states.md#dispatches)."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal, NamedTuple

import attrs

from outreach.models.base import Channel
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
"""Why a provider refused, or failed later, in the engine's words.

`provider_error` is of calls alone: one that had been placed ended by the fault of the provider or of our set-up there.
"""


ASSUMED_SENT: Final = "assumed_sent"
"""Reason of an unknown dispatch that an operator took as accepted: nobody has heard of it since."""

OPTED_OUT: Final[FailureClass] = "opted_out"
"""Failure class of a provider that knows of an opt-out: the number comes onto our own register too."""


@attrs.frozen(kw_only=True)
class Dispatch:
    """One request to a provider, committed before the provider hears of it.

    Exactly one of `campaign_id` with `position`, `message_id` and `call_id` names what it is for, but for
    calls of a campaign, which have both a recipient and a call record.

    Attributes:
        step: Index of the flow's step; 0 outside flows.
        attempt: Which attempt of the step this is, from 1.
        leg: 1, or 2 for the second call of a double dial.
        try_number: Which dispatch of this attempt it is, from 1; more than one after deferrals.
        provider: Name of the carrier or voice provider that is asked.
        from_number: The number it is sent from; None leaves it to the provider.
        to: E.164.
        body: The rendered text of a message, footer included; None for calls.
        segments: How many segments the text takes; None for calls.
        state: What is known of the request.
        provider_id: The provider's identifier; None until it is known.
        report: The latest that the carrier said of an accepted message; None before.
        reason: Failure class or why it was deferred or withdrawn; None when accepted, unless it is a call that was
            placed and then failed, or a message that was reported as failed and not as delivered since.
        error_code: The provider's own code, as it was given.
        slot_at: The pace slot that it took; the request starts no earlier.
        valid_until: No request starts after this.
        epoch: Fencing number of the worker that committed it.
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
        """Whether its outcome is not known: at most one such dispatch a recipient and step."""
        return self.state in {DispatchState.DISPATCHING, DispatchState.UNKNOWN}


@attrs.frozen(kw_only=True)
class DispatchCount:
    """How many requests of a campaign came to the same.

    Attributes:
        report: The latest that the carrier said of accepted messages; None before, and of calls.
        error_code: The provider's own code; of calls that were placed, the reason with which they failed or were
            canceled.
        error_message: The provider's words about one of them; None where it said nothing of any.
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
    """How many requests of a workspace wait for evidence of what became of them.

    Attributes:
        since: When the oldest of them was committed.
    """

    workspace_id: str
    count: int
    since: datetime


class RecentRequest(NamedTuple):
    """A request to a number, as the frequency cap counts them.

    Attributes:
        at: When its dispatch was created.
        in_flight: Whether it is `dispatching`, and may turn out to have reached nobody.
    """

    at: datetime
    in_flight: bool


@attrs.frozen(kw_only=True)
class DispatchOutcome:
    """What became of one request to a provider.

    Attributes:
        state: `accepted`, `refused`, `not_sent`, `withdrawn`, `deferred` or `unknown`.
        reason: Failure class of a refusal; why it was deferred, withdrawn or is unknown.
        retry_after_seconds: How long the provider wishes to be left alone; None when it named no time.
        account_wide: Whether a deferral is about everything that the account asks; False where only the sending
            number, or its traffic to one network, is at its limit.
        status: What the provider already says of the message or call; None when it says nothing.
        circumstantial: It was found by numbers, text and time alone: its record has no identifier of ours. It is
            evidence only where no other dispatch could be meant.
    """

    state: DispatchState
    provider_id: str | None = None
    reason: str | None = None
    error_code: str | None = None
    error_message: str | None = None
    retry_after_seconds: float | None = None
    account_wide: bool = True
    circumstantial: bool = False
