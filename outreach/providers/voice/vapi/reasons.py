"""The meanings of Vapi's ended reasons, statuses and refusals.

The list of `endedReason` had 627 values in 2026 and grows: it is read by table, then by the parts of the values; an
unknown one is a failure of the provider. In `call.forwarding.operator-busy` and `call.forwarding.no-answer` the busy
or absent party is the transfer's target, not the contact, who has been talked to and is not called again.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from outreach.models.states import CallStatus
from outreach.providers.voice.base import (
    ANSWERED_BY_PERSON,
    BAD_SETUP,
    BLOCKED,
    BUSY,
    CANCELED,
    CAPACITY,
    DAILY_LIMIT,
    FAILED_AT_PROVIDER,
    FUNDS,
    INVALID_NUMBER,
    MACHINE,
    NO_ANSWER,
    NOT_CONNECTED,
    CallEnd,
    RefusalWords,
)

ENDS: Final[Mapping[str, CallEnd]] = MappingProxyType(
    {
        "assistant-forwarded-call": ANSWERED_BY_PERSON,
        "assistant-said-end-call-phrase": ANSWERED_BY_PERSON,
        "call.in-progress.sip-completed-call": ANSWERED_BY_PERSON,
        "call.in-progress.twilio-completed-call": ANSWERED_BY_PERSON,
        "exceeded-max-duration": ANSWERED_BY_PERSON,
        "silence-timed-out": ANSWERED_BY_PERSON,
        "vonage-completed": ANSWERED_BY_PERSON,
        "vonage-disconnected": ANSWERED_BY_PERSON,
        "voicemail": MACHINE,
        "customer-did-not-answer": NO_ANSWER,
        "customer-busy": BUSY,
        "twilio-reported-customer-misdialed": INVALID_NUMBER,
        "vonage-rejected": BLOCKED,
        "call.start.error-fraud-check-failed": BLOCKED,
        "call.start.error-get-assistant": BAD_SETUP,
        "call.start.error-get-phone-number": BAD_SETUP,
        "call.start.error-get-resources-validation": BAD_SETUP,
        "call.start.error-enterprise-feature-not-available-recording-consent": BAD_SETUP,
        "call.start.assistant-version-error-validation": BAD_SETUP,
        "call-start-error-neither-assistant-nor-server-set": BAD_SETUP,
        "assistant-not-valid": BAD_SETUP,
        "assistant-not-found": BAD_SETUP,
        "call.start.error-subscription-upgrade-failed": FUNDS,
        "call-deleted": CANCELED,
        "manually-canceled": CANCELED,
        "scheduled-call-deleted": CANCELED,
        "assistant-join-timed-out": FAILED_AT_PROVIDER,
        "call.ringing.sip-inbound-caller-hungup-before-call-connect": FAILED_AT_PROVIDER,
        "customer-did-not-give-microphone-permission": FAILED_AT_PROVIDER,
    }
)
"""Reasons by their full value."""

PARTS: Final[tuple[tuple[str, CallEnd], ...]] = (
    ("warm-transfer", ANSWERED_BY_PERSON),
    ("call.forwarding.", ANSWERED_BY_PERSON),
    ("hook-executed-", ANSWERED_BY_PERSON),
    ("assistant-ended-call", ANSWERED_BY_PERSON),
    ("customer-ended-call", ANSWERED_BY_PERSON),
    ("outbound-sip-403", BLOCKED),
    ("outbound-sip-407", BAD_SETUP),
    ("outbound-sip-408", NO_ANSWER),
    ("outbound-sip-480", NO_ANSWER),
    ("outbound-sip-503", NOT_CONNECTED),
    ("-international", BLOCKED),
    ("concurrency-limit-reached", CAPACITY),
    ("outbound-daily-limit", DAILY_LIMIT),
    ("subscription-insufficient-credits", FUNDS),
    ("subscription-frozen", FUNDS),
    ("wallet-does-not-exist", FUNDS),
    ("failed-to-connect", NOT_CONNECTED),
    ("assistant-request-", BAD_SETUP),
    ("call.start.error-", NOT_CONNECTED),
    ("pipeline-error-", FAILED_AT_PROVIDER),
    ("call.in-progress.error-", FAILED_AT_PROVIDER),
    ("call.ringing.error-", FAILED_AT_PROVIDER),
    ("vapifault", FAILED_AT_PROVIDER),
    ("providerfault", FAILED_AT_PROVIDER),
    ("worker-", FAILED_AT_PROVIDER),
    ("phone-call-provider-", FAILED_AT_PROVIDER),
)
"""Parts of reasons: the first that a reason contains decides."""

STATUSES: Final[Mapping[str, CallStatus]] = MappingProxyType(
    {
        "scheduled": CallStatus.INITIATED,
        "queued": CallStatus.INITIATED,
        "ringing": CallStatus.RINGING,
        "in-progress": CallStatus.IN_PROGRESS,
        "forwarding": CallStatus.IN_PROGRESS,
    }
)
"""Statuses of a call that has not ended; `not-found` and `deletion-failed` mean nothing."""


def call_end_for_reason(reason: str) -> CallEnd | None:
    """Return the meaning of a reason; None for an unknown one."""
    return ENDS.get(reason) or next((end for part, end in PARTS if part in reason), None)


def end_of(reason: str | None) -> CallEnd:
    """Return how a call ended; without a reason that is unknown."""
    if reason is None:
        return CallEnd(status=CallStatus.COMPLETED)
    return call_end_for_reason(reason) or FAILED_AT_PROVIDER


REFUSALS: Final[RefusalWords] = (
    (("concurren",), "rate_limited"),
    (("daily", "limit"), "rate_limited"),
    (("rate limit",), "rate_limited"),
    (("credit",), "provider_funds"),
    (("wallet",), "provider_funds"),
    (("subscription", "frozen"), "provider_funds"),
    (("customer.number",), "invalid_number"),
    (("customer", "e.164"), "invalid_number"),
    (("international",), "filtered"),
    (("fraud",), "filtered"),
    (("phone number",), "bad_sender"),
    (("phonenumber",), "bad_sender"),
    (("assistant",), "bad_sender"),
)
"""Words of the undocumented messages of a 400, which have no code: the first row whose words all occur decides.

Other messages go by the status.
"""
