"""Shared parts of the carrier adapters: remaining time, callback URLs, outcomes without a request."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import datetime, time, timedelta
from typing import Final, Literal
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import attrs

from outreach.models.dispatch import DispatchOutcome, FailureClass
from outreach.models.message import Keyword
from outreach.models.states import DispatchState
from outreach.protocols.carrier import LookupRequest
from outreach.protocols.sent_list import SentQuery

TRANSIT_SECONDS: Final = 5
"""The longest a request may take to arrive; the carrier counts from then, and must end before `not_after`."""

TOO_LATE: Final = DispatchOutcome(state=DispatchState.NOT_SENT, reason="too_late")
"""Too little time is left before `not_after` to give the carrier a validity: no request was made."""

CLOCK_SKEW_BEFORE: Final = timedelta(seconds=5)
CLOCK_SKEW_AFTER: Final = timedelta(seconds=60)
"""The largest difference between the carrier's clock and ours in look-ups by time, back and ahead."""

DISPATCH_PARAMETER: Final = "dispatch"
"""The parameter of the callback URL that returns our dispatch id."""

KEYWORDS: Final[Mapping[str, Keyword]] = {"STOP": "stop", "START": "start", "HELP": "help"}
"""The keywords that a carrier has answered itself, by its names for them."""


def no_sender(what: str) -> DispatchOutcome:
    """Return the outcome of a message without a valid sender, for which no request is made."""
    return DispatchOutcome(state=DispatchState.REFUSED, reason="bad_sender", error_code="no_sender", error_message=what)


NO_SENDER: Final = no_sender("The message names no number or name to send from.")
"""The outcome at every real carrier: a campaign or message must name its sender (docs/interface.md#3)."""


def validity_seconds(not_after: datetime, *, now: datetime, least: int, most: int) -> int | None:
    """Return for how many whole seconds a carrier may try, so that it never does after `not_after`.

    Args:
        not_after: The carrier must not deliver later.
        now: The current time.
        least: The shortest validity that the carrier accepts, in seconds.
        most: The longest one, to which more is cut.

    Returns:
        The seconds; None if fewer than `least` are left.
    """
    left = int((not_after - now).total_seconds()) - TRANSIT_SECONDS
    return min(left, most) if left >= least else None


def dispatch_callback_url(callback_url: str, dispatch_id: str) -> str:
    """Return the callback URL of one dispatch."""
    return f"{callback_url}?{urlencode({DISPATCH_PARAMETER: dispatch_id})}"


def basic_auth(user: str, password: str) -> str:
    """Return the value of an `Authorization` header (RFC 7617)."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode("ascii")


LimitReset = Literal["minute", "hour", "pacific_midnight"]
"""When a limit of an account ends.

`minute`: networks count their rates by the minute. `hour`: a limit over the last 24 hours, which ends bit by bit.
`pacific_midnight`: a daily limit of the US networks, which ends at midnight in Los Angeles.
"""

_PACIFIC: Final = "America/Los_Angeles"


def seconds_to_reset(resets: Mapping[str, LimitReset], code: str | None, now: datetime) -> float | None:
    """Return for how many seconds an account has to wait after its limit was reached; None without a limit.

    Args:
        resets: When the limits of a carrier end, by its codes.
        code: The code of a failure; None without one.
        now: The time of the failure.
    """
    match resets.get(code or ""):
        case "minute":
            return 60.0
        case "hour":
            return 3600.0
        case "pacific_midnight":
            zone = ZoneInfo(_PACIFIC)
            tomorrow = now.astimezone(zone).date() + timedelta(days=1)
            return (datetime.combine(tomorrow, time(), tzinfo=zone) - now).total_seconds()
        case None:
            return None


def failed_after_accept(
    reason: FailureClass | None,
    *,
    provider_id: str | None,
    code: str | None,
    message: str | None = None,
    retry_after_seconds: float | None = None,
) -> DispatchOutcome:
    """Return the outcome of a message that the carrier accepted and that has already failed.

    One that failed at a limit, which `retry_after_seconds` may name, is deferred; every other is refused.
    """
    limited = reason == "rate_limited"
    return DispatchOutcome(
        state=DispatchState.DEFERRED if limited else DispatchState.REFUSED,
        provider_id=provider_id,
        reason=refusal_class(reason) or "rejected",
        error_code=code,
        error_message=message[:300] if message else None,
        retry_after_seconds=retry_after_seconds if limited else None,
        account_wide=retry_after_seconds is not None,
    )


def refusal_class(reason: FailureClass | None) -> FailureClass | None:
    """Return the class of a refusal: an immediate `unreachable` is `temporary`."""
    return "temporary" if reason == "unreachable" else reason


def as_circumstantial(found: DispatchOutcome | None) -> DispatchOutcome | None:
    """Mark the outcome of a record without our id, which is evidence only if no other dispatch matches."""
    return None if found is None else attrs.evolve(found, circumstantial=True)


def is_between(moment: datetime, query: SentQuery) -> bool:
    """Return whether something that the carrier took at `moment` may belong to a list, whatever its clock says."""
    return query.since - CLOCK_SKEW_BEFORE <= moment <= query.until + CLOCK_SKEW_AFTER


def in_window(moment: datetime | None, lookup: LookupRequest) -> bool:
    """Return whether a record made at `moment` can belong to the dispatch looked up."""
    return moment is not None and lookup.since - CLOCK_SKEW_BEFORE <= moment <= lookup.until + CLOCK_SKEW_AFTER
