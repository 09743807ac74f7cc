from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Any, ClassVar

import attrs
import httpx
import pytest

from outreach.models.states import ENDED_CALL_STATUSES, CallStatus, DispatchState
from outreach.protocols.adapter import VoiceAdapter
from outreach.protocols.carrier import LookupRequest
from outreach.providers.voice.vapi import ADAPTER
from outreach.testing.builders import NOW, WORKSPACE_ID, new_id
from outreach.testing.fault_server import Answer
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
from tests.voice.vapi.stand_in import VapiStandIn

pytestmark = pytest.mark.anyio

CREDENTIALS = {"api_key": "vapi-key-0001", "webhook_secret": "a-secret-of-some-length", "phone_number_id": "number-1"}


class TestVapi(AdapterContract):
    """Vapi keeps the contract of a voice provider, and makes one POST whatever comes."""

    adapter: ClassVar[VoiceAdapter] = ADAPTER
    credentials: ClassVar[Mapping[str, str]] = CREDENTIALS
    harmless: ClassVar[bytes] = b"[]"

    def stand_in(self) -> FakeProvider:
        """Return what plays Vapi."""
        return VapiStandIn()

    async def test_a_look_up_reads_page_after_page_and_ends(self) -> None:
        """The list has no filter for our reference; what lies behind a hundred other calls is found."""
        async with self.bench() as bench:
            ids = [new_id() for _ in range(130)]
            taken = [await self.ask(bench.harness.adapter, dispatch_id) for dispatch_id in ids]
            found = await self.find(bench.harness, ids[0])
            assert found is not None
            assert found.provider_id == taken[0].provider_id

    async def test_a_look_up_of_a_list_without_end_gives_up(self) -> None:
        """Every loop is bounded: a provider that always has another page is asked ten times."""
        page = json.dumps([{"id": f"call-{number}", "createdAt": "2026-03-01T12:00:00Z"} for number in range(100)])
        async with self.bench() as bench:
            bench.server.answer = lambda _: Answer(body=page.encode())
            assert await self.find(bench.harness, new_id()) is None
            assert len(bench.server.requests) == 10


@pytest.fixture
async def recording() -> AsyncIterator[Recording]:
    """A Vapi that takes every call."""
    recording = Recording({"id": "call-1", "orgId": "org-1", "createdAt": "", "updatedAt": ""}, status=201)
    async with recording.http:
        yield recording


async def _place(recording: Recording, credentials: Mapping[str, str] = CREDENTIALS, **changes: Any) -> httpx.Request:
    adapter = ADAPTER.connect(connection_of(credentials, http=recording.http))
    assert (await adapter.place_call(call_request(**changes))).state is DispatchState.ACCEPTED
    return recording.only


async def test_a_call_says_who_calls_whom_with_what(recording: Recording) -> None:
    """Agent, number, contact and variables, and our reference in three places."""
    dispatch_id = new_id()
    request = await _place(recording, dispatch_id=dispatch_id)
    assert (request.method, str(request.url)) == ("POST", "https://api.vapi.ai/call")
    assert request.headers["authorization"] == "Bearer vapi-key-0001"
    assert body_of(request) == {
        "assistantId": "agent-1",
        "phoneNumberId": "number-1",
        "name": dispatch_id,
        "customer": {"number": CONTACT, "externalId": dispatch_id},
        "assistantOverrides": {
            "variableValues": {"first_name": "Zoë", "amount": "1.10", "_outreach_dispatch_id": dispatch_id},
            "metadata": {"outreach_dispatch_id": dispatch_id},
        },
    }


async def test_options_go_into_fields_where_vapi_has_them(recording: Recording) -> None:
    """Key presses, voicemail and length have fields; call screening and the rest are variables.

    docs/voice-variables.md.
    """
    overrides = body_of(await _place(recording, **FULL))["assistantOverrides"]
    assert overrides["tools:append"] == [{"type": "dtmf"}]
    assert overrides["voicemailDetection"] == {"provider": "vapi"}
    assert overrides["voicemailMessage"] == "Please call us back."
    assert overrides["maxDurationSeconds"] == 300
    values = overrides["variableValues"]
    assert {name: value for name, value in values.items() if name.startswith("_") and "id" not in name.split("_")} == {
        "_ivr_navigation": "true",
        "_call_screening": "true",
        "_screen_identity": "Ada of Example Ltd",
        "_screen_purpose": "your appointment",
        "_not_after": "2026-03-01T21:00:00+00:00",
    }


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"voicemail": "hang_up"}, {"voicemailDetection": {"provider": "vapi"}, "voicemailMessage": ""}),
        ({"voicemail": "leave_message"}, {"voicemailDetection": {"provider": "vapi"}}),
        ({"max_seconds": 1}, {"maxDurationSeconds": 10}),
        ({"max_seconds": 100_000}, {"maxDurationSeconds": 43_200}),
    ],
)
async def test_options_keep_vapis_bounds(
    recording: Recording, changes: dict[str, Any], expected: dict[str, Any]
) -> None:
    """The published document: 10 to 43200 seconds; voicemail without a text leaves the assistant's own."""
    overrides = body_of(await _place(recording, **changes))["assistantOverrides"]
    assert {name: overrides[name] for name in overrides if name not in {"variableValues", "metadata"}} == expected


@pytest.mark.parametrize(
    ("credentials", "changes", "number"),
    [
        ({}, {}, "number-1"),
        ({"phone_numbers": f"{SENDER}=number-2, +14155550198=number-3"}, {}, "number-2"),
        ({"phone_numbers": "+14155550198=number-3"}, {"from_number": None}, "number-1"),
        ({"phone_numbers": f"{SENDER}=number-2"}, {"provider_trunk": "trunk-1"}, "number-2"),
        ({}, {"provider_trunk": "trunk-1", "from_number": None}, "trunk-1"),
        ({}, {"from_number": None}, "number-1"),
    ],
)
async def test_what_is_called_from_is_the_caller_id_else_the_trunk_else_the_accounts_number(
    recording: Recording, credentials: dict[str, str], changes: dict[str, Any], number: str
) -> None:
    """Vapi knows numbers by identifiers of its own, which the account names."""
    request = await _place(recording, {**CREDENTIALS, **credentials}, **changes)
    assert body_of(request)["phoneNumberId"] == number


@pytest.mark.parametrize(
    ("credentials", "changes", "reason"),
    [
        ({"phone_numbers": "+14155550198=number-3"}, {}, "bad_sender"),
        ({"phone_numbers": "+14155550198=number-3", "phone_number_id": "number-1"}, {}, "bad_sender"),
        ({"phone_number_id": "number-1"}, {"provider_trunk": "trunk-1"}, "bad_sender"),
        ({"phone_number_id": "number-1"}, {"voicemail": "leave_message", "voicemail_message": "x" * 1001}, "bad_body"),
    ],
)
async def test_what_vapi_could_only_refuse_is_not_asked_for(
    recording: Recording, credentials: dict[str, str], changes: dict[str, Any], reason: str
) -> None:
    """A number that the account does not name, and a text that is too long, are refused here; a text is never cut."""
    account = {"api_key": "k", "webhook_secret": "s", **credentials}
    outcome = await ADAPTER.connect(connection_of(account, http=recording.http)).place_call(call_request(**changes))
    assert (outcome.state, outcome.reason) == (DispatchState.REFUSED, reason)
    assert recording.requests == []


@pytest.mark.parametrize(
    ("message", "state", "reason"),
    [
        ("Over Concurrency Limit.", DispatchState.DEFERRED, "rate_limited"),
        ("Daily outbound call limit reached for this number.", DispatchState.DEFERRED, "rate_limited"),
        ("Insufficient credits. Purchase more.", DispatchState.REFUSED, "provider_funds"),
        (
            ["customer.number must be a valid phone number in the E.164 format."],
            DispatchState.REFUSED,
            "invalid_number",
        ),
        ("Free numbers do not support international calls.", DispatchState.REFUSED, "filtered"),
        ("Couldn't find phone number number-1.", DispatchState.REFUSED, "bad_sender"),
        ("Assistant not found.", DispatchState.REFUSED, "bad_sender"),
        ("Something new.", DispatchState.REFUSED, "rejected"),
        ({"odd": 1}, DispatchState.REFUSED, "rejected"),
    ],
)
async def test_a_refusal_without_a_code_goes_by_its_words(message: object, state: DispatchState, reason: str) -> None:
    """Vapi's 400 covers limits, validation and missing things, told apart by their messages alone."""
    outcome = await Recording({"message": message, "error": "Bad Request", "statusCode": 400}, status=400).place(
        ADAPTER, CREDENTIALS
    )
    assert (outcome.state, outcome.reason) == (state, reason)


@pytest.mark.parametrize(
    ("call", "status", "outcome", "reason"),
    [
        ({"status": "queued"}, CallStatus.INITIATED, None, None),
        ({"status": "ringing"}, CallStatus.RINGING, None, None),
        ({"status": "in-progress", "startedAt": NOW.isoformat()}, CallStatus.IN_PROGRESS, None, None),
        (
            {
                "status": "ended",
                "endedReason": "customer-ended-call",
                "endedAt": NOW.isoformat(),
                "analysis": {"successEvaluation": "true", "summary": "Well."},
            },
            CallStatus.COMPLETED,
            "positive",
            None,
        ),
        ({"status": "ended", "endedReason": "voicemail"}, CallStatus.COMPLETED, "voicemail", None),
        ({"status": "ended", "endedReason": "of-a-new-kind"}, CallStatus.FAILED, "failed", "provider_error"),
        ({"status": "ended"}, CallStatus.COMPLETED, None, None),
    ],
)
async def test_the_status_of_a_call_is_read(
    call: dict[str, Any], status: CallStatus, outcome: str | None, reason: str | None
) -> None:
    """`status` finds a call by its identifier, and says of it what a callback would say."""
    recording = Recording({"id": "call-1", "updatedAt": NOW.isoformat(), **call})
    report = await recording.status(ADAPTER, CREDENTIALS)
    assert report is not None
    assert (report.status, report.outcome, report.reason) == (status, outcome, reason)
    assert (report.dispatch_id, report.provider_id, report.at) == ("d-1", "call-1", NOW)
    assert recording.only.url.path == "/call/call-1"


@pytest.mark.parametrize(("seconds", "over"), [(299, False), (300, True)])
async def test_an_end_is_found_without_its_reason_when_that_had_its_time(seconds: int, over: bool) -> None:
    """So no call stays open for ever, and none ends as what it was not while the reason is on its way."""
    recording = Recording({"id": "call-1", "status": "ended", "endedAt": NOW.isoformat()})
    clock = clock_at(NOW, late_by=timedelta(seconds=seconds))
    report = await recording.status(ADAPTER, CREDENTIALS, clock=clock)
    assert report is not None
    assert (report.status in ENDED_CALL_STATUSES) is over


@pytest.mark.parametrize("call", [{"status": "not-found"}, {"status": "deletion-failed"}, {"status": None}])
async def test_a_status_that_tells_nothing_is_none(call: dict[str, Any]) -> None:
    """A call that Vapi has deleted, or a status that nobody knows, says nothing."""
    assert await Recording({"id": "call-1", **call}).status(ADAPTER, CREDENTIALS) is None


async def test_every_request_is_what_the_published_document_asks_for(recording: Recording) -> None:
    """The recorded requests are held against Vapi's own document, which would refuse wrong ones."""
    request = await _place(recording, **FULL)
    provider_documents.check("vapi_call", request)
    schemas = provider_documents.load("vapi_call")["paths"]["/call"]["post"]["requestBody"]["content"]
    assert "required" not in schemas["application/json"]["schema"], "Drop a field of these as the control."
    wrong = provider_documents.changed(request, body=lambda body: body.replace(b'"number-1"', b"17"))
    assert provider_documents.is_refused("vapi_call", wrong)
    no_key = httpx.Request("POST", request.url, headers={"content-type": "application/json"}, content=request.content)
    assert provider_documents.is_refused("vapi_call", no_key)

    recording.requests.clear()
    adapter = ADAPTER.connect(connection_of(CREDENTIALS, http=recording.http))
    lookup = LookupRequest(
        workspace_id=WORKSPACE_ID, dispatch_id="d-1", to=CONTACT, since=NOW, until=NOW + timedelta(minutes=5)
    )
    await adapter.look_up(lookup)
    # The answer is no list, so smaller pages are asked for.
    assert [one.url.params["limit"] for one in recording.requests] == ["100", "12", "1"]
    for one in recording.requests:
        provider_documents.check("vapi_call", one)
    for name, value in {"limit": "5000", "createdAtGe": "yesterday"}.items():
        params = recording.requests[0].url.params.set(name, value)
        wrong = provider_documents.changed(recording.requests[0], params=params)
        assert provider_documents.is_refused("vapi_call", wrong), name

    recording.requests.clear()
    await adapter.look_up(attrs.evolve(lookup, provider_id=new_id()))
    provider_documents.check("vapi_call", recording.only)
    assert provider_documents.is_refused("vapi_call", provider_documents.changed(recording.only, path="/call/call-1"))

    recording.requests.clear()
    await ADAPTER.check(connection_of(CREDENTIALS, http=recording.http))
    provider_documents.check("vapi_call", recording.only)


@pytest.mark.parametrize(
    "changes",
    [
        {"phone_number_id": ""},
        {"phone_numbers": "number-2"},
        {"phone_numbers": "14155550100=number-2"},
        {"webhook_secret": "short"},
        {"webhook_timestamp_header": "x-timestamp"},
    ],
)
def test_credentials_that_cannot_work_are_reported(changes: dict[str, str]) -> None:
    """An account without a number, or without what proves a callback, is a problem."""
    assert len(ADAPTER.problems({**CREDENTIALS, **changes})) == 1
