"""One request to a provider, once, and the outcome classes that no provider decides for itself.

The rule is docs/delivery-contract.md#rule-5: what the provider says clearly is an outcome; a request that was
certainly never written is `not_sent`; everything else, a 5xx and an answer that cannot be read among it, is `unknown`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from outreach.clock import Clock
from outreach.models.dispatch import DispatchOutcome, FailureClass
from outreach.models.states import DispatchState
from outreach.wire.json_fields import MILLISECOND_THRESHOLD

if TYPE_CHECKING:
    import httpx

_MAX_RETRY_AFTER_SECONDS: Final = 86_400.0
_MESSAGE_LENGTH: Final = 300


class UnreadableResponse(Exception):
    """An answer of success that does not have what it must have: nobody can tell what the provider did."""


async def send_once(
    http: httpx.AsyncClient, request: httpx.Request, read: Callable[[httpx.Response], DispatchOutcome], *, clock: Clock
) -> DispatchOutcome:
    """Make one request and return what became of it.

    Args:
        http: The client; the redirects that it may follow elsewhere are not followed here.
        request: Built by the same client.
        read: Turns an answer below 500 into an outcome; an error of its own makes it `unknown`.
        clock: To read a `Retry-After` that is a date.

    Returns:
        The outcome; nothing is raised for anything that the provider or the network does.
    """
    import httpx

    from outreach.wire.client import NOT_SENT_ERRORS, ResponseTooLarge

    try:
        response = await http.send(request, follow_redirects=False)
    except NOT_SENT_ERRORS as error:
        return DispatchOutcome(state=DispatchState.NOT_SENT, reason="not_connected", error_code=type(error).__name__)
    except ResponseTooLarge as error:
        return DispatchOutcome(state=DispatchState.UNKNOWN, reason="unreadable", error_code=type(error).__name__)
    except httpx.TimeoutException as error:
        return DispatchOutcome(state=DispatchState.UNKNOWN, reason="timeout", error_code=type(error).__name__)
    except httpx.RequestError as error:
        return DispatchOutcome(state=DispatchState.UNKNOWN, reason="dropped", error_code=type(error).__name__)
    if response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return DispatchOutcome(
            state=DispatchState.UNKNOWN,
            reason="provider_error",
            error_code=str(response.status_code),
            retry_after_seconds=_retry_after_of_503(response, clock.now()),
        )
    try:
        return read(response)
    except (UnreadableResponse, ValueError, KeyError, TypeError, AttributeError, IndexError):
        # The request arrived and was answered with something that is no answer to it.
        return DispatchOutcome(state=DispatchState.UNKNOWN, reason="unreadable", error_code=str(response.status_code))


def _retry_after_of_503(response: httpx.Response, now: datetime) -> float | None:
    """Return when a provider that is out of order wants to be asked again: the header is one for 503 (RFC 9110)."""
    if response.status_code != HTTPStatus.SERVICE_UNAVAILABLE:
        return None
    return retry_after({"retry-after": response.headers.get("retry-after", "")}, now=now)


def refusal(
    reason: FailureClass | None,
    response: httpx.Response,
    *,
    now: datetime,
    code: str | None = None,
    message: str | None = None,
    account_wide: bool = True,
) -> DispatchOutcome:
    """Return the outcome of an answer that says no: by its own code where that is known, else by its status.

    Args:
        reason: The failure class of the provider's code; None for a code that no table has.
        response: The answer, with a status of 400 to 499.
        now: To read a `Retry-After` that is a date.
        code: The provider's own code.
        message: The provider's own words; cut, for the ledger.
        account_wide: Whether a limit is the account's, and not that of one sending number.
    """
    reason = reason or _BY_STATUS.get(response.status_code, "rejected")
    deferred = reason == "rate_limited"
    return DispatchOutcome(
        state=DispatchState.DEFERRED if deferred else DispatchState.REFUSED,
        reason=reason,
        error_code=code or str(response.status_code),
        error_message=message[:_MESSAGE_LENGTH] if message else None,
        retry_after_seconds=retry_after(response.headers, now=now) if deferred else None,
        account_wide=account_wide,
    )


_BY_STATUS: Final[Mapping[int, FailureClass]] = {
    401: "provider_auth",
    402: "provider_funds",
    403: "provider_auth",
    408: "temporary",
    429: "rate_limited",
}
"""docs/adding-a-provider.md#the-files: an unknown code goes by its status; every other 4xx is a refusal for good."""


def retry_after(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Return how many seconds a provider wants us to wait; None when it does not say.

    Reads `Retry-After` as seconds and as a date (RFC 9110, 10.2.3), and else the reset of limit headers: in seconds, or
    a moment in Unix time, in seconds or milliseconds.
    """
    for name in ("retry-after", "x-ratelimit-reset", "ratelimit-reset"):
        text = headers.get(name, "").strip()
        if not text:
            continue
        seconds = _seconds(text, now)
        if seconds is not None:
            return min(max(seconds, 0.0), _MAX_RETRY_AFTER_SECONDS)
    return None


def _seconds(text: str, now: datetime) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        try:
            moment = parsedate_to_datetime(text)
        except (ValueError, OverflowError):
            return None
        # A date without a zone is not what the standard allows; who knows what it means.
        return (moment - now).total_seconds() if moment.tzinfo is not None else None
    if seconds != seconds or seconds in {float("inf"), float("-inf")}:
        return None
    # A reset that is so large is a moment, not a wait; and one that is larger still is one in milliseconds.
    if seconds > MILLISECOND_THRESHOLD:
        return seconds / 1000 - now.timestamp()
    return seconds - now.timestamp() if seconds > _TIMESTAMP_THRESHOLD else seconds


_TIMESTAMP_THRESHOLD: Final = 1_000_000_000.0


def json_object(response: httpx.Response) -> Mapping[str, Any]:
    """Return the JSON object that an answer holds.

    Raises:
        UnreadableResponse: It holds none.
    """
    try:
        value = response.json()
    except (ValueError, RecursionError):
        raise UnreadableResponse from None
    if not isinstance(value, dict):
        raise UnreadableResponse
    return value


def json_object_or_empty(response: httpx.Response) -> Mapping[str, Any]:
    """Return the JSON object of a refusal; an empty one where it has none, for its status tells enough."""
    try:
        return json_object(response)
    except UnreadableResponse:
        return {}


def text_of(value: object) -> str:
    """Return a value of an answer that must be a text with something in it.

    Raises:
        UnreadableResponse: It is none.
    """
    if not isinstance(value, str) or not value:
        raise UnreadableResponse
    return value
