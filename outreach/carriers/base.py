"""What the adapters of carriers share: remaining time, callback URLs, outcomes without a request."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import attrs

from outreach.models.dispatch import DispatchOutcome, FailureClass
from outreach.models.states import DispatchState
from outreach.protocols.carrier import LookupRequest
from outreach.wire.sending import UnreadableResponse, json_object

if TYPE_CHECKING:
    import httpx

TRANSIT_SECONDS: Final = 5
"""The longest a request may take to arrive; the carrier counts from then, and must end before `not_after`."""

TOO_LATE: Final = DispatchOutcome(state=DispatchState.NOT_SENT, reason="too_late")
"""Too little time is left before `not_after` to give the carrier a validity: no request was made."""

CLOCK_SKEW_BEFORE: Final = timedelta(seconds=5)
CLOCK_SKEW_AFTER: Final = timedelta(seconds=60)
"""The largest difference between the carrier's clock and ours in look-ups by time, back and ahead."""

DISPATCH_PARAMETER: Final = "dispatch"
"""The parameter of the callback URL that returns our dispatch id."""


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


def refused_after_accept(
    reason: FailureClass | None, *, provider_id: str | None, code: str | None, message: str | None = None
) -> DispatchOutcome:
    """Return the outcome of a message that the carrier accepted and that has already failed for good."""
    passing = reason in {"rate_limited", "unreachable"}
    return DispatchOutcome(
        state=DispatchState.REFUSED,
        provider_id=provider_id,
        reason="temporary" if passing else reason or "rejected",
        error_code=code,
        error_message=message[:300] if message else None,
    )


def refusal_class(reason: FailureClass | None) -> FailureClass | None:
    """Return the class of a refusal: an immediate `unreachable` is `temporary`."""
    return "temporary" if reason == "unreachable" else reason


def as_circumstantial(found: DispatchOutcome | None) -> DispatchOutcome | None:
    """Mark the outcome of a record without our id, which is evidence only if no other dispatch matches."""
    return None if found is None else attrs.evolve(found, circumstantial=True)


def in_window(moment: datetime | None, lookup: LookupRequest) -> bool:
    """Return whether a record made at `moment` can belong to the dispatch looked up."""
    return moment is not None and lookup.since - CLOCK_SKEW_BEFORE <= moment <= lookup.until + CLOCK_SKEW_AFTER


async def fetch_json(http: httpx.AsyncClient, request: httpx.Request) -> Mapping[str, Any] | None:
    """Make one look-up request; return the object of a successful response, else None."""
    import httpx

    try:
        response = await http.send(request, follow_redirects=False)
        return json_object(response) if response.is_success else None
    except (httpx.HTTPError, httpx.InvalidURL, UnreadableResponse):
        return None
