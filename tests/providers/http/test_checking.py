from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from outreach.models.account import PROVIDERS
from outreach.protocols.adapter import AccountCheck, Connection
from outreach.providers.registry import Adapters
from outreach.testing.clock import ManualClock

NOT_PLAIN = "pässwörter-sind-lang"
IN_PEM = {"private_key"}
"""Secrets that are keys and not texts, and have rules of their own."""


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_secret_that_no_header_can_hold_is_refused(provider: str) -> None:
    """RFC 9110, 5.5: what comes or goes in a header is ASCII; else every callback would be refused."""
    known = Adapters().adapter(provider)
    secrets = [field.name for field in known.fields if field.secret and field.name not in IN_PEM]
    assert secrets
    given = {field.name: "plain-0123456789" for field in known.fields if field.required}
    for name in secrets:
        assert any(words.startswith(f"{name} must be one line") for words in known.problems({**given, name: NOT_PLAIN}))


ACCOUNTS: dict[str, dict[str, str]] = {
    "twilio": {"account_sid": "AC" + "0" * 32, "auth_token": "s3cret-token"},
    "telnyx": {"api_key": "s3cret-token", "public_key": "x"},
    "vonage": {"api_key": "a", "api_secret": "s3cret-token", "signature_secret": "c"},
    "vapi": {"api_key": "s3cret-token", "webhook_secret": "b" * 16},
    "retell": {"api_key": "s3cret-token"},
    "elevenlabs": {"api_key": "s3cret-token", "webhook_secret": "b"},
}
NAMED = {
    "twilio": {"api_key_sid": "SK" + "0" * 32, "api_key_secret": "s3cret-key"},
    "telnyx": {"messaging_profile_id": "profile-1"},
    "vonage": {"application_id": "application-1", "private_key": "s3cret-pem"},
}
"""What more an account may name, and is asked for then."""

BOTH = [*ACCOUNTS.items(), *((name, {**ACCOUNTS[name], **more}) for name, more in NAMED.items())]


Handler = Callable[[httpx.Request], httpx.Response]


async def check(provider: str, credentials: dict[str, str], answer: httpx.Response | Handler) -> AccountCheck:
    """Check an account at a provider that answers everything alike."""
    handler = (lambda _: answer) if isinstance(answer, httpx.Response) else answer
    async with httpx.AsyncClient(transport=httpx.MockTransport(handler)) as http:
        return (
            await Adapters()
            .adapter(provider)
            .check(
                Connection(workspace_id="w", account_id="a", credentials=credentials, http=http, clock=ManualClock())
            )
        )


@pytest.mark.anyio
@pytest.mark.parametrize(
    "body", ["<html>Sign in to the network</html>", "", "null", "{}", '{"items": 5}', "[" * 50_000]
)
@pytest.mark.parametrize(("provider", "credentials"), BOTH)
async def test_only_the_providers_own_answer_is_a_success(
    provider: str, credentials: dict[str, str], body: str
) -> None:
    """A page to sign in, a proxy or another API answers 200 as well, and takes no message."""
    found = await check(provider, credentials, httpx.Response(200, text=body))
    assert not found.ok
    for words in ("is not from", "200", "api_base"):
        assert words in found.message


@pytest.mark.anyio
@pytest.mark.parametrize("status", [300, 301, 302, 304, 307, 400, 404, 405, 409, 422])
@pytest.mark.parametrize(("provider", "credentials"), BOTH)
async def test_what_will_not_pass_by_itself_is_not_to_be_tried_again(
    provider: str, credentials: dict[str, str], status: int
) -> None:
    """A redirect or a question that is not taken is of the account's set-up: the words say where to look."""
    found = await check(provider, credentials, httpx.Response(status, json={}))
    assert not found.ok
    assert str(status) in found.message
    assert "api_base" in found.message
    assert "again" not in found.message


@pytest.mark.anyio
@pytest.mark.parametrize("status", [401, 402, 403, 429, 500])
@pytest.mark.parametrize(("provider", "credentials"), BOTH)
async def test_a_check_names_the_status_and_no_secret(provider: str, credentials: dict[str, str], status: int) -> None:
    """`check` never raises, and its words hold no credential."""
    found = await check(provider, credentials, httpx.Response(status))
    assert not found.ok
    assert str(status) in found.message
    assert "s3cret" not in found.message


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("error", "words"),
    [(httpx.ConnectError, "check the network"), (httpx.ReadError, "reached"), (httpx.ReadTimeout, "in time")],
)
@pytest.mark.parametrize(("provider", "credentials"), BOTH)
async def test_a_check_of_what_cannot_be_reached_says_so(
    provider: str, credentials: dict[str, str], error: type[httpx.TransportError], words: str
) -> None:
    """The network's trouble is told apart from the account's."""

    def fail(request: httpx.Request) -> httpx.Response:
        raise error("No.", request=request)

    found = await check(provider, credentials, fail)
    assert not found.ok
    assert words in found.message


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        (
            {"errors": [{"code": "10015", "title": "Bad Request", "detail": "The id is\n no UUID."}]},
            "The id is no UUID.",
        ),
        ({"errors": [{"title": "Bad Request"}]}, "Bad Request"),
        ({"code": 20404, "message": "No such resource", "status": 404}, "No such resource"),
        ({"type": "x", "title": "Not found", "detail": "No application"}, "No application"),
        ({"detail": {"status": "x", "message": "No agent"}}, "No agent"),
        ({"status": "error", "error_message": "No org"}, "No org"),
        ({"message": ["limit must be a number"], "error": "Bad Request"}, "Bad Request"),
        ({"detail": "x" * 500}, "x" * 200),
        ({"errors": []}, None),
        ({"errors": [5]}, None),
        ({"detail": "a\x1b[31mb"}, None),
        ([], None),
        ({"detail": "There is no key s3cret-token here."}, None),
        ({"detail": "x" * 195 + "s3cret-token"}, None),
    ],
)
async def test_a_provider_that_says_more_is_quoted_without_secrets(refusal: Any, said: str | None) -> None:
    """What it says about the question helps; what holds a secret, is left out."""
    for status in (404, 422):
        found = await check("telnyx", ACCOUNTS["telnyx"], httpx.Response(status, json=refusal))
        assert (f" Telnyx says: {said}" if said else "api_base.") in found.message
        assert found.message.endswith(said or "api_base.")


@pytest.mark.anyio
@pytest.mark.parametrize("provider", sorted(ACCOUNTS))
async def test_an_answer_from_another_address_is_not_quoted(provider: str) -> None:
    """`api_base` may be the address of an internal service: only the status is shown."""
    account = {**ACCOUNTS[provider], "api_base": "http://127.0.0.1:9"}
    for status in (404, 422):
        found = await check(provider, account, httpx.Response(status, json={"message": "internal"}))
        assert (str(status) in found.message, "internal" in found.message) == (True, False)
        assert found.message.endswith("check the ids and api_base.")


@pytest.mark.anyio
async def test_a_secret_is_not_quoted_as_it_was_sent_either() -> None:
    """In the header of HTTP Basic it is written otherwise."""
    account = ACCOUNTS["twilio"]
    sent = base64.b64encode(f"{account['account_sid']}:{account['auth_token']}".encode()).decode()
    found = await check("twilio", account, httpx.Response(422, json={"message": f"What is {sent}?"}))
    assert "says" not in found.message
    found = await check("twilio", account, httpx.Response(422, json={"message": "What is that?"}))
    assert found.message.endswith("Twilio says: What is that?")
