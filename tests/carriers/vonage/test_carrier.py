from __future__ import annotations

import base64
import json
from datetime import timedelta
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1
from cryptography.hazmat.primitives.asymmetric.ec import generate_private_key as generate_ec_key
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from outreach.models.dispatch import DispatchOutcome
from outreach.models.states import DispatchState
from outreach.providers.carriers.vonage import ADAPTER
from outreach.testing.builders import NOW
from tests.carriers.adapters import AdapterRules, StandInContract
from tests.carriers.faults import FaultMatrix
from tests.carriers.kit import (
    BODY,
    CALLBACK_URL,
    SECONDS_TO_PACIFIC_MIDNIGHT,
    Caught,
    as_json,
    lookup,
    sent,
)
from tests.carriers.vonage.given import (
    ACCEPTED,
    API_KEY,
    APPLICATION_ID,
    CREDENTIALS,
    REPORTS,
    UUID,
    VonageStandIn,
    a_refusal,
    application,
    rsa_key,
)

pytestmark = pytest.mark.anyio


class TestVonageWithoutReports(StandInContract):
    """Vonage's adapter in front of a stand-in, without look-ups."""

    adapter = ADAPTER
    credentials = CREDENTIALS
    stand_in = VonageStandIn


class TestVonage(StandInContract, FaultMatrix, AdapterRules):
    """With look-ups; when things go wrong, and its credentials."""

    adapter = ADAPTER
    credentials = {**CREDENTIALS, **REPORTS}  # noqa: RUF012 - nobody changes it
    stand_in = VonageStandIn
    accepted = as_json(ACCEPTED, 202)


async def _request(**options: Any) -> httpx.Request:
    credentials = options.pop("credentials", CREDENTIALS)
    _, (request,) = await sent(ADAPTER, credentials, httpx.Response(202, json=ACCEPTED), **options)
    return request


async def _body(**options: Any) -> dict[str, Any]:
    body: dict[str, Any] = json.loads((await _request(**options)).content)
    return body


async def test_a_message_is_one_object() -> None:
    """Digits without a plus, and our dispatch id as the client's reference."""
    assert await _body(dispatch_id="d-1") == {
        "message_type": "text",
        "channel": "sms",
        "to": "14155550100",
        "from": "14155550199",
        "text": BODY,
        "client_ref": "d-1",
        "webhook_url": CALLBACK_URL,
        "webhook_version": "v1",
    }


async def test_without_a_public_address_vonage_gets_no_webhook() -> None:
    """The reference goes along all the same."""
    body = await _body(callback_url=None, dispatch_id="d-1")
    assert body["client_ref"] == "d-1"
    assert not {"webhook_url", "webhook_version"} & set(body)


async def test_a_name_may_be_the_sender() -> None:
    """Where letters are allowed they go as they are."""
    assert (await _body(from_number="Acme"))["from"] == "Acme"


@pytest.mark.parametrize(("sender", "words"), [(None, "no number"), ("MG" + "0aF1" * 8, "no Messaging Services")])
async def test_without_any_sender_nothing_is_asked(sender: str | None, words: str) -> None:
    """Vonage requires one, and has no Messaging Services: refused as `bad_sender`, without a request."""
    outcome, requests = await sent(ADAPTER, CREDENTIALS, httpx.Response(202, json=ACCEPTED), from_number=sender)
    assert (outcome.state, outcome.reason) == (DispatchState.REFUSED, "bad_sender")
    assert words in (outcome.error_message or "")
    assert requests == []


@pytest.mark.parametrize(("left", "seconds"), [(25.0, 20), (3605.9, 3600), (1e6, 604_800)])
async def test_the_time_to_live_ends_before_not_after(left: float, seconds: int) -> None:
    """Whole seconds, less what the request may take; at most a week."""
    assert (await _body(not_after=NOW + timedelta(seconds=left)))["ttl"] == seconds


async def test_less_than_the_shortest_time_to_live_is_too_late() -> None:
    """Vonage takes no `ttl` under 20 s: what has less left would live too long."""
    late = NOW + timedelta(seconds=24)
    outcome, requests = await sent(ADAPTER, CREDENTIALS, httpx.Response(202, json=ACCEPTED), not_after=late)
    assert (outcome.state, outcome.reason, requests) == (DispatchState.NOT_SENT, "too_late", [])


async def test_an_account_sends_with_its_key_and_secret() -> None:
    """Basic authentication, where no application is named."""
    authorization = (await _request()).headers["authorization"]
    assert authorization == httpx.BasicAuth(API_KEY, CREDENTIALS["api_secret"])._auth_header


async def test_an_application_sends_with_a_token_of_its_own() -> None:
    """RS256 over the application, the time, and an identifier that no other token has."""
    request = await _request(credentials={**CREDENTIALS, **application()}, dispatch_id="d-1")
    scheme, _, token = request.headers["authorization"].partition(" ")
    head, claims, signature = (base64.urlsafe_b64decode(part + "==") for part in token.split("."))
    issued = int(NOW.timestamp())
    assert scheme == "Bearer"
    assert json.loads(head) == {"alg": "RS256", "typ": "JWT"}
    assert json.loads(claims) == {
        "application_id": APPLICATION_ID,
        "iat": issued,
        "exp": issued + 900,
        "jti": "d-1",
    }
    rsa_key().public_key().verify(signature, token.rpartition(".")[0].encode(), PKCS1v15(), SHA256())


@pytest.mark.parametrize(
    ("code", "status", "state", "reason"),
    [
        ("1430", 422, DispatchState.REFUSED, "invalid_number"),
        ("1240", 422, DispatchState.REFUSED, "opted_out"),
        ("1420", 422, DispatchState.REFUSED, "bad_sender"),
        ("1180", 422, DispatchState.REFUSED, "temporary"),
        ("1000", 429, DispatchState.DEFERRED, "rate_limited"),
        ("1460", 422, DispatchState.DEFERRED, "rate_limited"),
        ("low-balance", 402, DispatchState.REFUSED, "provider_funds"),
        ("unauthorized", 401, DispatchState.REFUSED, "provider_auth"),
        ("1030", 422, DispatchState.UNKNOWN, "provider_error"),
        ("1320", 422, DispatchState.UNKNOWN, "provider_error"),
        ("9999", 422, DispatchState.REFUSED, "rejected"),
        ("", 402, DispatchState.REFUSED, "provider_funds"),
    ],
)
async def test_a_code_has_its_class(code: str, status: int, state: DispatchState, reason: str) -> None:
    """docs/carriers/vonage.md#codes: the fragment of the type, by the table; what it lacks by the status."""
    outcome, _ = await sent(ADAPTER, CREDENTIALS, httpx.Response(status, json=a_refusal(code)))
    assert (outcome.state, outcome.reason, outcome.error_code) == (state, reason, code or str(status))
    assert outcome.account_wide
    assert (outcome.retry_after_seconds == SECONDS_TO_PACIFIC_MIDNIGHT) is (code == "1460")


@pytest.mark.parametrize(
    "error",
    [{"type": 7}, {"type": "no fragment"}, {"type": "#" + "x" * 41}, {"title": 5}, {"title": True}, {"type": []}],
)
async def test_a_refusal_without_a_code_goes_by_its_status(error: dict[str, object]) -> None:
    """Whatever stands where the code should be, the answer is still a no."""
    outcome, _ = await sent(ADAPTER, CREDENTIALS, httpx.Response(422, json=error))
    assert (outcome.state, outcome.reason) == (DispatchState.REFUSED, "rejected")


def _record(**changes: Any) -> dict[str, Any]:
    return {"message_id": UUID, "client_ref": "d-1", "status": "submitted", "error_code": None, **changes}


async def _look_up(*pages: list[dict[str, Any]], **changes: Any) -> tuple[DispatchOutcome | None, Caught]:
    left = list(pages)

    def answer(_: httpx.Request) -> httpx.Response:
        records = left.pop(0)
        more = {"request_status": "TRUNCATED", "cursor": "c", "iv": "i"} if left else {"request_status": "SUCCESS"}
        return httpx.Response(200, json={**more, "records": records})

    caught = Caught(answer)
    carrier = ADAPTER.connect(caught.connection({**CREDENTIALS, **REPORTS, **application()}))
    return await carrier.look_up(lookup(dispatch_id="d-1", **changes)), caught


async def test_a_look_up_reads_the_records_of_the_time() -> None:
    """By the account's key and secret, over all pages; the record with our reference is the message."""
    found, caught = await _look_up([_record(client_ref="d-2")], [_record(), _record(client_ref=None)])
    assert found == DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=UUID)
    asked = {
        "account_id": API_KEY,
        "product": "MESSAGES",
        "direction": "outbound",
        "date_start": "2026-03-02T09:30:10Z",
        "date_end": "2026-03-02T09:31:15Z",
    }
    assert [dict(request.url.params) for request in caught.requests] == [asked, {**asked, "cursor": "c", "iv": "i"}]
    assert {request.headers["authorization"][:6] for request in caught.requests} == {"Basic "}


async def test_a_message_whose_id_is_known_is_asked_for_by_it() -> None:
    """An identifier and a time exclude each other at Vonage."""
    found, caught = await _look_up([_record(client_ref=None)], provider_id=UUID)
    assert found is not None
    assert caught.request.url.params["id"] == UUID
    assert "date_start" not in caught.request.url.params


@pytest.mark.parametrize(
    "records",
    [[], [_record(), _record()], [_record(client_ref="d-2")], [_record(message_id=None)]],
)
async def test_a_look_up_that_finds_none_or_several_says_nothing(records: list[dict[str, Any]]) -> None:
    """Only one record with our reference is evidence."""
    assert (await _look_up(records))[0] is None


async def test_a_look_up_that_would_read_too_many_pages_gives_up() -> None:
    """Records cost: five pages, and not more."""
    found, caught = await _look_up(*[[_record()]] * 9)
    assert found is None
    assert len(caught.requests) == 5


async def test_a_page_without_the_way_to_the_next_is_no_evidence() -> None:
    """What is truncated, and cannot be followed, has not been seen whole."""
    caught = Caught(httpx.Response(200, json={"request_status": "TRUNCATED", "records": [_record()]}))
    carrier = ADAPTER.connect(caught.connection({**CREDENTIALS, **REPORTS}))
    assert await carrier.look_up(lookup(dispatch_id="d-1")) is None


async def test_a_record_of_a_failure_is_a_refusal() -> None:
    """A message that failed reached nobody; why says the code of the record."""
    found, _ = await _look_up([_record(status="REJECTED", error_code="1430")])
    assert found is not None
    assert (found.state, found.reason, found.error_code) == (DispatchState.REFUSED, "invalid_number", "1430")


async def test_records_are_asked_for_only_where_the_account_says_so() -> None:
    """They cost something: without `use_reports` nothing is asked."""
    for credentials in (CREDENTIALS, {**CREDENTIALS, "use_reports": "no"}):
        caught = Caught(httpx.Response(200, json={"records": [_record()]}))
        carrier = ADAPTER.connect(caught.connection(credentials))
        assert carrier.capabilities.look_up == "none"
        assert await carrier.look_up(lookup(dispatch_id="d-1", provider_id=UUID)) is None
        assert caught.requests == []


def _elliptic() -> str:
    key = generate_ec_key(SECP256R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"application_id": APPLICATION_ID}, "together"),
        ({"private_key": "x"}, "together"),
        ({"application_id": APPLICATION_ID, "private_key": "x"}, "private_key"),
        ({"application_id": APPLICATION_ID, "private_key": _elliptic()}, "private_key"),
        ({"use_reports": "perhaps"}, "use_reports"),
    ],
)
def test_credentials_of_a_wrong_form_are_a_problem(changes: dict[str, str], problem: str) -> None:
    """One sentence for each, which names the field."""
    assert any(problem in found for found in ADAPTER.problems({**CREDENTIALS, **changes}))


def test_an_application_has_no_problem() -> None:
    """The control for the above."""
    assert list(ADAPTER.problems({**CREDENTIALS, **application(), **REPORTS})) == []


@pytest.mark.parametrize("named", [False, True])
async def test_a_check_reads_an_application(named: bool) -> None:
    """A harmless question of the account's key and secret; of the application where one is named."""
    caught = Caught(httpx.Response(200, json={"id": APPLICATION_ID} if named else {"total_items": 0}))
    assert (await ADAPTER.check(caught.connection({**CREDENTIALS, **(application() if named else {})}))).ok
    assert caught.request.url.path == "/v2/applications" + (f"/{APPLICATION_ID}" if named else "")
    assert caught.request.headers["authorization"].startswith("Basic ")
