from __future__ import annotations

import json
import time
from typing import Any

import httpx
import pytest

from outreach.core.clock import SystemClock
from outreach.models.states import CallStatus, DispatchState
from outreach.protocols.adapter import CallbackRefused
from outreach.providers.voice import base
from outreach.providers.voice.elevenlabs import ADAPTER
from outreach.testing.builders import WORKSPACE_ID
from outreach.testing.fault_server import Answer
from tests.sdk.capture import both
from tests.voice.adapters import CONTACT, FULL, call_request, called_back, connection_of
from tests.voice.elevenlabs.test_callbacks import BODY, SECRET, signed

elevenlabs = pytest.importorskip("elevenlabs")

pytestmark = pytest.mark.anyio

CREDENTIALS = {"api_key": "eleven-key-0001", "webhook_secret": SECRET, "phone_number_id": "number-1"}


@pytest.mark.parametrize("trunk", [None, "trunk-1"])
@pytest.mark.parametrize("options", [{}, FULL], ids=["plain", "full"])
async def test_a_call_is_written_as_the_library_writes_it(options: dict[str, Any], trunk: str | None) -> None:
    """Same method, path, key, content type and body over Twilio and over a trunk; the same identifier is read."""
    request = call_request(provider_trunk=trunk, **options)
    # Over a trunk, a caller id needs the id of its own number.
    credentials = CREDENTIALS | ({"phone_numbers": f"{request.from_number}=trunk-1"} if trunk else {})

    def theirs(url: str) -> Any:
        agents = elevenlabs.ElevenLabs(api_key=CREDENTIALS["api_key"], base_url=url).conversational_ai
        return (agents.sip_trunk if trunk else agents.twilio).outbound_call(
            agent_id=str(request.provider_agent_id),
            agent_phone_number_id=trunk or "number-1",
            to_number=CONTACT,
            conversation_initiation_client_data=elevenlabs.ConversationInitiationClientDataRequestInput(
                user_id=request.dispatch_id, dynamic_variables=base.variables_of(request)
            ),
            request_options={"max_retries": 0},
        )

    async def ours(url: str) -> Any:
        async with httpx.AsyncClient() as http:
            provider = ADAPTER.connect(connection_of({**credentials, "api_base": url}, http=http))
            return await provider.place_call(request)

    said_by = "sip_call_id" if trunk else "callSid"
    answer = {"success": True, "message": "Success", "conversation_id": "conv-1", said_by: "CA1"}
    response = Answer(headers={"content-type": "application/json"}, body=json.dumps(answer).encode())
    library, adapter, said, outcome = await both(response, theirs, ours)
    assert adapter == library
    assert (outcome.state, outcome.provider_id) == (DispatchState.ACCEPTED, said.conversation_id)


async def test_a_conversation_is_shown_as_the_library_reads_it() -> None:
    """The same request for one conversation, and the same identifier and status out of the answer."""
    shown = {
        "agent_id": "agent-1",
        "conversation_id": "conv-1",
        "status": "in-progress",
        "transcript": [],
        "metadata": {"start_time_unix_secs": 1_772_000_000, "call_duration_secs": 0},
        "has_audio": False,
        "has_user_audio": False,
        "has_response_audio": False,
    }

    def theirs(url: str) -> Any:
        agents = elevenlabs.ElevenLabs(api_key=CREDENTIALS["api_key"], base_url=url).conversational_ai
        return agents.conversations.get("conv-1", request_options={"max_retries": 0})

    async def ours(url: str) -> Any:
        async with httpx.AsyncClient() as http:
            provider = ADAPTER.connect(connection_of({**CREDENTIALS, "api_base": url}, http=http))
            return await provider.status(workspace_id=WORKSPACE_ID, dispatch_id="d-1", provider_id="conv-1")

    response = Answer(headers={"content-type": "application/json"}, body=json.dumps(shown).encode())
    library, adapter, said, report = await both(response, theirs, ours)
    assert (adapter.method, adapter.path, adapter.authorization) == (
        library.method,
        library.path,
        library.authorization,
    )
    assert (report.provider_id, report.status) == (said.conversation_id, CallStatus.IN_PROGRESS)
    assert said.status == "in-progress"


@pytest.mark.parametrize("late", [0, -29 * 60, -31 * 60])
@pytest.mark.parametrize("secret", [SECRET, "another"])
@pytest.mark.parametrize("change", [b"", b" "])
def test_a_signature_is_what_the_library_takes_it_for(late: int, secret: str, change: bytes) -> None:
    """ElevenLabs' own verifier and ours agree on right, changed, foreign and old signatures."""
    headers = signed(BODY, secret=secret, at=int(time.time()) + late)
    body = BODY + change
    client = elevenlabs.ElevenLabs(api_key="k")
    try:
        client.webhooks.construct_event(body.decode(), headers["ElevenLabs-Signature"], SECRET)
        theirs = True
    except elevenlabs.BadRequestError:
        theirs = False
    try:
        ADAPTER.read(connection_of(CREDENTIALS, clock=SystemClock()), called_back(body, headers))
        ours = True
    except CallbackRefused:
        ours = False
    assert ours is theirs
