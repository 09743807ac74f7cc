from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Any, ClassVar

import attrs
import pytest

from outreach.models.states import CallStatus, DispatchState
from outreach.protocols.adapter import VoiceAdapter
from outreach.protocols.carrier import LookupRequest
from outreach.providers.voice.elevenlabs import ADAPTER
from outreach.testing.builders import NOW, WORKSPACE_ID, new_id
from outreach.testing.fault_server import Answer
from outreach.testing.http_harness import FakeProvider
from tests import provider_documents
from tests.voice.adapters import CONTACT, FULL, SENDER, AdapterContract, Recording, body_of, call_request, connection_of
from tests.voice.elevenlabs.stand_in import ElevenLabsStandIn

pytestmark = pytest.mark.anyio

CREDENTIALS = {"api_key": "eleven-key-0001", "webhook_secret": "wsec_secret", "phone_number_id": "number-1"}
ACCEPTED = {"success": True, "message": "Success", "conversation_id": "conv-1", "callSid": "CA1"}
REFUSED = {"success": False, "message": "Too many concurrent calls."}
SECONDS = int(NOW.timestamp())
AT = NOW.replace(microsecond=0)


class TestElevenLabs(AdapterContract):
    """ElevenLabs keeps the contract of a voice provider, and makes one POST whatever comes."""

    adapter: ClassVar[VoiceAdapter] = ADAPTER
    credentials: ClassVar[Mapping[str, str]] = CREDENTIALS
    harmless: ClassVar[bytes] = b'{"conversations": [], "has_more": false}'

    def stand_in(self) -> FakeProvider:
        """Return what plays ElevenLabs."""
        return ElevenLabsStandIn()

    async def test_a_conversation_of_somebody_else_is_no_evidence(self) -> None:
        """The list does not show whose each is: a few are opened and compared, and not without end."""
        rows = [{"conversation_id": f"conv-{number}"} for number in range(90)]
        async with self.bench() as bench:
            body = json.dumps({"conversations": rows, "conversation_id": "conv-9", "user_id": new_id()}).encode()
            bench.server.answer = lambda _: Answer(body=body)
            assert await self.find(bench.harness, new_id()) is None
            assert len(bench.server.requests) == 6

    async def test_a_call_known_by_its_telephony_alone_is_found_by_our_reference(self) -> None:
        """Its identifier is that of Twilio or of the trunk, by which no conversation can be asked for."""
        async with self.bench() as bench:
            dispatch_id = new_id()
            await self.ask(bench.harness.adapter, dispatch_id)
            found = await bench.harness.adapter.look_up(attrs.evolve(self.lookup(dispatch_id), provider_id="CA1"))
            assert (found.state, found.provider_id) == (DispatchState.ACCEPTED, "CA1")


@pytest.fixture
async def recording() -> AsyncIterator[Recording]:
    """An ElevenLabs that takes every call."""
    recording = Recording(ACCEPTED)
    async with recording.http:
        yield recording


async def _place(recording: Recording, credentials: Mapping[str, str] = CREDENTIALS, **changes: Any) -> dict[str, Any]:
    adapter = ADAPTER.connect(connection_of(credentials, http=recording.http))
    assert (await adapter.place_call(call_request(**changes))).state is DispatchState.ACCEPTED
    return body_of(recording.only)


async def test_a_call_says_who_calls_whom_with_what(recording: Recording) -> None:
    """Agent, number, contact and variables, and our reference as the user."""
    dispatch_id = new_id()
    body = await _place(recording, dispatch_id=dispatch_id)
    assert str(recording.only.url) == "https://api.elevenlabs.io/v1/convai/twilio/outbound-call"
    assert recording.only.headers["xi-api-key"] == "eleven-key-0001"
    assert body == {
        "agent_id": "agent-1",
        "agent_phone_number_id": "number-1",
        "to_number": CONTACT,
        "conversation_initiation_client_data": {
            "user_id": dispatch_id,
            "dynamic_variables": {
                "first_name": "Zoë",
                "amount": "1.10",
                "_outreach_dispatch_id": dispatch_id,
            },
        },
    }


async def test_every_option_is_a_variable(recording: Recording) -> None:
    """Voicemail and keys are tools of the agent, and an override that it forbids fails the call.

    docs/voice-variables.md.
    """
    body = await _place(recording, **FULL)
    values = body["conversation_initiation_client_data"]["dynamic_variables"]
    assert {name: value for name, value in values.items() if name.startswith("_") and "dispatch" not in name} == {
        "_ivr_navigation": "true",
        "_call_screening": "true",
        "_screen_identity": "Ada of Example Ltd",
        "_screen_purpose": "your appointment",
        "_voicemail": "leave_message",
        "_voicemail_message": "Please call us back.",
        "_max_seconds": "300",
        "_not_after": "2026-03-01T21:00:00+00:00",
    }


@pytest.mark.parametrize(
    ("credentials", "changes", "path", "number"),
    [
        ({}, {}, "twilio", "number-1"),
        ({}, {"provider_trunk": "trunk-1", "from_number": None}, "sip-trunk", "trunk-1"),
        ({"phone_numbers": f"{SENDER}=number-2"}, {"provider_trunk": "trunk-1"}, "sip-trunk", "number-2"),
        ({"telephony": "sip_trunk"}, {}, "sip-trunk", "number-1"),
        ({"phone_numbers": f"{SENDER}=number-2"}, {}, "twilio", "number-2"),
        ({"phone_numbers": f"{SENDER}=number-2"}, {"from_number": None}, "twilio", "number-1"),
    ],
)
async def test_a_trunk_has_an_address_of_its_own(
    recording: Recording, credentials: dict[str, str], changes: dict[str, Any], path: str, number: str
) -> None:
    """Numbers of Twilio's and numbers behind a SIP trunk are called from in two ways."""
    body = await _place(recording, {**CREDENTIALS, **credentials}, **changes)
    assert recording.only.url.path == f"/v1/convai/{path}/outbound-call"
    assert body["agent_phone_number_id"] == number


@pytest.mark.parametrize("default", [{}, {"phone_number_id": "number-1"}])
async def test_a_number_that_the_account_does_not_name_is_not_asked_for(
    recording: Recording, default: dict[str, str]
) -> None:
    """Nothing to call from, or another number than was asked for: that is our set-up's fault, and nobody is called."""
    credentials = {"api_key": "k", "webhook_secret": "s", "phone_numbers": "+14155550198=number-3", **default}
    outcome = await ADAPTER.connect(connection_of(credentials, http=recording.http)).place_call(call_request())
    assert (outcome.state, outcome.reason) == (DispatchState.REFUSED, "bad_sender")
    assert recording.requests == []


@pytest.mark.parametrize(
    ("answer", "state", "provider_id", "reason"),
    [
        (ACCEPTED, DispatchState.ACCEPTED, "conv-1", None),
        ({**ACCEPTED, "conversation_id": None}, DispatchState.ACCEPTED, "CA1", None),
        ({"success": True, "message": "", "sip_call_id": "sip-1"}, DispatchState.ACCEPTED, "sip-1", None),
        ({"success": True, "message": "Success"}, DispatchState.UNKNOWN, None, "unreadable"),
        ({"success": "true", "conversation_id": "conv-1"}, DispatchState.UNKNOWN, None, "unreadable"),
        ({"conversation_id": "conv-1"}, DispatchState.UNKNOWN, None, "unreadable"),
        ({"success": False, "message": "Request timed out."}, DispatchState.UNKNOWN, None, "unreadable"),
        ({**REFUSED, "conversation_id": "conv-1", "callSid": "CA1"}, DispatchState.UNKNOWN, None, "unreadable"),
        ({**REFUSED, "conversation_id": "conv-1"}, DispatchState.UNKNOWN, None, "unreadable"),
        ({**REFUSED, "callSid": "CA1"}, DispatchState.UNKNOWN, None, "unreadable"),
        ({**REFUSED, "sip_call_id": "sip-1"}, DispatchState.UNKNOWN, None, "unreadable"),
        ({**REFUSED, "conversation_id": 7}, DispatchState.UNKNOWN, None, "unreadable"),
        ({**REFUSED, "conversation_id": None, "callSid": ""}, DispatchState.DEFERRED, None, "rate_limited"),
        ({"success": False, "message": "Quota exceeded."}, DispatchState.REFUSED, None, "provider_funds"),
        ({"success": False, "message": "Too many concurrent calls."}, DispatchState.DEFERRED, None, "rate_limited"),
        ({"success": False, "message": "The 'To' number is no number."}, DispatchState.REFUSED, None, "invalid_number"),
        ({"success": False, "message": "Agent not found."}, DispatchState.REFUSED, None, "bad_sender"),
        ({"success": False, "message": "Something new."}, DispatchState.REFUSED, None, "rejected"),
        ({"success": False, "message": None}, DispatchState.REFUSED, None, "rejected"),
        ({"success": False, "message": "Twilio responded: account closed."}, DispatchState.REFUSED, None, "rejected"),
    ],
)
async def test_a_200_says_yes_only_by_its_field(
    answer: dict[str, Any], state: DispatchState, provider_id: str | None, reason: str | None
) -> None:
    """`success` tells, and the identifiers may be missing; one that nobody has is unknown."""
    outcome = await Recording(answer).place(ADAPTER, CREDENTIALS)
    assert (outcome.state, outcome.provider_id, outcome.reason) == (state, provider_id, reason)


@pytest.mark.parametrize(
    "message",
    [
        "Twilio request failed: connection reset by peer",
        "Read error while waiting for Twilio",
        "Server disconnected without sending a response.",
        "Connection aborted.",
        "Connection refused",
        "Broken pipe",
        "504 Gateway Time-out",
        "502 Bad Gateway",
        "Service unavailable",
        "Call could not be placed: too many redirects",
        "Network is unreachable",
        "context deadline exceeded",
        "HTTPSConnectionPool(host='api.twilio.com', port=443): Max retries exceeded with url: /Calls.json",
        "Remote end closed the session without response",
        "The SIP server did not respond; too many attempts",
    ],
)
@pytest.mark.parametrize("status", [200, 400])
async def test_a_no_that_tells_of_a_broken_request_is_unknown(message: str, status: int) -> None:
    """ElevenLabs does not know what its telephony did: the call may have been placed, whatever the no comes as."""
    refused = {"success": False, "message": message, "conversation_id": None, "callSid": None}
    outcome = await Recording(refused if status == 200 else {"detail": {"message": message}}, status=status).place(
        ADAPTER, CREDENTIALS
    )
    assert (outcome.state, outcome.reason) == (DispatchState.UNKNOWN, "unreadable")


@pytest.mark.parametrize(
    ("status", "detail", "reason", "code"),
    [
        (401, {"status": "quota_exceeded", "message": "No credits."}, "provider_funds", "quota_exceeded"),
        (401, {"status": "invalid_api_key", "message": "No."}, "provider_auth", "invalid_api_key"),
        (400, {"status": "invalid_provider_config", "message": "No."}, "bad_sender", "invalid_provider_config"),
        (404, {"status": "document_not_found", "message": "No."}, "bad_sender", "document_not_found"),
        (429, {"status": "too_many_concurrent_requests"}, "rate_limited", "too_many_concurrent_requests"),
        (422, [{"loc": ["body", "to_number"], "msg": "field required", "type": "x"}], "invalid_number", "422"),
        (422, [{"loc": ["body", "agent_phone_number_id"], "msg": "field required"}], "bad_sender", "422"),
        (422, "Something new", "rejected", "422"),
        (403, "Your agent may not.", "provider_auth", "403"),
        (400, {"code": "of_a_new_kind"}, "rejected", "of_a_new_kind"),
        (400, 7, "rejected", "400"),
    ],
)
async def test_a_refusal_goes_by_its_code_then_its_words_then_its_status(
    status: int, detail: object, reason: str, code: str
) -> None:
    """A quota that is used up comes with a 401, and is no matter of the key."""
    outcome = await Recording({"detail": detail}, status=status).place(ADAPTER, CREDENTIALS)
    assert (outcome.reason, outcome.error_code) == (reason, code)


CONVERSATION: dict[str, Any] = {
    "agent_id": "agent-1",
    "conversation_id": "conv-1",
    "user_id": "d-1",
    "metadata": {"start_time_unix_secs": SECONDS - 60, "call_duration_secs": 60},
}


@pytest.mark.parametrize(
    ("changes", "status", "outcome", "at"),
    [
        ({"status": "initiated"}, CallStatus.INITIATED, None, AT - timedelta(seconds=60)),
        ({"status": "in-progress"}, CallStatus.IN_PROGRESS, None, AT - timedelta(seconds=60)),
        ({"status": "processing"}, CallStatus.IN_PROGRESS, None, AT - timedelta(seconds=60)),
        ({"status": "done"}, CallStatus.COMPLETED, None, AT),
        ({"status": "done", "analysis": {"call_successful": "success"}}, CallStatus.COMPLETED, "positive", AT),
        ({"status": "failed"}, CallStatus.FAILED, "failed", AT),
    ],
)
async def test_the_status_of_a_call_is_read(
    changes: dict[str, Any], status: CallStatus, outcome: str | None, at: object
) -> None:
    """`status` finds a conversation by its identifier, and says of it what a callback would say."""
    report = await Recording({**CONVERSATION, **changes}).status(ADAPTER, CREDENTIALS, provider_id="conv-1")
    assert report is not None
    assert (report.status, report.outcome, report.at) == (status, outcome, at)
    assert (report.dispatch_id, report.provider_id) == ("d-1", "conv-1")


async def test_a_status_that_tells_nothing_is_none() -> None:
    """A status that nobody knows says nothing."""
    assert (
        await Recording({**CONVERSATION, "status": "of-a-new-kind"}).status(ADAPTER, CREDENTIALS, provider_id="conv-1")
        is None
    )


@pytest.mark.parametrize("trunk", [None, "trunk-1"])
async def test_every_placing_request_is_what_the_published_document_asks_for(
    recording: Recording, trunk: str | None
) -> None:
    """Requests are held against ElevenLabs' own document, which would refuse wrong ones."""
    await _place(recording, provider_trunk=trunk, **{**FULL, "from_number": None})
    provider_documents.check("elevenlabs_call", recording.only)
    for field in ("agent_id", "agent_phone_number_id", "to_number"):
        wrong = provider_documents.changed(recording.only, body=provider_documents.without(field))
        assert provider_documents.is_refused("elevenlabs_call", wrong), field
    wrong = provider_documents.changed(
        recording.only, body=lambda body: body.replace(b'"Zo', b'["Zo').replace(b'","amount', b'"],"amount')
    )
    assert wrong.content != recording.only.content
    assert provider_documents.is_refused("elevenlabs_call", wrong)


async def test_every_asking_request_is_what_the_published_document_asks_for() -> None:
    """The list, one conversation, and the check of an account; a number too large is refused by the document."""
    recording = Recording({"conversations": [{"conversation_id": "conv-1"}], "conversation_id": "conv-1"})
    async with recording.http:
        adapter = ADAPTER.connect(connection_of(CREDENTIALS, http=recording.http))
        lookup = LookupRequest(
            workspace_id=WORKSPACE_ID, dispatch_id="d-1", to=CONTACT, since=NOW, until=NOW + timedelta(minutes=5)
        )
        await adapter.look_up(lookup)
        await ADAPTER.check(connection_of(CREDENTIALS, http=recording.http))
    listed, shown, checked = recording.requests
    for request in recording.requests:
        provider_documents.check("elevenlabs_call", request)
    for request in (listed, checked):
        wrong = provider_documents.changed(request, params=request.url.params.set("page_size", "1000"))
        assert provider_documents.is_refused("elevenlabs_call", wrong)
    wrong = provider_documents.changed(shown, path="/v1/convai/conversation/conv-1")
    assert provider_documents.is_refused("elevenlabs_call", wrong)


@pytest.mark.parametrize(
    "changes", [{"phone_number_id": ""}, {"phone_numbers": "number-2"}, {"telephony": "pigeon"}, {"webhook_secret": ""}]
)
def test_credentials_that_cannot_work_are_reported(changes: dict[str, str]) -> None:
    """An account without a number, without a secret, or with another telephony is a problem."""
    assert len(ADAPTER.problems({**CREDENTIALS, **changes})) == 1
