"""Test callbacks of ours, as each provider signs its own."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Final

import attrs
import pytest

from outreach.protocols.adapter import Callback, CallbackRefused
from outreach.protocols.diagnosis import SignsCallbacks
from tests.voice.adapters import connection_of

URL: Final = "https://o.example/webhooks/account-1?dispatch=check_abc-_1"

ACCOUNTS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "twilio": ("carriers.twilio", {"account_sid": "AC" + "0" * 32, "auth_token": "s3cret"}),
    "vonage": ("carriers.vonage", {"api_key": "abcd1234", "signature_secret": "s3cret"}),
    "vapi": ("voice.vapi", {"webhook_secret": "s3cret", "webhook_signature_header": "X-Sig"}),
    "vapi with a time": (
        "voice.vapi",
        {"webhook_secret": "s3cret", "webhook_signature_header": "X-Sig", "webhook_timestamp_header": "X-Time"},
    ),
    "retell": ("voice.retell", {"api_key": "s3cret"}),
    "retell with a key for callbacks": ("voice.retell", {"api_key": "other", "webhook_api_key": "s3cret"}),
    "elevenlabs": ("voice.elevenlabs", {"webhook_secret": "s3cret"}),
}


def _adapter(package: str) -> Any:
    return importlib.import_module(f"outreach.providers.{package}").ADAPTER


def _received(callback: Callback) -> Callback:
    """Return a callback as the server passes it on: names of headers in lower case."""
    return attrs.evolve(callback, headers={name.lower(): value for name, value in callback.headers.items()})


@pytest.mark.parametrize("case", ACCOUNTS)
def test_a_test_callback_passes_as_the_providers_and_is_about_nothing(case: str) -> None:
    """It has one event, without content; without its signature, or with another secret, it is refused."""
    package, credentials = ACCOUNTS[case]
    adapter, connection = _adapter(package), connection_of(credentials)
    signer: object = adapter
    assert isinstance(signer, SignsCallbacks)
    signed = signer.sign_callback(connection, url=URL, test_id="t1")
    assert signed is not None
    assert signed.url == URL
    assert "s3cret" not in str(signed.headers) + signed.body.decode()
    (event,) = adapter.read(connection, _received(signed))
    assert event.content is None
    assert event.unreadable_kind is None
    others = {name: value.replace("s3cret", "s3cret2") for name, value in credentials.items()}
    with pytest.raises(CallbackRefused):
        adapter.read(connection_of(others), _received(signed))
    with pytest.raises(CallbackRefused):
        adapter.read(connection, attrs.evolve(signed, headers={"content-type": signed.headers["content-type"]}))


def test_a_secret_that_would_go_along_is_not_sent() -> None:
    """The address may lead elsewhere."""
    credentials = {"webhook_secret": "s3cret"}
    assert _adapter("voice.vapi").sign_callback(connection_of(credentials), url=URL, test_id="t1") is None


def test_an_account_without_the_secret_cannot_sign() -> None:
    """Telnyx signs with a key of its own; an account has its public part."""
    assert not isinstance(_adapter("carriers.telnyx"), SignsCallbacks)
