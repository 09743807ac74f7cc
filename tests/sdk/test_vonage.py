from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import httpx
import pytest

from outreach.core.clock import SystemClock
from outreach.models.states import DispatchState
from outreach.protocols.adapter import Callback, CallbackRefused
from outreach.providers.carriers.vonage import ADAPTER
from outreach.providers.carriers.vonage.tokens import application_token
from outreach.testing.builders import NOW
from tests.carriers.kit import BODY, CALLBACK_URL, as_json, connection, message
from tests.carriers.vonage.given import (
    ACCEPTED,
    APPLICATION_ID,
    CREDENTIALS,
    SECRET,
    a_status,
    application,
    rsa_key,
    signed,
    token,
)
from tests.sdk.capture import Written, both

pytestmark = pytest.mark.anyio

vonage = pytest.importorskip("vonage")
vonage_jwt = pytest.importorskip("vonage_jwt")
vonage_messages = pytest.importorskip("vonage_messages")
adapters = pytest.importorskip("requests.adapters")


def _client(url: str, credentials: Mapping[str, str]) -> Any:
    host = url.removeprefix("http://")

    class Unencrypted(adapters.HTTPAdapter):  # type: ignore[misc,name-defined]
        """The library knows https alone."""

        def send(self, request: Any, **options: Any) -> Any:
            request.url = request.url.replace("https://", "http://", 1)
            return super().send(request, **options)

    named = ("api_key", "api_secret") if "application_id" not in credentials else ("application_id", "private_key")
    client = vonage.Vonage(
        vonage.Auth(**{name: credentials[name] for name in named}),
        vonage.HttpClientOptions(api_host=host, max_retries=0),
    )
    client.http_client._session.mount("https://", Unencrypted())
    return client


async def _compared(credentials: Mapping[str, str]) -> tuple[Written, Written]:
    def theirs(url: str) -> Any:
        sms = vonage_messages.Sms(
            to="14155550100",
            from_="14155550199",
            text=BODY,
            ttl=3600,
            client_ref="d-1",
            webhook_url=CALLBACK_URL,
            webhook_version="v1",
        )
        return _client(url, credentials).messages.send(sms)

    async def ours(url: str) -> Any:
        async with httpx.AsyncClient() as http:
            carrier = ADAPTER.connect(connection({**credentials, "api_base": url}, http=http))
            return await carrier.send(message(dispatch_id="d-1", not_after=NOW + timedelta(seconds=3605)))

    library, adapter, said, outcome = await both(as_json(ACCEPTED, 202), theirs, ours)
    assert (outcome.state, outcome.provider_id) == (DispatchState.ACCEPTED, said.message_uuid)
    return library, adapter


async def test_a_message_is_written_as_the_library_writes_it() -> None:
    """Same method, path, authorization, content type and body; and both read the same identifier."""
    library, adapter = await _compared(CREDENTIALS)
    assert adapter == library


async def test_an_application_gets_the_error_of_the_library() -> None:
    """The token has the same head and claims, but for its time and its identifier."""
    library, adapter = await _compared({**CREDENTIALS, **application()})
    assert attrs.evolve(adapter, authorization="") == attrs.evolve(library, authorization="")
    tokens = [made.authorization.removeprefix("Bearer ") for made in (library, adapter)]
    (their_head, theirs), (our_head, ours) = (
        [json.loads(base64.urlsafe_b64decode(part + "==")) for part in made.split(".")[:2]] for made in tokens
    )
    assert our_head == their_head
    assert ours.keys() == theirs.keys()
    assert ours["application_id"] == theirs["application_id"]
    assert ours["exp"] - ours["iat"] == theirs["exp"] - theirs["iat"]


def test_our_token_is_good_for_another_library() -> None:
    """PyJWT, which Vonage's library uses, verifies what we sign."""
    jwt = pytest.importorskip("jwt")
    made = application_token(rsa_key(), application_id=APPLICATION_ID, token_id="d-1", now=datetime.now(UTC))
    claims = jwt.decode(made, rsa_key().public_key(), algorithms=["RS256"])
    assert (claims["application_id"], claims["jti"]) == (APPLICATION_ID, "d-1")


def _is_ours(coming: Callback) -> bool:
    try:
        ADAPTER.read(connection(CREDENTIALS, clock=SystemClock()), coming)
    except CallbackRefused:
        return False
    return True


def _is_theirs(coming: Callback) -> bool:
    try:
        verdict: bool = vonage_jwt.verify_signature(coming.headers["authorization"].removeprefix("Bearer "), SECRET)
    except vonage_jwt.VonageVerifyJwtError:
        return False
    return verdict


@pytest.mark.parametrize(
    ("options", "good"),
    [({}, True), ({"secret": "other"}, False), ({"head": {"alg": "none"}}, False), ({"head": {"alg": "HS512"}}, False)],
)
def test_both_agree_on_a_token(options: dict[str, Any], good: bool) -> None:
    """Vonage's own verifier on the same tokens, good and bad."""
    coming = signed(a_status("delivered"), now=datetime.now(UTC), **options)
    assert _is_ours(coming) is _is_theirs(coming) is good


@pytest.mark.parametrize("cut", [".", "x", ""])
def test_both_refuse_what_is_no_token(cut: str) -> None:
    """Without its signature, or with another."""
    made = token(b"{}", now=datetime.now(UTC)).rpartition(".")[0] + cut
    coming = attrs.evolve(signed(a_status("delivered")), headers={"authorization": f"Bearer {made}"})
    assert not _is_ours(coming)
    assert not _is_theirs(coming)


def test_a_body_that_is_not_the_tokens_passes_the_library_and_not_us() -> None:
    """The library never sees the body; we hold it against `payload_hash`."""
    coming = attrs.evolve(signed(a_status("delivered"), now=datetime.now(UTC)), body=b'{"message_uuid": "x"}')
    assert _is_theirs(coming)
    assert not _is_ours(coming)
