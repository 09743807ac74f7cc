from __future__ import annotations

from datetime import timedelta
from email.utils import format_datetime
from typing import Any
from urllib.parse import parse_qsl

import httpx
import pytest

from outreach.models.dispatch import DispatchOutcome
from outreach.models.states import DispatchState
from outreach.providers.carriers.twilio import ADAPTER
from outreach.testing.builders import NOW
from tests.carriers.adapters import AdapterRules, StandInContract
from tests.carriers.faults import FaultMatrix
from tests.carriers.kit import BODY, CALLBACK_URL, SENDER, TO, Caught, as_json, lookup, sent
from tests.carriers.twilio.given import ACCOUNT_SID, CREDENTIALS, SID, TwilioStandIn, a_message

pytestmark = pytest.mark.anyio

SERVICE = "MG" + "0aF1" * 8
API_KEY = {"api_key_sid": "SK" + "0" * 32, "api_key_secret": "secret-of-the-key"}


class TestTwilio(StandInContract, FaultMatrix, AdapterRules):
    """Twilio's adapter in front of a stand-in, when things go wrong, and its credentials."""

    adapter = ADAPTER
    credentials = CREDENTIALS
    stand_in = TwilioStandIn
    accepted = as_json(a_message(), 201)


async def _form(**options: Any) -> dict[str, str]:
    credentials = options.pop("credentials", CREDENTIALS)
    _, (request,) = await sent(ADAPTER, credentials, httpx.Response(201, json=a_message()), **options)
    return dict(parse_qsl(request.content.decode()))


async def test_a_message_is_one_form() -> None:
    """Numbers with a plus, our dispatch id in the callback's URL."""
    assert await _form(dispatch_id="d-1") == {
        "To": TO,
        "From": SENDER,
        "Body": BODY,
        "StatusCallback": f"{CALLBACK_URL}?dispatch=d-1",
    }


async def test_without_a_public_address_twilio_gets_no_status_callback() -> None:
    """No `StatusCallback` where nothing could be called."""
    assert "StatusCallback" not in await _form(callback_url=None)


async def test_without_a_sender_nothing_is_asked() -> None:
    """Refused as `bad_sender`, without a request."""
    outcome, requests = await sent(ADAPTER, CREDENTIALS, httpx.Response(201, json=a_message()), from_number=None)
    assert (outcome.state, outcome.reason) == (DispatchState.REFUSED, "bad_sender")
    assert "no number" in (outcome.error_message or "")
    assert requests == []


async def test_a_messaging_service_sends_from_one_of_its_numbers() -> None:
    """The request names the service alone."""
    form = await _form(from_number=SERVICE)
    assert (form.get("MessagingServiceSid"), form.get("From")) == (SERVICE, None)
    assert "MessagingServiceSid" not in await _form()


async def test_a_look_up_of_a_service_takes_the_only_message_of_it() -> None:
    """From whatever number; those of another service or of a number are others."""
    mine = _listed(sid=SID, messaging_service_sid=SERVICE, **{"from": "+14155550177"})
    found, caught = await _look_up([mine, _listed()], from_number=SERVICE)
    assert found == DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=SID, circumstantial=True)
    assert "From" not in caught.request.url.params
    assert (await _look_up([mine, {**mine, "sid": SID[:-1] + "9"}], from_number=SERVICE))[0] is None


@pytest.mark.parametrize(("left", "seconds"), [(6.0, "1"), (65.9, "60"), (36_005, "36000"), (1e6, "36000")])
async def test_the_validity_period_ends_before_not_after(left: float, seconds: str) -> None:
    """Whole seconds, less what the request may take; at most 36,000."""
    assert (await _form(not_after=NOW + timedelta(seconds=left)))["ValidityPeriod"] == seconds


@pytest.mark.parametrize("more", [{}, API_KEY])
async def test_requests_go_with_the_key_or_the_token(more: dict[str, str]) -> None:
    """Basic authentication, with the API key where there is one."""
    _, (request,) = await sent(ADAPTER, {**CREDENTIALS, **more}, httpx.Response(201, json=a_message()))
    user, password = more.values() or CREDENTIALS.values()
    assert request.headers["authorization"] == httpx.BasicAuth(user, password)._auth_header


@pytest.mark.parametrize(
    ("code", "state", "reason"),
    [
        (21211, DispatchState.REFUSED, "invalid_number"),
        (21610, DispatchState.REFUSED, "opted_out"),
        (21606, DispatchState.REFUSED, "bad_sender"),
        (21617, DispatchState.REFUSED, "bad_body"),
        (20005, DispatchState.REFUSED, "provider_funds"),
        (20003, DispatchState.REFUSED, "provider_auth"),
        (30003, DispatchState.REFUSED, "temporary"),
        (21611, DispatchState.DEFERRED, "rate_limited"),
        (14107, DispatchState.DEFERRED, "rate_limited"),
        (20429, DispatchState.DEFERRED, "rate_limited"),
        (99999, DispatchState.REFUSED, "rejected"),
        ("21610", DispatchState.REFUSED, "opted_out"),
        (None, DispatchState.REFUSED, "rejected"),
        (True, DispatchState.REFUSED, "rejected"),
    ],
)
async def test_a_code_has_its_class(code: object, state: DispatchState, reason: str) -> None:
    """docs/carriers/twilio.md#codes: by the table, and what it lacks by the status."""
    answer = httpx.Response(400, json={"code": code, "message": "m" * 500, "status": 400})
    outcome, _ = await sent(ADAPTER, CREDENTIALS, answer)
    assert (outcome.state, outcome.reason) == (state, reason)
    assert outcome.error_message == "m" * 300
    # The queue of one sending number is full; the account's others are not.
    assert outcome.account_wide is (code not in {21611, 14107})


@pytest.mark.parametrize(
    ("status", "code", "reason"),
    [
        ("failed", 30007, "filtered"),
        ("undelivered", 30003, "temporary"),
        ("canceled", None, "rejected"),
    ],
)
async def test_a_yes_that_has_failed_already_is_a_no(status: str, code: int | None, reason: str) -> None:
    """A message that is made and failed in one has reached nobody; its id is kept."""
    answer = httpx.Response(201, json=a_message(sid=SID, status=status, error_code=code))
    outcome, _ = await sent(ADAPTER, CREDENTIALS, answer)
    assert (outcome.state, outcome.reason, outcome.provider_id) == (DispatchState.REFUSED, reason, SID)


@pytest.mark.parametrize(("code", "account_wide"), [(30001, False), (30022, True), (30027, True)])
async def test_a_yes_that_has_failed_at_a_limit_is_deferred(code: int, account_wide: bool) -> None:
    """Nobody was reached, and the contact waits; a limit of the account throttles it."""
    answer = httpx.Response(201, json=a_message(sid=SID, status="failed", error_code=code))
    outcome, _ = await sent(ADAPTER, CREDENTIALS, answer)
    assert (outcome.state, outcome.reason) == (DispatchState.DEFERRED, "rate_limited")
    assert outcome.account_wide is account_wide
    assert (outcome.retry_after_seconds is not None) is account_wide


@pytest.mark.parametrize(
    ("code", "header", "seconds"),
    [(63038, None, 3600.0), (63038, "7200", 7200.0), (30022, "1", 60.0), (20429, "5", 5.0)],
)
async def test_a_limit_lasts_until_its_reset_or_for_as_long_as_the_answer_says(
    code: int, header: str | None, seconds: float
) -> None:
    """The longer of both counts."""
    headers = {"retry-after": header} if header else {}
    answer = httpx.Response(429, json={"code": code, "status": 429}, headers=headers)
    outcome, _ = await sent(ADAPTER, CREDENTIALS, answer)
    assert (outcome.state, outcome.retry_after_seconds) == (DispatchState.DEFERRED, seconds)


@pytest.mark.parametrize("sid", ["SM1", "XX" + "0" * 32, "SM" + "0" * 33, None, 7])
async def test_a_yes_without_a_message_sid_cannot_be_read(sid: object) -> None:
    """What has not the form of a message's identifier is no acceptance."""
    outcome, _ = await sent(ADAPTER, CREDENTIALS, httpx.Response(201, json=a_message(sid=sid)))
    assert outcome.state is DispatchState.UNKNOWN


def _listed(**changes: Any) -> dict[str, Any]:
    return a_message(**{"body": BODY, "date_created": format_datetime(NOW), **changes})


async def _look_up(*pages: list[dict[str, Any]], **changes: Any) -> tuple[Any, Caught]:
    left = list(pages)

    def answer(_: httpx.Request) -> httpx.Response:
        messages = left.pop(0)
        uri = f"/2010-04-01/Accounts/{ACCOUNT_SID}/Messages.json?Page=1" if left else None
        return httpx.Response(200, json={"messages": messages, "next_page_uri": uri})

    caught = Caught(answer)
    return await ADAPTER.connect(caught.connection(CREDENTIALS)).look_up(lookup(**changes)), caught


async def test_a_look_up_takes_the_only_message_that_fits() -> None:
    """One with these numbers, this text, made at the time: over all pages."""
    mine = _listed(sid=SID)
    found, caught = await _look_up([_listed(body="another"), _listed(direction="inbound")], [mine])
    assert (found.state, found.provider_id) == (DispatchState.ACCEPTED, SID)
    assert dict(caught.requests[0].url.params) == {"To": TO, "From": SENDER, "PageSize": "200"}
    assert caught.requests[1].url.params["Page"] == "1"


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [_listed(), _listed()],
        [_listed(body="another")],
        [_listed(to="+14155550101")],
        [_listed(**{"from": "+14155550198"})],
        [_listed(direction="inbound")],
        [_listed(date_created=format_datetime(NOW - timedelta(minutes=1)))],
        [_listed(date_created=format_datetime(NOW + timedelta(minutes=2)))],
        [_listed(date_created=None)],
        [_listed(date_created="yesterday")],
        [_listed(sid="other")],
    ],
)
async def test_a_look_up_that_finds_none_or_several_says_nothing(messages: list[dict[str, Any]]) -> None:
    """Two that fit could be anybody's, and none that fits may only not be listed yet."""
    assert (await _look_up(messages))[0] is None


async def test_a_look_up_that_would_read_too_many_pages_gives_up() -> None:
    """What cannot be seen whole cannot be told to hold only one."""
    found, caught = await _look_up(*[[_listed()]] * 9)
    assert found is None
    assert len(caught.requests) == 5


@pytest.mark.parametrize("uri", ["https://elsewhere.example.com/x", "//elsewhere.example.com/x", "/other", 7])
async def test_a_next_page_elsewhere_is_not_asked(uri: object) -> None:
    """Credentials go to Twilio's API and nowhere else."""
    caught = Caught(httpx.Response(200, json={"messages": [], "next_page_uri": uri}))
    assert await ADAPTER.connect(caught.connection(CREDENTIALS)).look_up(lookup()) is None
    assert len(caught.requests) == 1


async def test_what_had_no_sender_is_not_looked_for() -> None:
    """It was refused here."""
    found, caught = await _look_up([_listed()], from_number=None)
    assert (found, caught.requests) == (None, [])


async def test_a_message_whose_id_is_known_is_asked_for_by_it() -> None:
    """With an identifier there is nothing to compare; one that failed is a refusal with its class."""
    caught = Caught(httpx.Response(200, json=a_message(sid=SID, status="undelivered", error_code=30005)))
    found = await ADAPTER.connect(caught.connection(CREDENTIALS)).look_up(lookup(provider_id=SID))
    assert caught.request.url.path == f"/2010-04-01/Accounts/{ACCOUNT_SID}/Messages/{SID}.json"
    assert found is not None
    assert (found.state, found.reason, found.provider_id) == (DispatchState.REFUSED, "invalid_number", SID)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"account_sid": "AC1"}, "account_sid"),
        ({"api_key_sid": "SK" + "0" * 32}, "together"),
        ({"api_key_secret": "x"}, "together"),
        ({"api_key_sid": "key", "api_key_secret": "x"}, "api_key_sid"),
        ({"webhook_shared_secret": "a\nb"}, "webhook_shared_secret"),
    ],
)
def test_credentials_of_a_wrong_form_are_a_problem(changes: dict[str, str], problem: str) -> None:
    """One sentence for each, which names the field."""
    (found,) = ADAPTER.problems({**CREDENTIALS, **changes})
    assert problem in found


@pytest.mark.parametrize(
    ("status", "ok", "words"),
    [("active", True, "active"), ("suspended", False, "suspended"), (None, False, "not known")],
)
async def test_a_check_reads_the_account(status: str | None, ok: bool, words: str) -> None:
    """The account's own status counts."""
    caught = Caught(httpx.Response(200, json={"sid": ACCOUNT_SID, "status": status}))
    found = await ADAPTER.check(caught.connection(CREDENTIALS))
    assert (found.ok, words in found.message) == (ok, True)
    assert (caught.request.method, caught.request.url.path) == ("GET", f"/2010-04-01/Accounts/{ACCOUNT_SID}.json")


async def test_a_check_tries_the_api_key_too() -> None:
    """The token proves what verifies callbacks, the key what sends: each is asked once."""
    both = {"sid": ACCOUNT_SID, "status": "active", "messages": []}
    caught = Caught(lambda request: httpx.Response(200, json=both))
    assert (await ADAPTER.check(caught.connection({**CREDENTIALS, **API_KEY}))).ok
    assert [request.headers["authorization"] for request in caught.requests] == [
        httpx.BasicAuth(*CREDENTIALS.values())._auth_header,
        httpx.BasicAuth(*API_KEY.values())._auth_header,
    ]
    refused = Caught(lambda request: httpx.Response(401 if "Messages" in request.url.path else 200, json=both))
    found = await ADAPTER.check(refused.connection({**CREDENTIALS, **API_KEY}))
    assert not found.ok
    assert found.message.startswith("With the API key")
