from __future__ import annotations

import json
from typing import Any, get_args

import httpx
import pytest

from outreach.models.states import CallStatus, DispatchState
from outreach.protocols.adapter import CallbackRefused
from outreach.providers.voice.retell import ADAPTER
from outreach.providers.voice.retell.provider import body_of
from outreach.providers.voice.retell.reasons import call_end_for_reason
from outreach.testing.builders import NOW, WORKSPACE_ID
from outreach.testing.fault_server import Answer
from tests.sdk.capture import both
from tests.voice.adapters import FULL, call_request, called_back, clock_at, connection_of
from tests.voice.retell.test_callbacks import BODY, CALL, KEY, MILLIS, signed

retell = pytest.importorskip("retell")

pytestmark = pytest.mark.anyio

ANSWER: dict[str, Any] = {
    "call_id": "call-1",
    "call_type": "phone_call",
    "call_status": "registered",
    "agent_id": "agent-1",
    "agent_version": 1,
    "from_number": "+14155550199",
    "to_number": "+14155550100",
    "direction": "outbound",
}


@pytest.mark.parametrize("options", [{}, FULL], ids=["plain", "full"])
async def test_a_call_is_written_as_the_library_writes_it(options: dict[str, Any]) -> None:
    """Same method, path, authorization, content type and body; and both read the same identifier."""
    request = call_request(**options)

    def theirs(url: str) -> Any:
        with retell.Retell(api_key=KEY, base_url=url, max_retries=0) as client:
            return client.call.create_phone_call(**body_of(request, callback_url=None))

    async def ours(url: str) -> Any:
        async with httpx.AsyncClient() as http:
            provider = ADAPTER.connect(connection_of({"api_key": KEY, "api_base": url}, http=http))
            return await provider.place_call(request)

    answer = Answer(status=201, headers={"content-type": "application/json"}, body=json.dumps(ANSWER).encode())
    library, adapter, said, outcome = await both(answer, theirs, ours)
    assert adapter == library
    assert (outcome.state, outcome.provider_id) == (DispatchState.ACCEPTED, said.call_id)


async def test_a_call_is_shown_as_the_library_reads_it() -> None:
    """The same request for one call, and the same identifier and status out of the answer."""
    shown = {**ANSWER, "call_status": "ended", "disconnection_reason": "dial_busy"}

    def theirs(url: str) -> Any:
        with retell.Retell(api_key=KEY, base_url=url, max_retries=0) as client:
            return client.call.retrieve("call-1")

    async def ours(url: str) -> Any:
        async with httpx.AsyncClient() as http:
            provider = ADAPTER.connect(connection_of({"api_key": KEY, "api_base": url}, http=http))
            return await provider.status(workspace_id=WORKSPACE_ID, dispatch_id="d-1", provider_id="call-1")

    answer = Answer(headers={"content-type": "application/json"}, body=json.dumps(shown).encode())
    library, adapter, said, report = await both(answer, theirs, ours)
    assert (adapter.method, adapter.path, adapter.authorization) == (
        library.method,
        library.path,
        library.authorization,
    )
    assert (report.provider_id, report.status) == (said.call_id, CallStatus.BUSY)


def test_every_reason_that_the_library_knows_is_known() -> None:
    """The library is younger than the published document: its reasons are mapped without the fallback too."""
    annotation = retell.types.PhoneCallResponse.model_fields["disconnection_reason"].annotation
    reasons = [reason for part in get_args(annotation) for reason in get_args(part)]
    assert len(reasons) >= 39
    assert [reason for reason in reasons if call_end_for_reason(reason) is None] == []


@pytest.mark.parametrize(
    ("body", "signature"),
    [
        (BODY, signed(BODY)),
        (BODY + b" ", signed(BODY)),
        (BODY, signed(BODY, key="another-key")),
        (BODY, signed(BODY, at=MILLIS - 301_000)),
        (BODY, signed(BODY, at=MILLIS + 301_000)),
        (BODY, signed(BODY, at=MILLIS - 299_000)),
        (BODY, {"X-Retell-Signature": "v=1"}),
        (json.dumps({"event": "call_ended", "call": CALL, "x": "Grüße 👋"}, ensure_ascii=False).encode(), None),
    ],
)
def test_a_signature_is_what_the_library_takes_it_for(body: bytes, signature: dict[str, str] | None) -> None:
    """Retell's own verifier and ours agree on right, changed, foreign and old signatures."""
    headers = signature or {"X-Retell-Signature": _sign(body)}
    text = headers["X-Retell-Signature"]
    theirs = retell.lib.webhook_auth.symmetric["verify"](body.decode(), KEY, text, {"timestamp": MILLIS})
    try:
        ADAPTER.read(connection_of({"api_key": KEY}, clock=clock_at()), called_back(body, headers))
        ours = True
    except CallbackRefused:
        ours = False
    assert ours is theirs
    assert NOW.timestamp() * 1000 - MILLIS < 1


def _sign(body: bytes) -> str:
    text: str = retell.lib.webhook_auth.symmetric["sign"](body.decode(), KEY, MILLIS)
    return text
