"""Calls, single or of a campaign."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final, Literal

import attrs

from outreach.models.campaign import MAX_EXTERNAL_ID
from outreach.models.fields import Checked, Text, ruled, sized
from outreach.models.metadata import METADATA
from outreach.models.states import ENDED_CALL_STATUSES, CallStatus

CallOutcome = Literal["positive", "negative", "callback", "voicemail", "busy", "no_answer", "declined", "failed"]
"""`callback`: somebody answered, and asks to be called again."""

CallOutcomeFilter = Literal[CallOutcome, "unknown"]
"""The outcome that a list of calls is filtered by; `unknown` stands for no outcome."""

CallVerdict = Literal["positive", "negative", "callback", "voicemail"]
"""The verdict on an answered call after its end."""

MAX_TRANSCRIPT: Final = 100_000
"""Code points of a stored transcript; the rest of a longer one is cut off."""


_TOO_MUCH: Final = 1_000_000


def is_cost(amount: Decimal) -> bool:
    """Return whether an amount can be what a provider charges for a call; a millionth is the smallest part stored."""
    return amount.is_finite() and 0 <= amount < _TOO_MUCH


@attrs.frozen(kw_only=True)
class Call:
    """A call record.

    Attributes:
        campaign_id: The call's campaign; None for a single call.
        position: The recipient's position in that campaign.
        provider: The agent's voice provider, also in a sandbox.
        provider_call_id: The provider's id; None until it is known.
        to: E.164.
        from_number: Caller ID; None for the provider's default.
        outcome: The analyser's result, or the one of `calls.set_outcome`; None before the end of the call and when
            unknown.
        answered_by: `human`, `machine` or None.
        variables: Template variables, as text.
        attempt: The number of the attempt, from 1.
        tries: Dispatches opened, deferred ones included.
        error: Why it failed or was canceled, for people; else None.
        cost: The provider's charge, in `cost_currency`; None if it does not say.
        cost_currency: ISO 4217, such as `USD`.
        external_id: The application's own name of a single call; need not be unique.
        metadata: What the application attached to a single call.
        judged_at: When `calls.set_outcome` gave the outcome, which is final then; None for any other outcome.
    """

    id: str
    workspace_id: str
    agent_id: str
    campaign_id: str | None = None
    position: int | None = None
    provider: str
    provider_call_id: str | None = None
    to: str
    from_number: str | None = None
    status: CallStatus = CallStatus.QUEUED
    outcome: CallOutcome | None = None
    answered_by: str | None = None
    variables: Mapping[str, str] = attrs.field(factory=dict)
    attempt: int = 1
    tries: int = 0
    error: str | None = None
    summary: str | None = None
    created_at: datetime
    dialed_at: datetime | None = None
    answered_at: datetime | None = None
    ended_at: datetime | None = None
    cost: Decimal | None = None
    cost_currency: str | None = None
    judged_at: datetime | None = None
    external_id: str | None = None
    metadata: Mapping[str, Any] | None = None

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""
        return self.status not in ENDED_CALL_STATUSES

    @property
    def duration_ms(self) -> int | None:
        """Whole milliseconds from answer to end; None while it has not ended or was never answered."""
        if self.answered_at is None or self.ended_at is None:
            return None
        return max(0, (self.ended_at - self.answered_at) // timedelta(milliseconds=1))

    @property
    def duration_seconds(self) -> int | None:
        """`duration_ms` to the nearest second, half a second up."""
        return None if self.duration_ms is None else (self.duration_ms + 500) // 1000


DIALABLE: Final = re.compile(r"\+?[1-9][0-9]{6,14}")
"""The form of the numbers that the interface takes."""

DIALABLE_NUMBER: Final = Text(
    pattern=DIALABLE, meaning="must be 7 to 15 digits with an optional leading +, like +14155550102"
)


@attrs.frozen(kw_only=True)
class NewCall(Checked):
    """A call to create with POST /calls (docs/interface.md#4.1).

    Attributes:
        to: A number that matches the interface's pattern.
        variables: Any JSON values; passed on as text.
        external_id: The application's own name of the call; need not be unique.
        metadata: A JSON object to keep with it, at most 4,096 bytes.
    """

    agent_id: str
    to: str = ruled(DIALABLE_NUMBER)
    variables: Mapping[str, Any] = attrs.field(factory=dict)
    external_id: str | None = sized(1, MAX_EXTERNAL_ID, default=None)
    metadata: Mapping[str, Any] | None = ruled(METADATA, default=None)


@attrs.frozen(kw_only=True)
class NewCallOutcome(Checked):
    """A verdict on a call that has ended.

    Attributes:
        summary: Replaces the call's; None keeps it.
    """

    outcome: CallVerdict
    summary: str | None = sized(1, 4000, default=None)
