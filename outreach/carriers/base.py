"""What the adapters of real carriers share: the time left, our reference in a URL, outcomes that need no request."""

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
"""How long a request may take to arrive: the carrier counts from then, and must still end before `not_after`."""

TOO_LATE: Final = DispatchOutcome(state=DispatchState.NOT_SENT, reason="too_late")
"""So little is left before `not_after` that the carrier could not be told of it: nothing was asked."""

CLOCK_SKEW_BEFORE: Final = timedelta(seconds=5)
CLOCK_SKEW_AFTER: Final = timedelta(seconds=60)
"""How far the carrier's clock may be from ours where a look-up goes by time: the one back, the other ahead."""

DISPATCH_PARAMETER: Final = "dispatch"
"""The parameter of the callback's URL in which our identifier comes back."""


def no_sender(what: str) -> DispatchOutcome:
    """Return the outcome of a message that is not asked for, because what it names as its sender is none."""
    return DispatchOutcome(state=DispatchState.REFUSED, reason="bad_sender", error_code="no_sender", error_message=what)


NO_SENDER: Final = no_sender("The message names no number or name to send from.")
"""What every real carrier says to that: a campaign and a message name their sender (docs/interface.md#3)."""


def validity_seconds(not_after: datetime, *, now: datetime, least: int, most: int) -> int | None:
    """Return for how many whole seconds a carrier may try, so that it never does after `not_after`.

    Args:
        not_after: The carrier must not deliver later.
        now: The present moment.
        least: The shortest time that the carrier takes, in seconds.
        most: The longest one; where more is left, this.

    Returns:
        The seconds; None when fewer than `least` are left.
    """
    left = int((not_after - now).total_seconds()) - TRANSIT_SECONDS
    return min(left, most) if left >= least else None


def dispatch_callback_url(callback_url: str, dispatch_id: str) -> str:
    """Return where the carrier is to call back about one dispatch."""
    return f"{callback_url}?{urlencode({DISPATCH_PARAMETER: dispatch_id})}"


def basic_auth(user: str, password: str) -> str:
    """Return the value of an `Authorization` header (RFC 7617)."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode("ascii")


def refused_after_accept(
    reason: FailureClass | None, *, provider_id: str | None, code: str | None, message: str | None = None
) -> DispatchOutcome:
    """Return the outcome of a message that the carrier took, or has, and that has failed for good already.

    Whoever says that it failed says that it reached nobody; a cause that may pass is `temporary`.
    """
    passing = reason in {"rate_limited", "unreachable"}
    return DispatchOutcome(
        state=DispatchState.REFUSED,
        provider_id=provider_id,
        reason="temporary" if passing else reason or "rejected",
        error_code=code,
        error_message=message[:300] if message else None,
    )


def refusal_class(reason: FailureClass | None) -> FailureClass | None:
    """Return the class of a refusal: what is `unreachable` in a receipt is `temporary` when it is said at once."""
    return "temporary" if reason == "unreachable" else reason


def as_circumstantial(found: DispatchOutcome | None) -> DispatchOutcome | None:
    """Return what a record without an identifier of ours tells: evidence where no other dispatch could be meant."""
    return None if found is None else attrs.evolve(found, circumstantial=True)


def in_window(moment: datetime | None, lookup: LookupRequest) -> bool:
    """Return whether something that the carrier made at a moment can be what a look-up asks for."""
    return moment is not None and lookup.since - CLOCK_SKEW_BEFORE <= moment <= lookup.until + CLOCK_SKEW_AFTER


async def fetch_json(http: httpx.AsyncClient, request: httpx.Request) -> Mapping[str, Any] | None:
    """Make one request of a look-up; return the object of an answer of success, None for everything else."""
    import httpx

    try:
        response = await http.send(request, follow_redirects=False)
        return json_object(response) if response.is_success else None
    except (httpx.HTTPError, httpx.InvalidURL, UnreadableResponse):
        return None
