"""What nobody has signed costs little: it is bounded, and not parsed before its signature has been looked at."""

from __future__ import annotations

import base64
import hashlib
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from outreach.models.account import PROVIDERS
from outreach.protocols.adapter import Callback, CallbackRefused
from outreach.providers.http.callback_bodies import MESSAGE_BYTES
from outreach.providers.registry import Adapters
from outreach.testing.builders import NOW
from tests.carriers.kit import connection
from tests.carriers.telnyx.given import CREDENTIALS as TELNYX
from tests.carriers.twilio.given import CREDENTIALS as TWILIO
from tests.carriers.vonage.given import CREDENTIALS as VONAGE
from tests.carriers.vonage.given import token as vonage_token

BODY = b'{"a": "\\ud83d' + b"\\u00e9" * 1000 + b'"}'
SECONDS = int(NOW.timestamp())
WRONG = base64.b64encode(bytes(64)).decode()

HEADERS: Mapping[str, Mapping[str, str]] = {
    "twilio": {"content-type": "application/json", "x-twilio-signature": WRONG},
    "telnyx": {"telnyx-timestamp": str(SECONDS), "telnyx-signature-ed25519": WRONG},
    "vonage": {"authorization": f"Bearer {vonage_token(b'', secret='another')}"},
    "vapi": {"x-vapi-secret": "wrong"},
    "retell": {"x-retell-signature": f"v={SECONDS * 1000},d={'0' * 64}"},
    "elevenlabs": {"elevenlabs-signature": f"t={SECONDS},v0={'0' * 64}"},
}
CREDENTIALS = {
    "twilio": TWILIO,
    "telnyx": TELNYX,
    "vonage": VONAGE,
    "vapi": {"api_key": "k", "webhook_secret": "a-long-secret-of-vapi"},
    "retell": {"api_key": "k"},
    "elevenlabs": {"api_key": "k", "webhook_secret": "s"},
}


@pytest.mark.parametrize("name", sorted(PROVIDERS))
def test_a_body_is_not_parsed_before_it_is_verified(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """For every provider whose signature is over bytes: a sender without a key cannot make us parse its body."""
    known = Adapters().adapter(name)
    parsed: list[bytes] = []

    def parse(body: bytes) -> dict[str, Any]:
        parsed.append(body)
        return {"alg": "HS256"}

    for module in [module for module in list(sys.modules) if module.startswith("outreach.")]:
        if hasattr(sys.modules[module], "json_event"):
            monkeypatch.setattr(sys.modules[module], "json_event", parse)
    callback = Callback(
        url=f"https://o.example/webhooks/1?bodySHA256={hashlib.sha256(BODY).hexdigest()}",
        headers=HEADERS[name],
        query={},
        body=BODY,
    )
    with pytest.raises(CallbackRefused):
        known.read(connection(CREDENTIALS[name]), callback)
    assert BODY not in parsed


@pytest.mark.parametrize("name", sorted(PROVIDERS))
def test_each_provider_says_how_large_its_callbacks_are(name: str) -> None:
    """A message is small; a call brings its transcript, that of a longer one is asked for."""
    sizes = {"vapi": 1024 * 1024, "retell": 1024 * 1024, "elevenlabs": 512 * 1024}
    assert Adapters().adapter(name).max_callback_bytes == sizes.get(name, MESSAGE_BYTES)
