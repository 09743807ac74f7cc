from __future__ import annotations

import pytest

from outreach.providers.voice import base
from outreach.providers.voice.retell.reasons import ENDED, ENDS, STATUSES, call_end_for_reason, end_of
from tests import provider_documents

ADDED = {
    "user_requested_dnc",
    "user_requested_callback",
    "no_concurrency_fallback",
    "credit_exhausted",
    "budget_reached",
    "network_blocked",
    "manual_stopped",
    "call_take_over",
}
"""What Retell's SDK of November 2026 knows beyond the document of April."""


def _schemas() -> dict:
    schemas: dict = provider_documents.load("retell_call")["components"]["schemas"]
    return schemas


def test_every_published_reason_is_known_without_the_fallback() -> None:
    """docs/voice/retell.md#reasons: the 31 reasons of the document and the 8 that came later are mapped."""
    published = set(_schemas()["DisconnectionReason"]["enum"])
    assert len(published) == 31
    assert [reason for reason in published | ADDED if call_end_for_reason(reason) is None] == []
    assert set(ENDS) <= published | ADDED


def test_every_published_status_is_known() -> None:
    """A call has not ended, or it has."""
    published = set(_schemas()["V2CallBase"]["properties"]["call_status"]["enum"])
    assert published == set(STATUSES) | set(ENDED)


@pytest.mark.parametrize(
    ("reasons", "end"),
    [
        (
            ["user_hangup", "agent_hangup", "inactivity", "max_duration_reached", "user_requested_callback"],
            base.ANSWERED_BY_PERSON,
        ),
        (["call_transfer", "transfer_bridged", "transfer_cancelled", "call_take_over"], base.ANSWERED_BY_PERSON),
        (["voicemail_reached"], base.MACHINE),
        (["ivr_reached"], base.MENU),
        (["dial_no_answer", "registered_call_timeout"], base.NO_ANSWER),
        (["dial_busy"], base.BUSY),
        (["user_declined"], base.DECLINED),
        (["invalid_destination"], base.INVALID_NUMBER),
        (["user_requested_dnc"], base.DO_NOT_CALL),
        (["marked_as_spam", "scam_detected", "network_blocked", "telephony_provider_permission_denied"], base.BLOCKED),
        (["concurrency_limit_reached", "no_concurrency_fallback"], base.CAPACITY),
        (["no_valid_payment", "credit_exhausted", "budget_reached"], base.FUNDS),
        (["dial_failed", "telephony_provider_unavailable", "sip_routing_error"], base.NOT_CONNECTED),
        (["error_asr", "error_retell", "error_unknown", "error_of_a_new_kind"], base.FAILED_AT_PROVIDER),
        (["of_a_kind_that_came_later", ""], base.FAILED_AT_PROVIDER),
    ],
)
def test_a_reason_means_what_the_facts_say(reasons: list[str], end: base.CallEnd) -> None:
    """Row by row; a string that nobody knows is a failure of the provider's, never an error.

    docs/voice/retell.md#reasons.
    """
    assert [end_of("ended", reason) for reason in reasons] == [end] * len(reasons)
