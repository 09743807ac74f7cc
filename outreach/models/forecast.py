"""When a campaign will be done, hour by hour, and what limits it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import attrs

from outreach.models.base import Channel
from outreach.models.states import HeldBackRule

BindingRule = Literal[
    HeldBackRule, "pace", "sender_rate", "business_hours", "holidays", "batch_concurrency", "retry", "flow"
]
"""The rule that delays a campaign.

`pace` is `sms_rate_per_minute`; `sender_rate` the rate of the sending number, shared in turns with other campaigns;
`retry` the delay between attempts; `flow` the waits between a flow's messages; `unclear_reply` a person's decision.
"""


@attrs.frozen(kw_only=True)
class ForecastAssumptions:
    """The assumptions of a forecast; once a campaign runs, its own figures replace them.

    Attributes:
        answer_rate: The share of calls that somebody answers; 0 to 1.
        call_seconds: From the request to the end of an answered call.
        ring_seconds: From the request to the end of a call that nobody answers, which is tried again.
        failure_rate: The share of messages that fail for now, and are tried again where the settings say so; 0 to 1.
        receipt_seconds: How long after a message its receipt comes, which ends the contact where retry is on.
    """

    answer_rate: float = 0.4
    call_seconds: float = 90.0
    ring_seconds: float = 30.0
    failure_rate: float = 0.02
    receipt_seconds: float = 5.0


@attrs.frozen(kw_only=True)
class ForecastHour:
    """One hour of a forecast.

    Attributes:
        at: Its beginning, on the hour in UTC.
        requests: Messages sent or calls placed in it, retries included.
        bound_by: The rule that delays the campaign for most of the hour.
    """

    at: datetime
    requests: int
    bound_by: BindingRule


@attrs.frozen(kw_only=True)
class ForecastPhase:
    """A stretch of time in which the same rule binds, at the grain of an hour."""

    begins_at: datetime
    ends_at: datetime
    bound_by: BindingRule
    requests: int


@attrs.frozen(kw_only=True)
class Forecast:
    """When a campaign will be done if nothing changes.

    Attributes:
        at: When it was worked out.
        starts_at: The first request; None if there is none before the campaign expires, or nothing is left.
        ends_at: When the last contact that is not held has ended, or the campaign expires; None if it does not end
            within the horizon, or if all contacts that are left are held.
        contacts: Contacts that are left, without those that are held.
        requests: Messages or calls, retries included.
        unreached: Contacts that expiry, or the horizon, leaves without a first contact.
        held: Contacts that wait until a person has decided about their reply (docs/opt-out.md).
        expires: Whether the campaign expires before it is done.
        hours: The curve, hour by hour from the start to the last request, at most 10,000.
        phases: The same by what binds.
        shared_with: Other campaigns that take turns at the sending number.
        measured: Which assumptions are the campaign's own figures.
        sampled: Whether the contacts' time zones were taken from a sample of them.
    """

    campaign_id: str | None
    channel: Channel
    at: datetime
    starts_at: datetime | None
    ends_at: datetime | None
    contacts: int
    requests: int
    unreached: int
    held: int
    expires: bool
    hours: Sequence[ForecastHour]
    phases: Sequence[ForecastPhase]
    shared_with: int
    assumptions: ForecastAssumptions
    measured: tuple[str, ...]
    sampled: bool


ForecastReason = Literal["start", "change", "throttle"]
"""Why a forecast was made and kept: the campaign became active for the first time, was resumed or changed, or its
provider throttles."""


@attrs.frozen(kw_only=True)
class KeptForecast:
    """A forecast as it was when the campaign started, or after a change, in at most 720 steps of time.

    Attributes:
        at: When it was worked out.
        reason: Why.
        revision: The campaign's revision that it is about.
        starts_at, ends_at, contacts, requests, unreached, held, expires: As of `Forecast`; the requests of that of the
            start include those before it.
        step_hours: How many hours each of `hours` stands for: 1, or more in a long course.
        hours: The curve, without a gap; each with what binds for most of it.
    """

    campaign_id: str
    at: datetime
    reason: ForecastReason
    revision: int
    starts_at: datetime | None
    ends_at: datetime | None
    contacts: int
    requests: int
    unreached: int
    held: int
    expires: bool
    step_hours: int
    hours: Sequence[ForecastHour]
