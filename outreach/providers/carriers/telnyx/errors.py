"""Classification of Telnyx's error codes.

https://developers.telnyx.com/docs/messaging/messages/error-codes and
https://developers.telnyx.com/development/api-fundamentals/api-errors
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from outreach.models.dispatch import FAILURE_CLASSES, FailureClass
from outreach.providers.carriers.base import LimitReset
from outreach.providers.http.callback_bodies import text_in

FAILURES: Final[Mapping[str, FailureClass]] = MappingProxyType(
    {
        # The request.
        "10001": "rejected",  # an inactive number
        "10002": "invalid_number",
        "10009": "provider_auth",
        "10010": "provider_auth",
        "10011": "rate_limited",
        "10016": "invalid_number",  # not in +E.164 format
        # The account.
        "20002": "provider_auth",  # key revoked
        "20006": "provider_auth",  # token expired
        "20012": "provider_funds",  # account inactive, mostly for want of funds
        "20013": "provider_funds",  # account blocked
        "20014": "provider_auth",  # account not verified
        "20015": "provider_auth",  # feature not enabled
        "20016": "provider_auth",
        "20017": "provider_auth",
        "20100": "provider_funds",
        # The delivery; some also come at once.
        "40001": "invalid_number",  # a landline, or not routable
        "40002": "filtered",
        "40003": "filtered",
        "40004": "unreachable",
        "40005": "unreachable",  # expired on its way
        "40006": "unreachable",
        "40008": "unreachable",
        "40009": "bad_body",
        "40010": "filtered",  # a number without a 10DLC registration
        "40011": "rate_limited",
        "40012": "invalid_number",
        "40013": "bad_sender",
        "40014": "unreachable",  # expired in the queue
        "40015": "filtered",
        "40016": "rate_limited",  # T-Mobile's daily limit
        "40017": "filtered",
        "40018": "rate_limited",  # AT&T's limit
        "40100": "bad_sender",
        "40150": "bad_sender",
        "40151": "bad_sender",
        "40300": "opted_out",
        "40301": "invalid_number",  # takes no message of this type
        "40302": "bad_body",
        "40304": "bad_body",
        "40305": "bad_sender",
        "40306": "bad_sender",
        "40308": "bad_sender",
        "40309": "bad_sender",  # the profile does not send to this region
        "40310": "invalid_number",
        "40311": "bad_sender",
        "40312": "bad_sender",  # the profile is disabled
        "40313": "bad_sender",
        "40314": "provider_auth",  # messaging is disabled on the account
        "40315": "bad_sender",
        "40316": "bad_body",
        "40317": "bad_body",
        "40318": "rate_limited",  # the queue is full
        "40319": "bad_sender",  # this sender cannot reach this number
        "40320": "bad_sender",
        "40321": "bad_sender",
        "40322": "filtered",
        "40328": "bad_body",
        "40329": "bad_sender",  # a toll-free number that is not verified
    }
)
"""Failure class by code; other codes go by the HTTP status."""

AMBIGUOUS: Final = frozenset({"10007", "10008"})
"""An error or timeout at Telnyx: whatever the status, the outcome is unknown."""

_RANKS: Final = {reason: rank for rank, reason in enumerate(FAILURE_CLASSES)}

_OF_A_NUMBER: Final = frozenset({"10001", "10002", "10016"})
_BY_POINTER: Final[Mapping[str, FailureClass]] = {"/from": "bad_sender", "/to": "invalid_number"}
_STOP: Final = "40300"


def failure_class(error: Mapping[str, Any]) -> FailureClass | None:
    """Return the failure class of one of the `errors` of a response or event; None for an unknown code."""
    code = error.get("code")
    if not isinstance(code, str):
        return None
    source = error.get("source")
    pointer = source.get("pointer") if isinstance(source, dict) else None
    if code in _OF_A_NUMBER and isinstance(pointer, str):
        # These codes name a wrong number, and the pointer says which.
        return _BY_POINTER.get(pointer, FAILURES[code])
    title = error.get("title")
    if code == _STOP and isinstance(title, str) and "stop" not in title.lower():
        # Networks use this code for other blocks too, so nobody is unsubscribed by it.
        return "rejected"
    return FAILURES.get(code)


def deciding_error(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the one of the `errors` of a response, event or record that decides; empty if there is none.

    An ambiguous one goes first: beside it nothing proves that the message was not sent. Of equal ones the first counts.
    """
    errors = event.get("errors")
    found = errors if isinstance(errors, list) else [errors]
    # Detail records have bare codes.
    known = [{"code": one} if isinstance(one, str) else one for one in found if isinstance(one, str | dict)]
    return min(known, key=_rank, default={})


def _rank(error: Mapping[str, Any]) -> int:
    if text_in(error, "code") in AMBIGUOUS:
        return -1
    reason = failure_class(error)
    return len(_RANKS) if reason is None else _RANKS[reason]


LIMIT_RESETS: Final[Mapping[str, LimitReset]] = MappingProxyType(
    {"40011": "minute", "40016": "pacific_midnight", "40018": "minute"}
)
"""When the limits of networks end, by their codes."""
