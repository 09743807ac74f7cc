"""Sends one request to a provider, once, with the outcome classes that all providers share.

By docs/delivery-contract.md#rule-5, a clear response decides; a request that was certainly never written is `not_sent`;
everything else, such as a 5xx or an unreadable response, is `unknown`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from outreach.core.clock import Clock
from outreach.models.dispatch import DispatchOutcome, FailureClass
from outreach.models.states import DispatchState
from outreach.providers.http.json_fields import MILLISECOND_THRESHOLD

if TYPE_CHECKING:
    import httpx

_MAX_RETRY_AFTER_SECONDS: Final = 86_400.0
_MESSAGE_LENGTH: Final = 300


class UnreadableResponse(Exception):
    """A success response without its required fields: the outcome is unknown."""


async def send_once(
    http: httpx.AsyncClient, request: httpx.Request, read: Callable[[httpx.Response], DispatchOutcome], *, clock: Clock
) -> DispatchOutcome:
    """Make one request and return its outcome; never raises for anything that the provider or the network does.

    Args:
        http: The client; redirects are not followed.
        request: Built by the same client.
        read: Turns a response below 500 into an outcome; an error in it makes the outcome `unknown`.
        clock: For a `Retry-After` that is a date.
    """
    import httpx

    from outreach.providers.http.client import NOT_SENT_ERRORS, ResponseTooLarge

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
        # The request arrived, but the response is malformed.
        return DispatchOutcome(state=DispatchState.UNKNOWN, reason="unreadable", error_code=str(response.status_code))


async def fetch_json(http: httpx.AsyncClient, request: httpx.Request) -> Any:
    """Make one request that changes nothing; return the JSON of a successful response, else None."""
    import httpx

    try:
        response = await http.send(request, follow_redirects=False)
        return response.json() if response.is_success else None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError):
        return None


def _retry_after_of_503(response: httpx.Response, now: datetime) -> float | None:
    """Return the `Retry-After` of a 503 response, for which RFC 9110 defines it."""
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
    reset_seconds: float | None = None,
) -> DispatchOutcome:
    """Return the outcome of a refusal, by the provider's code if it is known, else by the HTTP status.

    A 408 without a known code is no refusal: the request may have been worked on, so its outcome is unknown.

    Args:
        reason: The failure class of the provider's code; None for an unknown code.
        response: A response with a status of 400 to 499.
        now: For a `Retry-After` that is a date.
        code: The provider's own code.
        message: The provider's own words; cut, for the ledger.
        account_wide: Whether a limit throttles the account, not only one sending number.
        reset_seconds: How long a limit lasts by its code; the longer of this and the response's own time counts.
    """
    if reason is None and response.status_code == HTTPStatus.REQUEST_TIMEOUT:
        # Of a request that did not arrive in time, and by frameworks of work that took too long, which goes on.
        return DispatchOutcome(state=DispatchState.UNKNOWN, reason="timeout", error_code=code or "408")
    reason = reason or _BY_STATUS.get(response.status_code, "rejected")
    deferred = reason == "rate_limited"
    waits = [seconds for seconds in (retry_after(response.headers, now=now), reset_seconds) if seconds is not None]
    return DispatchOutcome(
        state=DispatchState.DEFERRED if deferred else DispatchState.REFUSED,
        reason=reason,
        error_code=code or str(response.status_code),
        error_message=message[:_MESSAGE_LENGTH] if message else None,
        retry_after_seconds=max(waits, default=None) if deferred else None,
        account_wide=account_wide,
    )


_BY_STATUS: Final[Mapping[int, FailureClass]] = {
    401: "provider_auth",
    402: "provider_funds",
    403: "provider_auth",
    429: "rate_limited",
}
"""An unknown code goes by its status; every other 4xx is a final refusal (docs/adding-a-provider.md#the-files)."""


def retry_after(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """Return how many seconds to wait; None if the response does not say.

    Reads `Retry-After` as seconds or a date (RFC 9110, 10.2.3), else the reset of rate-limit headers: seconds, or Unix
    time in seconds or milliseconds.
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
        # Without a zone it breaks the standard.
        return (moment - now).total_seconds() if moment.tzinfo is not None else None
    if seconds != seconds or seconds in {float("inf"), float("-inf")}:
        return None
    # Such a large reset is a time, in seconds or milliseconds.
    if seconds > MILLISECOND_THRESHOLD:
        return seconds / 1000 - now.timestamp()
    return seconds - now.timestamp() if seconds > _TIMESTAMP_THRESHOLD else seconds


_TIMESTAMP_THRESHOLD: Final = 1_000_000_000.0


def json_object(response: httpx.Response) -> Mapping[str, Any]:
    """Return a response's JSON object.

    Raises:
        UnreadableResponse: It has none.
    """
    try:
        value = response.json()
    except (ValueError, RecursionError):
        raise UnreadableResponse from None
    if not isinstance(value, dict):
        raise UnreadableResponse
    return value


def json_object_or_empty(response: httpx.Response) -> Mapping[str, Any]:
    """Return a refusal's JSON object; empty if it has none, since its status suffices."""
    try:
        return json_object(response)
    except UnreadableResponse:
        return {}


def text_of(value: object) -> str:
    """Return a value that must be a nonempty string.

    Raises:
        UnreadableResponse: It is not.
    """
    if not isinstance(value, str) or not value:
        raise UnreadableResponse
    return value
