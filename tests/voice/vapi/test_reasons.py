from __future__ import annotations

import pytest

from outreach.models.states import CallStatus
from outreach.providers.voice import base
from outreach.providers.voice.vapi.reasons import ENDS, PARTS, STATUSES, call_end_for_reason, end_of
from tests import provider_documents


def _published() -> list[str]:
    reasons = provider_documents.load("vapi_endedReason")
    assert isinstance(reasons, list)
    return reasons


def test_every_published_reason_is_known_without_the_fallback() -> None:
    """docs/voice/vapi.md#reasons: all 627 reasons of the document are mapped by the table or by their parts."""
    reasons = _published()
    assert len(reasons) == 627
    assert [reason for reason in reasons if call_end_for_reason(reason) is None] == []


def test_every_row_is_of_a_published_reason() -> None:
    """A row that no reason needs would be a guess."""
    reasons = set(_published())
    assert set(ENDS) <= reasons
    assert [part for part, _ in PARTS if not any(part in reason for reason in reasons)] == []


@pytest.mark.parametrize(
    ("reason", "end"),
    [
        ("assistant-ended-call-with-hangup-task", base.ANSWERED_BY_PERSON),
        ("assistant-said-end-call-phrase", base.ANSWERED_BY_PERSON),
        ("customer-ended-call", base.ANSWERED_BY_PERSON),
        ("customer-ended-call-after-warm-transfer-attempt", base.ANSWERED_BY_PERSON),
        ("silence-timed-out", base.ANSWERED_BY_PERSON),
        ("exceeded-max-duration", base.ANSWERED_BY_PERSON),
        ("call.in-progress.twilio-completed-call", base.ANSWERED_BY_PERSON),
        ("assistant-forwarded-call", base.ANSWERED_BY_PERSON),
        ("call.in-progress.error-warm-transfer-max-duration", base.ANSWERED_BY_PERSON),
        ("voicemail", base.MACHINE),
        ("customer-did-not-answer", base.NO_ANSWER),
        ("call.in-progress.error-providerfault-outbound-sip-408-request-timeout", base.NO_ANSWER),
        ("call.in-progress.error-providerfault-outbound-sip-480-temporarily-unavailable", base.NO_ANSWER),
        ("customer-busy", base.BUSY),
        ("twilio-reported-customer-misdialed", base.INVALID_NUMBER),
        ("call.start.error-fraud-check-failed", base.BLOCKED),
        ("call.start.error-vapi-number-international", base.BLOCKED),
        ("vonage-rejected", base.BLOCKED),
        ("call.in-progress.error-providerfault-outbound-sip-403-forbidden", base.BLOCKED),
        ("call.start.error-subscription-concurrency-limit-reached", base.CAPACITY),
        ("call.start.error-vapi-number-outbound-daily-limit", base.DAILY_LIMIT),
        ("call.start.error-subscription-insufficient-credits", base.FUNDS),
        ("call.start.error-subscription-frozen", base.FUNDS),
        ("call.start.error-subscription-wallet-does-not-exist", base.FUNDS),
        ("call.start.error-vapifault-get-org", base.NOT_CONNECTED),
        ("twilio-failed-to-connect-call", base.NOT_CONNECTED),
        ("call.start.error-get-assistant", base.BAD_SETUP),
        ("pipeline-error-openai-llm-failed", base.FAILED_AT_PROVIDER),
        ("call.in-progress.error-vapifault-worker-died", base.FAILED_AT_PROVIDER),
        ("worker-shutdown", base.FAILED_AT_PROVIDER),
        ("phone-call-provider-closed-websocket", base.FAILED_AT_PROVIDER),
        ("manually-canceled", base.CANCELED),
        ("of-a-kind-that-came-later", base.FAILED_AT_PROVIDER),
        ("", base.FAILED_AT_PROVIDER),
    ],
)
def test_a_reason_means_what_the_facts_say(reason: str, end: base.CallEnd) -> None:
    """Row by row; a string that nobody knows is a failure of the provider's, never an error.

    docs/voice/vapi.md#reasons.
    """
    assert end_of(reason) == end


def test_a_transfer_that_fails_is_no_reason_to_call_again() -> None:
    """Whom the call was handed on to was busy: the contact has been talked to (docs/delivery-contract.md#rule-2)."""
    assert end_of("call.forwarding.operator-busy") == base.ANSWERED_BY_PERSON
    assert end_of("call.forwarding.no-answer") == base.ANSWERED_BY_PERSON


def test_what_may_have_been_answered_is_never_called_again() -> None:
    """docs/delivery-contract.md#rule-2: only what says that nobody was reached carries a class that passes."""
    again = {reason for reason in _published() if end_of(reason).reason in {"temporary", "rate_limited"}}
    assert all(
        reason.startswith("call.start.error-") or "failed-to-connect" in reason or "outbound-sip-503" in reason
        for reason in again
    )


def test_the_statuses_are_those_of_a_call_that_has_not_ended() -> None:
    """`ended` is told by its reason; the two that say nothing of a call are no statuses of one."""
    published = provider_documents.load("vapi_call")["components"]["schemas"]["Call"]["properties"]["status"]["enum"]
    assert set(published) - set(STATUSES) == {"ended", "not-found", "deletion-failed"}
    assert set(STATUSES.values()) == {CallStatus.INITIATED, CallStatus.RINGING, CallStatus.IN_PROGRESS}
