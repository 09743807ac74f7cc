"""What Retell's reasons to disconnect, its statuses and its refusals mean.

The list of reasons grew from 31 to 39 within half a year: what is not in the table is a failure of the provider's.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from outreach.models.dispatch import FailureClass
from outreach.models.states import CallStatus
from outreach.voice.base import (
    ANSWERED_BY_PERSON,
    BLOCKED,
    BUSY,
    CANCELED,
    CAPACITY,
    DECLINED,
    DO_NOT_CALL,
    FAILED_AT_PROVIDER,
    FUNDS,
    INVALID_NUMBER,
    MACHINE,
    NO_ANSWER,
    NOT_CONNECTED,
    CallEnd,
)

ENDS: Final[Mapping[str, CallEnd]] = MappingProxyType(
    {
        "user_hangup": ANSWERED_BY_PERSON,
        "agent_hangup": ANSWERED_BY_PERSON,
        "inactivity": ANSWERED_BY_PERSON,
        "max_duration_reached": ANSWERED_BY_PERSON,
        "user_requested_callback": ANSWERED_BY_PERSON,
        "call_transfer": ANSWERED_BY_PERSON,
        "call_take_over": ANSWERED_BY_PERSON,
        "transfer_bridged": ANSWERED_BY_PERSON,
        "transfer_cancelled": ANSWERED_BY_PERSON,
        "voicemail_reached": MACHINE,
        "ivr_reached": MACHINE,
        "dial_no_answer": NO_ANSWER,
        "registered_call_timeout": NO_ANSWER,
        "dial_busy": BUSY,
        "user_declined": DECLINED,
        "invalid_destination": INVALID_NUMBER,
        "user_requested_dnc": DO_NOT_CALL,
        "marked_as_spam": BLOCKED,
        "network_blocked": BLOCKED,
        "scam_detected": BLOCKED,
        "telephony_provider_permission_denied": BLOCKED,
        "concurrency_limit_reached": CAPACITY,
        "no_concurrency_fallback": CAPACITY,
        "budget_reached": FUNDS,
        "credit_exhausted": FUNDS,
        "no_valid_payment": FUNDS,
        "dial_failed": NOT_CONNECTED,
        "sip_routing_error": NOT_CONNECTED,
        "telephony_provider_unavailable": NOT_CONNECTED,
        "manual_stopped": CANCELED,
    }
)
"""Reasons that stand for themselves."""

PARTS: Final[tuple[tuple[str, CallEnd], ...]] = (("error_", FAILED_AT_PROVIDER),)
"""How other reasons begin."""

STATUSES: Final[Mapping[str, CallStatus]] = MappingProxyType(
    {"registered": CallStatus.INITIATED, "ongoing": CallStatus.IN_PROGRESS}
)
"""Statuses of a call that has not ended."""

ENDED: Final[Mapping[str, CallEnd]] = MappingProxyType(
    {
        "ended": CallEnd(status=CallStatus.COMPLETED),
        "not_connected": NOT_CONNECTED,
        "error": FAILED_AT_PROVIDER,
    }
)
"""Statuses of a call that has ended, and what they mean where no reason is told."""


def call_end_for_reason(reason: str) -> CallEnd | None:
    """Return what a reason means; None for one that the table lacks."""
    return ENDS.get(reason) or next((end for part, end in PARTS if reason.startswith(part)), None)


def end_of(status: str, reason: str | None) -> CallEnd:
    """Return how a call ended, by its reason and else by its status."""
    if reason is None:
        return ENDED.get(status, FAILED_AT_PROVIDER)
    return call_end_for_reason(reason) or FAILED_AT_PROVIDER


_REFUSALS: Final[tuple[tuple[tuple[str, ...], FailureClass], ...]] = (
    (("concurren",), "rate_limited"),
    (("rate limit",), "rate_limited"),
    (("do_not_call",), "opted_out"),
    (("do not call",), "opted_out"),
    (("payment",), "provider_funds"),
    (("credit",), "provider_funds"),
    (("to_number",), "invalid_number"),
    (("destination",), "invalid_number"),
    (("from_number",), "bad_sender"),
    (("from number",), "bad_sender"),
    (("agent",), "bad_sender"),
    (("cannot find requested asset",), "bad_sender"),
)
"""Words of the messages of a 400 and a 422, which have no code: the first row of which all words occur decides.

Two of them are from the published document; the others are the names of fields. What none of the rows has goes by its
status. `dnc` is in no row: a field of ours has it in its name, and an
opt-out puts the contact on the register for good.
"""


def refusal_class(message: str) -> FailureClass | None:
    """Return what a refusal is by its message; None where its status has to tell."""
    said = message.lower()
    return next((reason for words, reason in _REFUSALS if all(word in said for word in words)), None)
