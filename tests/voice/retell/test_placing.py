from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Any, ClassVar

import attrs
import pytest

from outreach.models.states import ENDED_CALL_STATUSES, CallStatus, DispatchState
from outreach.protocols.adapter import VoiceAdapter
from outreach.protocols.carrier import LookupRequest
from outreach.providers.voice.retell import ADAPTER
from outreach.testing.builders import NOW, WORKSPACE_ID, new_id
from outreach.testing.fault_server import Answer, Received
from outreach.testing.http_harness import FakeProvider
from tests import provider_documents
from tests.voice.adapters import (
    CONTACT,
    FULL,
    SENDER,
    AdapterContract,
    Recording,
    body_of,
    call_request,
    clock_at,
    connection_of,
)
from tests.voice.retell.stand_in import RetellStandIn

pytestmark = pytest.mark.anyio

AT = NOW.replace(microsecond=123_000)
CREDENTIALS = {"api_key": "retell-key-0001"}
CALL = {"call_id": "call-1", "agent_id": "agent-1", "agent_version": 1, "call_status": "registered"}


class TestRetell(AdapterContract):
    """Retell keeps the contract of a voice provider, and makes one placing POST whatever comes."""

    adapter: ClassVar[VoiceAdapter] = ADAPTER
    credentials: ClassVar[Mapping[str, str]] = CREDENTIALS
    harmless: ClassVar[bytes] = b'{"current_concurrency": 0, "concurrency_limit": 20}'

    def stand_in(self) -> FakeProvider:
        """Return what plays Retell."""
        return RetellStandIn()

    def asks(self, request: Received) -> bool:
        """Return whether a request places a call: Retell is looked up by a POST as well."""
        return request.path == "/v2/create-phone-call"

    async def test_a_call_of_somebody_else_is_no_evidence(self) -> None:
        """A filter that a provider does not understand may leave every call; none of them is taken for ours."""
        others = json.dumps([{**CALL, "metadata": {"outreach_dispatch_id": new_id()}}, CALL]).encode()
        async with self.bench() as bench:
            bench.server.answer = lambda _: Answer(body=others)
            assert await self.find(bench.harness, new_id()) is None


@pytest.fixture
async def recording() -> AsyncIterator[Recording]:
    """A Retell that takes every call."""
    recording = Recording(CALL, status=201)
    async with recording.http:
        yield recording


async def _place(recording: Recording, *, callback_url: str | None = None, **changes: Any) -> dict[str, Any]:
    connection = connection_of(CREDENTIALS, http=recording.http, callback_url=callback_url)
    assert (await ADAPTER.connect(connection).place_call(call_request(**changes))).state is DispatchState.ACCEPTED
    return body_of(recording.only)


async def test_a_call_says_who_calls_whom_with_what(recording: Recording) -> None:
    """Agent, caller ID, contact and variables, and our reference as metadata and as the key of repetition."""
    dispatch_id = new_id()
    body = await _place(recording, dispatch_id=dispatch_id)
    assert str(recording.only.url) == "https://api.retellai.com/v2/create-phone-call"
    assert recording.only.headers["authorization"] == "Bearer retell-key-0001"
    assert body == {
        "from_number": SENDER,
        "to_number": CONTACT,
        "override_agent_id": "agent-1",
        "metadata": {"outreach_dispatch_id": dispatch_id},
        "retell_llm_dynamic_variables": {
            "first_name": "Zoë",
            "amount": "1.10",
            "_outreach_dispatch_id": dispatch_id,
        },
        "idempotency_key": dispatch_id,
        "honor_internal_dnc": True,
    }


async def test_options_go_into_fields_where_retell_has_them(recording: Recording) -> None:
    """Call screening, voicemail and length have fields; menus and the latest start are variables.

    docs/voice-variables.md.
    """
    body = await _place(recording, callback_url="https://example.com/webhooks/account-1", **FULL)
    assert body["agent_override"] == {
        "agent": {
            "call_screening_option": {"agent_identity": "Ada of Example Ltd", "call_purpose": "your appointment"},
            "voicemail_option": {"action": {"type": "static_text", "text": "Please call us back."}},
            "max_call_duration_ms": 300_000,
            "webhook_url": "https://example.com/webhooks/account-1",
            "webhook_events": ["call_started", "call_ended", "call_analyzed"],
        }
    }
    variables = body["retell_llm_dynamic_variables"]
    assert {name for name in variables if name.startswith("_")} == {
        "_outreach_dispatch_id",
        "_ivr_navigation",
        "_not_after",
    }
    assert all(isinstance(value, str) for value in variables.values())


@pytest.mark.parametrize(
    ("changes", "agent", "folded"),
    [
        ({"voicemail": "hang_up"}, {"voicemail_option": {"action": {"type": "hangup"}}}, set()),
        ({"voicemail": "leave_message"}, None, {"_voicemail"}),
        ({"call_screen_enabled": True}, None, {"_call_screening"}),
        ({"call_screen_enabled": True, "screen_identity": "Ada"}, None, {"_call_screening", "_screen_identity"}),
        ({"max_seconds": 5}, {"max_call_duration_ms": 60_000}, set()),
        ({"max_seconds": 100_000}, {"max_call_duration_ms": 7_200_000}, set()),
    ],
)
async def test_an_option_that_a_field_cannot_take_is_a_variable(
    recording: Recording, changes: dict[str, Any], agent: dict[str, Any] | None, folded: set[str]
) -> None:
    """The published document: both parts of call screening are required, a call lasts from one minute to two hours."""
    body = await _place(recording, **changes)
    assert body.get("agent_override") == (None if agent is None else {"agent": agent})
    reserved = {name for name in body["retell_llm_dynamic_variables"] if name.startswith("_")}
    assert reserved == {"_outreach_dispatch_id", *folded}


async def test_a_trunk_is_kept_with_the_call(recording: Recording) -> None:
    """At Retell the number that is called from decides the trunk."""
    assert (await _place(recording, provider_trunk="trunk-1"))["metadata"]["outreach_trunk"] == "trunk-1"


async def test_a_call_without_a_caller_id_is_not_asked_for(recording: Recording) -> None:
    """Retell requires the number that is called from."""
    adapter = ADAPTER.connect(connection_of(CREDENTIALS, http=recording.http))
    outcome = await adapter.place_call(call_request(from_number=None))
    assert (outcome.state, outcome.reason) == (DispatchState.REFUSED, "bad_sender")
    assert recording.requests == []


@pytest.mark.parametrize(
    ("status", "message", "state", "reason"),
    [
        (402, "Trial has ended, please add payment method.", DispatchState.REFUSED, "provider_funds"),
        (429, "Account rate limited, please throttle your requests.", DispatchState.DEFERRED, "rate_limited"),
        (422, "Cannot find requested asset under given api key.", DispatchState.REFUSED, "bad_sender"),
        (400, "Concurrency limit reached.", DispatchState.DEFERRED, "rate_limited"),
        (400, "Contact is marked do_not_call.", DispatchState.REFUSED, "opted_out"),
        (400, "must NOT have additional properties: honor_internal_dnc", DispatchState.REFUSED, "rejected"),
        (400, "Invalid to_number.", DispatchState.REFUSED, "invalid_number"),
        (404, "from_number not found.", DispatchState.REFUSED, "bad_sender"),
        (400, "Invalid request format, please check API reference.", DispatchState.REFUSED, "rejected"),
        (400, None, DispatchState.REFUSED, "rejected"),
    ],
)
async def test_a_refusal_goes_by_its_words_and_else_by_its_status(
    status: int, message: str | None, state: DispatchState, reason: str
) -> None:
    """Retell has no codes; the examples are those of its published document, and the names of its fields."""
    outcome = await Recording({"status": "error", "message": message}, status=status).place(ADAPTER, CREDENTIALS)
    assert (outcome.state, outcome.reason) == (state, reason)


@pytest.mark.parametrize(
    ("call", "status", "outcome", "reason"),
    [
        ({}, CallStatus.INITIATED, None, None),
        ({"call_status": "ongoing"}, CallStatus.IN_PROGRESS, None, None),
        (
            {
                "call_status": "ended",
                "disconnection_reason": "user_hangup",
                "call_analysis": {"call_successful": True, "in_voicemail": False, "call_summary": "Well."},
            },
            CallStatus.COMPLETED,
            "positive",
            None,
        ),
        ({"call_status": "not_connected", "disconnection_reason": "dial_no_answer"}, CallStatus.NO_ANSWER, None, None),
        ({"call_status": "not_connected"}, CallStatus.FAILED, "failed", "temporary"),
        ({"call_status": "error"}, CallStatus.FAILED, "failed", "provider_error"),
        ({"call_status": "error", "disconnection_reason": "new"}, CallStatus.FAILED, "failed", "provider_error"),
        ({"call_status": "ended"}, CallStatus.COMPLETED, None, None),
    ],
)
async def test_the_status_of_a_call_is_read(
    call: dict[str, Any], status: CallStatus, outcome: str | None, reason: str | None
) -> None:
    """`status` finds a call by its identifier, and says of it what a callback would say."""
    millis = int(AT.timestamp() * 1000)
    report = await Recording({**CALL, "start_timestamp": millis, "end_timestamp": millis, **call}).status(
        ADAPTER, CREDENTIALS
    )
    assert report is not None
    assert (report.status, report.outcome, report.reason) == (status, outcome, reason)
    assert (report.dispatch_id, report.provider_id, report.at) == ("d-1", "call-1", AT)


@pytest.mark.parametrize(("seconds", "over"), [(299, False), (300, True)])
async def test_an_end_is_found_without_its_reason_when_that_had_its_time(seconds: int, over: bool) -> None:
    """So no call stays open for ever, and none ends as what it was not while the reason is on its way."""
    recording = Recording({**CALL, "call_status": "not_connected", "end_timestamp": int(AT.timestamp() * 1000)})
    clock = clock_at(AT, late_by=timedelta(seconds=seconds))
    report = await recording.status(ADAPTER, CREDENTIALS, clock=clock)
    assert report is not None
    assert (report.status in ENDED_CALL_STATUSES) is over


async def test_a_status_that_tells_nothing_is_none() -> None:
    """A status that nobody knows, and no reason, say nothing."""
    assert await Recording({**CALL, "call_status": "of-a-new-kind"}).status(ADAPTER, CREDENTIALS) is None


async def test_every_request_is_what_the_published_document_asks_for(recording: Recording) -> None:
    """The recorded requests are held against Retell's own document, which would refuse wrong ones."""
    await _place(recording, callback_url="https://example.com/webhooks/account-1", **FULL)
    provider_documents.check("retell_call", recording.only)
    for field in ("to_number", "from_number"):
        wrong = provider_documents.changed(recording.only, body=provider_documents.without(field))
        assert provider_documents.is_refused("retell_call", wrong), field
    wrong = provider_documents.changed(recording.only, body=lambda body: body.replace(b"300000", b'"five"'))
    assert provider_documents.is_refused("retell_call", wrong)

    recording.requests.clear()
    adapter = ADAPTER.connect(connection_of(CREDENTIALS, http=recording.http))
    lookup = LookupRequest(
        workspace_id=WORKSPACE_ID, dispatch_id="d-1", to=CONTACT, since=NOW, until=NOW + timedelta(minutes=5)
    )
    await adapter.look_up(lookup)
    provider_documents.check("retell_call", recording.only)
    wrong = provider_documents.changed(recording.only, body=lambda body: body.replace(b":20", b':"twenty"'))
    assert provider_documents.is_refused("retell_call", wrong)
    filters = provider_documents.load("retell_call")["paths"]["/v2/list-calls"]["post"]["requestBody"]
    example = filters["content"]["application/json"]["schema"]["properties"]["filter_criteria"]["example"]
    assert any(name.startswith("metadata.") for name in example), "the form in which metadata is asked for"

    recording.requests.clear()
    await adapter.look_up(attrs.evolve(lookup, provider_id="call-1"))
    provider_documents.check("retell_call", recording.only)
    wrong = provider_documents.changed(recording.only, path="/v2/get-calls/call-1")
    assert provider_documents.is_refused("retell_call", wrong)
