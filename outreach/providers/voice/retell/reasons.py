"""The meanings of Retell's disconnection reasons, statuses and refusals.

The list of reasons grew from 31 to 39 in half a year: an unknown one is a failure of the provider.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from outreach.models.states import CallStatus
from outreach.providers.voice.base import (
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
    MENU,
    NO_ANSWER,
    NOT_CONNECTED,
    CallEnd,
    RefusalWords,
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
        "ivr_reached": MENU,
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
"""Reasons by their full value."""

PARTS: Final[tuple[tuple[str, CallEnd], ...]] = (("error_", FAILED_AT_PROVIDER),)
"""Other reasons by their prefix."""

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
"""Statuses of an ended call, with their meaning without a reason."""


def call_end_for_reason(reason: str) -> CallEnd | None:
    """Return the meaning of a reason; None for an unknown one."""
    return ENDS.get(reason) or next((end for part, end in PARTS if reason.startswith(part)), None)


def end_of(status: str, reason: str | None) -> CallEnd:
    """Return how a call ended, by its reason, else by its status."""
    if reason is None:
        return ENDED.get(status, FAILED_AT_PROVIDER)
    return call_end_for_reason(reason) or FAILED_AT_PROVIDER


REFUSALS: Final[RefusalWords] = (
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
"""Words of the messages of a 400 and a 422, which have no code: the first row whose words all occur decides.

Two rows are from the published API description; the others are field names. Other messages go by the status. `dnc` is
not a row: one of our fields contains it, and an opt-out unsubscribes the contact for good.
"""
