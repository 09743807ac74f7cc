from __future__ import annotations

from typing import Any

import attrs
import pytest

from outreach.providers.voice import base
from outreach.providers.voice.elevenlabs.reasons import ENDED, STATUSES, end_of_conversation, end_of_failure
from tests import provider_documents

UNSURE = attrs.evolve(base.ANSWERED_BY_PERSON, answered_by=None)


def test_every_published_status_is_known() -> None:
    """The document's statuses are those of a conversation that goes on, and those of one that has ended."""
    schemas = provider_documents.load("elevenlabs_call")["components"]["schemas"]
    published = set(schemas["GetConversationResponseModel"]["properties"]["status"]["enum"])
    assert published == set(STATUSES) | ENDED


def _with(**metadata: Any) -> dict[str, Any]:
    return {"status": "done", "metadata": metadata}


@pytest.mark.parametrize(
    ("data", "end"),
    [
        (_with(), UNSURE),
        (_with(termination_reason="end_call tool was called."), UNSURE),
        (_with(features_usage={"voicemail_detection": {"enabled": True, "used": False}}), base.ANSWERED_BY_PERSON),
        (_with(features_usage={"voicemail_detection": {"enabled": True, "used": True}}), base.MACHINE),
        (_with(termination_reason="voicemail_detection tool was called."), base.MACHINE),
        (
            {
                "status": "done",
                "transcript": [{"tool_results": [{"tool_name": "voicemail_detection", "is_error": False}]}],
            },
            base.MACHINE,
        ),
        (
            {
                "status": "done",
                "transcript": [{"tool_results": [{"tool_name": "voicemail_detection", "is_error": True}]}, None, {}],
            },
            UNSURE,
        ),
        ({"status": "failed", "metadata": {"error": {"code": 1002, "reason": "Quota exceeded"}}}, base.FUNDS),
        ({"status": "failed", "metadata": {"termination_reason": "Something broke"}}, base.FAILED_AT_PROVIDER),
        ({"status": "failed"}, base.FAILED_AT_PROVIDER),
    ],
)
def test_a_conversation_ended_as_its_data_say(data: dict[str, Any], end: base.CallEnd) -> None:
    """The voicemail tool means a machine, a failure is the provider's or a lack of credit.

    docs/voice/elevenlabs.md#reasons.
    """
    assert end_of_conversation(data) == end


def _failed(reason: str | None, **body: Any) -> dict[str, Any]:
    return {"failure_reason": reason, "metadata": {"type": "twilio", "body": body}}


@pytest.mark.parametrize(
    ("data", "end"),
    [
        (_failed("busy", CallStatus="busy", SipResponseCode="487"), base.BUSY),
        (_failed("no-answer"), base.NO_ANSWER),
        (_failed("unknown", CallStatus="no-answer"), base.NO_ANSWER),
        (_failed("unknown", CallStatus="failed", SipResponseCode="404"), base.INVALID_NUMBER),
        (_failed("unknown", sip_status_code=486), base.BUSY),
        (_failed("unknown", sip_status_code=603), base.DECLINED),
        (_failed("unknown", sip_status_code=607), base.BLOCKED),
        (_failed("unknown", sip_status_code=503), base.NOT_CONNECTED),
        (_failed("unknown", sip_status_code="9" * 9_000), base.NOT_CONNECTED),
        (_failed("of-a-new-kind"), base.NOT_CONNECTED),
        (_failed(None), base.NOT_CONNECTED),
        ({}, base.NOT_CONNECTED),
    ],
)
def test_a_call_that_did_not_come_about_reached_nobody(data: dict[str, Any], end: base.CallEnd) -> None:
    """Busy, no answer, and what SIP says; what nobody knows is a failure that may pass, for nobody was reached."""
    assert end_of_failure(data) == end
