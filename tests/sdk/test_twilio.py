from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl

import httpx
import pytest

from outreach.models.states import DispatchState
from outreach.protocols.adapter import Callback, CallbackRefused
from outreach.providers.carriers.twilio import ADAPTER
from outreach.providers.carriers.twilio.signature import verified_fields
from outreach.testing.builders import NOW
from tests.carriers.kit import BODY, CALLBACK_URL, SENDER, TO, as_json, callback, connection, lookup, message
from tests.carriers.twilio.given import ACCOUNT_SID, CREDENTIALS, SHARED_SECRET, SID, TOKEN, a_message, signed
from tests.sdk.capture import both

pytestmark = pytest.mark.anyio

rest = pytest.importorskip("twilio.rest")
http_client = pytest.importorskip("twilio.http.http_client")
request_validator = pytest.importorskip("twilio.request_validator")

STATUS = {"MessageSid": SID, "MessageStatus": "delivered", "To": TO, "From": SENDER, "Text": "Grüße 👋 & 50 %"}


def _client(url: str) -> Any:
    class Redirected(http_client.TwilioHttpClient):  # type: ignore[misc,name-defined]
        def request(self, method: str, address: str, *args: Any, **kwargs: Any) -> Any:
            return super().request(method, address.replace("https://api.twilio.com", url), *args, **kwargs)

    return rest.Client(ACCOUNT_SID, TOKEN, http_client=Redirected())


async def test_a_message_is_written_as_the_library_writes_it() -> None:
    """Same method, path, authorization, content type and fields; and both read the same identifier."""

    def theirs(url: str) -> Any:
        return _client(url).messages.create(
            to=TO, from_=SENDER, body=BODY, status_callback=f"{CALLBACK_URL}?dispatch=d-1", validity_period=3600
        )

    async def ours(url: str) -> Any:
        async with httpx.AsyncClient() as http:
            carrier = ADAPTER.connect(connection({**CREDENTIALS, "api_base": url}, http=http))
            return await carrier.send(message(dispatch_id="d-1", not_after=NOW + timedelta(seconds=3605)))

    library, adapter, said, outcome = await both(as_json(a_message(sid=SID), 201), theirs, ours)
    assert adapter == library
    assert (outcome.state, outcome.provider_id) == (DispatchState.ACCEPTED, said.sid)


async def test_a_listing_is_asked_for_as_the_library_asks() -> None:
    """Same path and query."""

    def theirs(url: str) -> Any:
        return _client(url).messages.page(to=TO, from_=SENDER, page_size=200)

    async def ours(url: str) -> Any:
        async with httpx.AsyncClient() as http:
            return await ADAPTER.connect(connection({**CREDENTIALS, "api_base": url}, http=http)).look_up(lookup())

    answer = as_json({"messages": [], "next_page_uri": None, "uri": "/", "page_size": 200})
    library, adapter, _, found = await both(answer, theirs, ours)
    assert (adapter.method, adapter.path, adapter.query, adapter.authorization) == (
        library.method,
        library.path,
        library.query,
        library.authorization,
    )
    assert found is None


def _is_ours(coming: Callback, **credentials: str) -> bool:
    try:
        verified_fields(coming, {**CREDENTIALS, **credentials})
    except CallbackRefused:
        return False
    return True


def _is_theirs(coming: Callback, secret: str = TOKEN) -> bool:
    algorithm = request_validator.get_signature_algorithm(coming.headers.get("x-twilio-webhooks-signature-settings"))
    parameters: Any = coming.body.decode()
    if coming.headers.get("content-type") != "application/json":
        fields: dict[str, list[str]] = {}
        for name, value in parse_qsl(parameters, keep_blank_values=True):
            fields.setdefault(name, []).append(value)
        parameters = _Multi(fields)
    verdict: bool = request_validator.RequestValidator(secret).validate(
        coming.url, parameters, coming.headers.get("x-twilio-signature", ""), algorithm
    )
    return verdict


class _Multi(dict[str, Sequence[str]]):
    """Fields as Flask has them."""

    def getall(self, name: str) -> Sequence[str]:
        """Return all values of a name."""
        return self[name]


@pytest.mark.parametrize(
    "coming",
    [
        signed(STATUS),
        signed({}),
        signed([*STATUS.items(), ("MediaUrl", "b"), ("MediaUrl", "a"), ("MediaUrl", "a"), ("Empty", "")]),
        signed(STATUS, url=f"{CALLBACK_URL}?dispatch=d-1"),
        signed(STATUS, url="https://h.example.com/w", signed_url="https://h.example.com:443/w"),
        signed(STATUS, url="https://h.example.com:8443/w", signed_url="https://h.example.com/w"),
        signed(STATUS, secret="other"),
        signed(STATUS, signed_url="https://other.example.com/w"),
        signed(STATUS, algorithm="sha256"),
        callback(b"MessageSid=1", {"x-twilio-signature": "AAAA"}),
        callback(b"MessageSid=1", {}),
    ],
)
def test_both_agree_on_a_signature_with_the_token(coming: Callback) -> None:
    """Twilio's own verifier on the same callbacks, good and bad."""
    assert _is_ours(coming) is _is_theirs(coming)


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
@pytest.mark.parametrize("secret", [SHARED_SECRET, TOKEN])
def test_both_agree_on_a_signature_with_a_shared_key(algorithm: str, secret: str) -> None:
    """The same, where the settings header names the key and the algorithm."""
    named = f"key=webhooks_sharedkey_1,algorithm=HMAC_{algorithm.upper()}"
    coming = signed(STATUS, secret=secret, algorithm=algorithm, settings=named)
    verdict = _is_ours(coming, webhook_shared_secret=SHARED_SECRET)
    assert verdict is _is_theirs(coming, SHARED_SECRET) is (secret == SHARED_SECRET)


@pytest.mark.parametrize("change", [b"", b" "])
def test_both_agree_on_a_body_that_is_no_form(change: bytes) -> None:
    """The hash of the body, in the address."""
    body = json.dumps(STATUS).encode()
    url = f"{CALLBACK_URL}?bodySHA256={hashlib.sha256(body).hexdigest()}"
    signature = request_validator.RequestValidator(TOKEN).compute_signature(url, {})
    coming = callback(body + change, {"content-type": "application/json", "x-twilio-signature": signature}, url=url)
    assert _is_ours(coming) is _is_theirs(coming) is (not change)
