from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from outreach.models.reports import CallReport
from outreach.models.states import CallStatus, DispatchState
from outreach.providers.voice.vapi import ADAPTER
from outreach.providers.voice.vapi.provider import overrides_of
from outreach.testing.builders import NOW, WORKSPACE_ID
from outreach.testing.fault_server import Answer
from tests.sdk.capture import both
from tests.voice.adapters import CONTACT, FULL, call_request, called_back, clock_at, connection_of

vapi = pytest.importorskip("vapi")

# The library loads its thousand models when they are first asked for: here, where no test's time runs.
LOADED = (vapi.AssistantOverrides, vapi.CreateCustomerDto, vapi.ServerMessageEndOfCallReport)
CALLS = vapi.Vapi(token="none", base_url="http://127.0.0.1").calls

pytestmark = pytest.mark.anyio

CREDENTIALS = {"api_key": "vapi-key-0001", "webhook_secret": "a-secret-of-some-length", "phone_number_id": "number-1"}
ANSWER: dict[str, Any] = {
    "id": "call-1",
    "orgId": "org-1",
    "createdAt": NOW.isoformat(),
    "updatedAt": NOW.isoformat(),
    "status": "queued",
}


@pytest.mark.parametrize("options", [{}, FULL], ids=["plain", "full"])
async def test_a_call_is_written_as_the_library_writes_it(options: dict[str, Any]) -> None:
    """Same method, path, authorization, content type and body; and both read the same identifier."""
    request = call_request(**options)

    def theirs(url: str) -> Any:
        client = vapi.Vapi(token=CREDENTIALS["api_key"], base_url=url)
        return client.calls.create(
            assistant_id=request.provider_agent_id,
            phone_number_id="number-1",
            name=request.dispatch_id,
            customer=vapi.CreateCustomerDto(number=CONTACT, external_id=request.dispatch_id),
            assistant_overrides=vapi.AssistantOverrides(**overrides_of(request)),
            request_options={"max_retries": 0},
        )

    async def ours(url: str) -> Any:
        async with httpx.AsyncClient() as http:
            provider = ADAPTER.connect(connection_of({**CREDENTIALS, "api_base": url}, http=http))
            return await provider.place_call(request)

    answer = Answer(status=201, headers={"content-type": "application/json"}, body=json.dumps(ANSWER).encode())
    library, adapter, said, outcome = await both(answer, theirs, ours)
    assert adapter == library
    assert (outcome.state, outcome.provider_id) == (DispatchState.ACCEPTED, said.id)


async def test_a_call_is_shown_as_the_library_reads_it() -> None:
    """The same request for one call, and the same identifier and status out of the answer."""
    shown = {**ANSWER, "status": "ended", "endedReason": "customer-busy"}

    def theirs(url: str) -> Any:
        client = vapi.Vapi(token=CREDENTIALS["api_key"], base_url=url)
        return client.calls.get("call-1", request_options={"max_retries": 0})

    async def ours(url: str) -> Any:
        async with httpx.AsyncClient() as http:
            provider = ADAPTER.connect(connection_of({**CREDENTIALS, "api_base": url}, http=http))
            return await provider.status(workspace_id=WORKSPACE_ID, dispatch_id="d-1", provider_id="call-1")

    answer = Answer(headers={"content-type": "application/json"}, body=json.dumps(shown).encode())
    library, adapter, said, report = await both(answer, theirs, ours)
    assert (adapter.method, adapter.path, adapter.authorization) == (
        library.method,
        library.path,
        library.authorization,
    )
    assert (report.provider_id, report.status) == (said.id, CallStatus.BUSY)


def test_a_callback_is_read_as_the_library_reads_it() -> None:
    """The library has a model of each message, and no verifier: there is no signature of Vapi's own."""
    message = {
        "type": "end-of-call-report",
        "endedReason": "customer-ended-call",
        "timestamp": NOW.timestamp() * 1000,
        "endedAt": NOW.isoformat(),
        "artifact": {},
        "analysis": {"summary": "Will come.", "successEvaluation": "true"},
        "call": {**ANSWER, "assistantOverrides": {"metadata": {"outreach_dispatch_id": "d-1"}}},
    }
    theirs = vapi.ServerMessageEndOfCallReport(**message)
    callback = called_back({"message": message}, {"X-Vapi-Secret": CREDENTIALS["webhook_secret"]})
    (event,) = ADAPTER.read(connection_of(CREDENTIALS, clock=clock_at()), callback)
    report = event.content
    assert isinstance(report, CallReport)
    assert (report.provider_id, report.at) == (theirs.call.id, theirs.ended_at)
    assert report.summary == theirs.analysis.summary
    assert (report.outcome, theirs.analysis.success_evaluation) == ("positive", "true")
