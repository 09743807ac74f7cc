from __future__ import annotations

import time
from typing import Any

import attrs
import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from outreach.core.clock import SystemClock
from outreach.models.states import DispatchState
from outreach.protocols.adapter import Callback, CallbackRefused
from outreach.providers.carriers.telnyx import ADAPTER
from tests.carriers.kit import BODY, CALLBACK_URL, SENDER, TO, as_json, callback, connection, message
from tests.carriers.telnyx.given import CREDENTIALS, ID, PUBLIC_KEY, a_payload, signed
from tests.sdk.capture import both

pytestmark = pytest.mark.anyio

telnyx = pytest.importorskip("telnyx")

EVENT = {
    "data": {"id": "e-1", "event_type": "message.finalized", "payload": a_payload("delivered"), "text": "Grüße 👋"}
}


async def test_a_message_is_written_as_the_library_writes_it() -> None:
    """Same method, path, authorization, content type and body; and both read the same identifier."""

    def theirs(url: str) -> Any:
        with telnyx.Telnyx(api_key=CREDENTIALS["api_key"], base_url=f"{url}/v2", max_retries=0) as client:
            return client.messages.send(
                to=TO,
                from_=SENDER,
                text=BODY,
                use_profile_webhooks=False,
                webhook_url=f"{CALLBACK_URL}?dispatch=d-1",
            )

    async def ours(url: str) -> Any:
        async with httpx.AsyncClient() as http:
            carrier = ADAPTER.connect(connection({**CREDENTIALS, "api_base": url}, http=http))
            return await carrier.send(message(dispatch_id="d-1"))

    library, adapter, said, outcome = await both(as_json({"data": a_payload(id=ID)}), theirs, ours)
    assert adapter == library
    assert (outcome.state, outcome.provider_id) == (DispatchState.ACCEPTED, said.data.id)


def _is_ours(coming: Callback) -> bool:
    try:
        ADAPTER.read(connection(CREDENTIALS, clock=SystemClock()), coming)
    except CallbackRefused:
        return False
    return True


def _is_theirs(coming: Callback) -> bool:
    client = telnyx.Telnyx(api_key="x", public_key=PUBLIC_KEY)
    try:
        client.webhooks.unwrap(coming.body.decode(), headers=coming.headers)
    except ValueError:
        return False
    finally:
        client.close()
    return True


@pytest.mark.parametrize(
    ("age", "changes", "good"),
    [
        (0.0, {}, True),
        (200.0, {}, True),
        (-200.0, {}, True),
        (400.0, {}, False),
        (-400.0, {}, False),
        (0.0, {"body": b'{"data": {"id": "e-2"}}'}, False),
        (0.0, {"headers": {}}, False),
    ],
)
def test_both_agree_on_a_signature(age: float, changes: dict[str, Any], good: bool) -> None:
    """Telnyx's own verifier on the same callbacks, good and bad."""
    coming = attrs.evolve(signed(EVENT, at=time.time() - age), **changes)
    assert _is_ours(coming) is _is_theirs(coming) is good


def test_both_refuse_another_key_and_a_signature_that_is_none() -> None:
    """Somebody else's signature, one cut short, and a time that is none."""
    good = signed(EVENT, at=time.time())
    for coming in (
        signed(EVENT, at=time.time(), key=Ed25519PrivateKey.generate()),
        callback(good.body, {**good.headers, "telnyx-signature-ed25519": "AAAA"}),
        callback(good.body, {**good.headers, "telnyx-timestamp": "now"}),
    ):
        assert not _is_ours(coming)
        assert not _is_theirs(coming)
