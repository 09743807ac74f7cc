"""Explanations of Vapi's reasons for the end of a call, for people."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

PAGE: Final = "https://docs.vapi.ai/calls/call-ended-reason"

_ASSISTANT: Final = "Check the agent's identifier at Vapi, and the assistant in the Vapi dashboard."
_NUMBER: Final = "Check the number's identifier among the account's values, and the number in the Vapi dashboard."
_PAY: Final = "Put the wallet and subscription in order in the Vapi dashboard, then resume the campaigns."
_LOG: Final = "Open the call in the Vapi dashboard: its log has what broke. The call is not made again by itself."
_CANCELED: Final = "It is not made again by itself: make a new one, where it still matters."
_PLACES: Final = "Lower the batch concurrency, or ask Vapi for more. It is tried again by itself."

MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "twilio-reported-customer-misdialed": "The number cannot be dialled.",
        "vonage-rejected": "The telephony behind Vapi refused the call.",
        "call.start.error-fraud-check-failed": "Vapi took the call for fraud.",
        "call.start.error-get-assistant": "Vapi found no assistant of this identifier.",
        "call.start.error-get-phone-number": "Vapi found no number of this identifier.",
        "call.start.error-get-resources-validation": "The assistant, or something that belongs to it, is not valid.",
        "call.start.error-enterprise-feature-not-available-recording-consent": "The plan has no consent to recording.",
        "call.start.assistant-version-error-validation": "This version of the assistant is not valid.",
        "call-start-error-neither-assistant-nor-server-set": "The call names no assistant.",
        "assistant-not-valid": "The assistant is not valid.",
        "assistant-not-found": "Vapi found no assistant of this identifier.",
        "call.start.error-subscription-upgrade-failed": "The subscription could not be renewed.",
        "call-deleted": "Somebody deleted the call at Vapi.",
        "manually-canceled": "Somebody stopped the call at Vapi.",
        "scheduled-call-deleted": "Somebody deleted the call at Vapi before it began.",
        "assistant-join-timed-out": "The contact answered, and the assistant did not come in time.",
        "call.ringing.sip-inbound-caller-hungup-before-call-connect": "The call was hung up before it was connected.",
        "customer-did-not-give-microphone-permission": "The contact's device gave no sound.",
    }
)

ADVICE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "call-deleted": _CANCELED,
        "manually-canceled": _CANCELED,
        "scheduled-call-deleted": _CANCELED,
        "vonage-rejected": "Look the call up at Vonage, and check that the number may call to that country.",
        "call.start.error-fraud-check-failed": "Write to Vapi's support about this account.",
        "call.start.error-get-assistant": _ASSISTANT,
        "call.start.error-get-phone-number": _NUMBER,
        "call.start.error-get-resources-validation": _ASSISTANT,
        "call.start.error-enterprise-feature-not-available-recording-consent": "Turn that off for the assistant.",
        "call.start.assistant-version-error-validation": _ASSISTANT,
        "call-start-error-neither-assistant-nor-server-set": _ASSISTANT,
        "assistant-not-valid": _ASSISTANT,
        "assistant-not-found": _ASSISTANT,
        "call.start.error-subscription-upgrade-failed": _PAY,
        "assistant-join-timed-out": _LOG,
    }
)
"""More precise advice than that of the failure class, by code."""

PARTS: Final[tuple[tuple[str, str, str], ...]] = (
    (
        "outbound-sip-403",
        "The trunk or a network refused the call (SIP 403).",
        "Check that the trunk may call this country from this number.",
    ),
    (
        "outbound-sip-407",
        "The trunk wants credentials that Vapi does not have (SIP 407).",
        "Set the trunk's user and password at Vapi.",
    ),
    (
        "outbound-sip-503",
        "The trunk could not put the call through (SIP 503).",
        "Try again later; if it stays so, ask the trunk's operator.",
    ),
    (
        "-international",
        "The number, or the account, may not call abroad.",
        "Import a number of another provider at Vapi, or leave these contacts out.",
    ),
    ("concurrency-limit-reached", "The account has no place for another call at the same time.", _PLACES),
    (
        "outbound-daily-limit",
        "The number's daily limit of calls is used up; numbers of Vapi's own have one.",
        "Import a number of another provider at Vapi, or go on tomorrow.",
    ),
    ("subscription-insufficient-credits", "The account has no credit left.", _PAY),
    ("subscription-frozen", "The subscription is frozen.", _PAY),
    ("wallet-does-not-exist", "The account has no wallet.", _PAY),
    (
        "failed-to-connect",
        "The call was not put through.",
        "Check the number and the calling number. It is tried again by itself while attempts are left.",
    ),
    ("assistant-request-", "The server that was to name the assistant failed, or answered with none.", _ASSISTANT),
    ("call.start.error-", "Vapi failed before it called anybody.", "Try again later; look at Vapi's status page."),
    ("voice", "The voice behind the assistant failed.", _LOG),
    ("transcriber", "The transcriber behind the assistant failed.", _LOG),
    ("llm", "The language model behind the assistant failed.", _LOG),
    ("pipeline-error-", "A part of the assistant, such as its model or its voice, failed during the call.", _LOG),
    ("vapifault", "Vapi had a fault of its own during the call.", _LOG),
    ("providerfault", "A provider behind Vapi, such as of the model or the voice, failed during the call.", _LOG),
    ("call.in-progress.error-", "Something failed during the call.", _LOG),
    ("worker-", "Vapi had a fault of its own during the call.", _LOG),
    ("phone-call-provider-", "The telephony behind Vapi failed during the call.", _LOG),
)
"""Parts of reasons, the telling ones first: the first that a reason holds explains it."""
