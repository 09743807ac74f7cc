"""What Vapi's ways to end a call, its statuses and its refusals mean.

The list of `endedReason` had 627 values in 2026 and grows: it is read by table, then by the parts of which its values
are made, and what is still unknown is a failure of the provider's. Two values go against their words: in
`call.forwarding.operator-busy` and `call.forwarding.no-answer` it is not the contact that was busy or did not answer
but whom the call was handed on to, so the contact has been talked to and is not called again.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from outreach.models.dispatch import FailureClass
from outreach.models.states import CallStatus
from outreach.voice.base import (
    ANSWERED_BY_PERSON,
    BAD_SETUP,
    BLOCKED,
    BUSY,
    CANCELED,
    CAPACITY,
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
"""Reasons that stand for themselves."""

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
    ("outbound-daily-limit", CAPACITY),
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
"""Parts of reasons, the telling ones first: the first that a reason holds decides."""

STATUSES: Final[Mapping[str, CallStatus]] = MappingProxyType(
    {
        "scheduled": CallStatus.INITIATED,
        "queued": CallStatus.INITIATED,
        "ringing": CallStatus.RINGING,
        "in-progress": CallStatus.IN_PROGRESS,
        "forwarding": CallStatus.IN_PROGRESS,
    }
)
"""Statuses of a call that has not ended; `not-found` and `deletion-failed` say nothing of one."""


def call_end_for_reason(reason: str) -> CallEnd | None:
    """Return what a reason means; None for one that neither the table nor its parts tell."""
    return ENDS.get(reason) or next((end for part, end in PARTS if part in reason), None)


def end_of(reason: str | None) -> CallEnd:
    """Return how a call ended; one without a reason has ended, and nobody knows how."""
    if reason is None:
        return CallEnd(status=CallStatus.COMPLETED)
    return call_end_for_reason(reason) or FAILED_AT_PROVIDER


_REFUSALS: Final[tuple[tuple[tuple[str, ...], FailureClass], ...]] = (
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
"""Words of the messages of a 400, which has no code: all that stand together must occur, and the first row decides.

The messages are not documented; what none of the rows has goes by its status.
"""


def refusal_class(message: str) -> FailureClass | None:
    """Return what a refusal is by its message; None where its status has to tell."""
    said = message.lower()
    return next((reason for words, reason in _REFUSALS if all(word in said for word in words)), None)
