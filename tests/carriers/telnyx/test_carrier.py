from __future__ import annotations

import json
from datetime import timedelta
from typing import Any, get_args

import httpx
import pytest

from outreach.core.clock import format_timestamp
from outreach.models.dispatch import DispatchOutcome, FailureClass
from outreach.models.states import DispatchState
from outreach.providers.carriers.telnyx import ADAPTER, errors
from outreach.providers.carriers.telnyx.errors import deciding_error
from outreach.testing.builders import NOW
from tests.carriers.adapters import AdapterRules, StandInContract
from tests.carriers.faults import FaultMatrix
from tests.carriers.kit import (
    BODY,
    CALLBACK_URL,
    SECONDS_TO_PACIFIC_MIDNIGHT,
    SENDER,
    TO,
    Caught,
    as_json,
    connection,
    lookup,
    sent,
)
from tests.carriers.telnyx.given import CREDENTIALS, DISPATCH, ID, PROFILE, TelnyxStandIn, a_payload, a_row

pytestmark = pytest.mark.anyio

ACCEPTED = {"data": a_payload()}


class TestTelnyx(StandInContract, FaultMatrix, AdapterRules):
    """Telnyx's adapter in front of a stand-in, when things go wrong, and its credentials."""

    adapter = ADAPTER
    credentials = CREDENTIALS
    stand_in = TelnyxStandIn
    accepted = as_json(ACCEPTED)


async def _body(**options: Any) -> dict[str, Any]:
    credentials = options.pop("credentials", CREDENTIALS)
    _, (request,) = await sent(ADAPTER, credentials, httpx.Response(200, json=ACCEPTED), **options)
    body: dict[str, Any] = json.loads(request.content)
    return body


async def _refused(error: object, status: int = 400) -> DispatchOutcome:
    outcome, _ = await sent(ADAPTER, CREDENTIALS, httpx.Response(status, json={"errors": error}))
    return outcome


async def test_a_message_is_one_object() -> None:
    """Our dispatch id in the message's own webhook URL, and the profile's left out."""
    assert await _body(dispatch_id="d-1") == {
        "to": TO,
        "from": SENDER,
        "text": BODY,
        "webhook_url": f"{CALLBACK_URL}?dispatch=d-1",
        "use_profile_webhooks": False,
    }


async def test_without_a_public_address_telnyx_gets_no_webhook() -> None:
    """The request has no webhook where no URL could be called."""
    assert await _body(callback_url=None) == {"to": TO, "from": SENDER, "text": BODY}


@pytest.mark.parametrize(("sender", "told"), [("Acme", True), (SENDER, False)])
async def test_a_profile_is_named_where_the_number_does_not_say_it(sender: str, told: bool) -> None:
    """A name needs the profile; a number has its own."""
    body = await _body(credentials={**CREDENTIALS, **PROFILE}, from_number=sender)
    assert body.get("from") == sender
    assert body.get("messaging_profile_id") == (PROFILE["messaging_profile_id"] if told else None)


@pytest.mark.parametrize("more", [{}, PROFILE])
async def test_a_profile_with_a_number_pool_sends_from_one_of_its_numbers(more: dict[str, str]) -> None:
    """The request names the profile alone, whatever profile the account has."""
    body = await _body(credentials={**CREDENTIALS, **more}, from_number=ID)
    assert (body.get("messaging_profile_id"), body.get("from")) == (ID, None)


async def test_a_look_up_of_a_pool_goes_by_the_profile() -> None:
    """From whatever number of it."""
    mine = a_row(uuid=ID, profile_id=ID, cli="+14155550177")
    found, caught = await _look_up(mine, a_row(), from_number=ID)
    assert found == DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=ID)
    assert "filter[cli]" not in caught.request.url.params


@pytest.mark.parametrize("more", [{}, PROFILE])
async def test_without_any_sender_nothing_is_asked(more: dict[str, str]) -> None:
    """Refused as `bad_sender`, without a request, whatever profile there is."""
    outcome, requests = await sent(
        ADAPTER, {**CREDENTIALS, **more}, httpx.Response(200, json=ACCEPTED), from_number=None
    )
    assert (outcome.state, outcome.reason) == (DispatchState.REFUSED, "bad_sender")
    assert requests == []


async def test_a_message_has_no_field_for_not_after() -> None:
    """Telnyx has no field for it, and says so; what is still in time is sent as it is."""
    assert not ADAPTER.connect(connection(CREDENTIALS)).capabilities.supports_not_after
    assert await _body(dispatch_id="d", not_after=NOW + timedelta(seconds=1)) == await _body(dispatch_id="d")


async def test_requests_go_with_the_key() -> None:
    """Bearer authentication."""
    _, (request,) = await sent(ADAPTER, CREDENTIALS, httpx.Response(200, json=ACCEPTED))
    assert request.headers["authorization"] == f"Bearer {CREDENTIALS['api_key']}"


@pytest.mark.parametrize(
    ("error", "status", "state", "reason"),
    [
        ({"code": "40310"}, 400, DispatchState.REFUSED, "invalid_number"),
        ({"code": "40300"}, 403, DispatchState.REFUSED, "opted_out"),
        ({"code": "40300", "title": "Blocked due to STOP message"}, 400, DispatchState.REFUSED, "opted_out"),
        ({"code": "40300", "title": "Blocked by the network"}, 400, DispatchState.REFUSED, "rejected"),
        ({"code": "40305"}, 403, DispatchState.REFUSED, "bad_sender"),
        ({"code": "40302"}, 400, DispatchState.REFUSED, "bad_body"),
        ({"code": "40006"}, 400, DispatchState.REFUSED, "temporary"),
        ({"code": "20100"}, 403, DispatchState.REFUSED, "provider_funds"),
        ({"code": "10009"}, 401, DispatchState.REFUSED, "provider_auth"),
        ({"code": "10011"}, 429, DispatchState.DEFERRED, "rate_limited"),
        ({"code": "40318"}, 400, DispatchState.DEFERRED, "rate_limited"),
        ({"code": "40016"}, 400, DispatchState.DEFERRED, "rate_limited"),
        ({"code": "10002", "source": {"pointer": "/from"}}, 400, DispatchState.REFUSED, "bad_sender"),
        ({"code": "10002", "source": {"pointer": "/to"}}, 400, DispatchState.REFUSED, "invalid_number"),
        ({"code": "10002", "source": {"pointer": ["/to"]}}, 400, DispatchState.REFUSED, "invalid_number"),
        ({"code": "10016", "source": 7}, 400, DispatchState.REFUSED, "invalid_number"),
        ({"code": "99999"}, 422, DispatchState.REFUSED, "rejected"),
        ({"code": 40310}, 422, DispatchState.REFUSED, "rejected"),
        ({}, 403, DispatchState.REFUSED, "provider_auth"),
        ("no", 402, DispatchState.REFUSED, "provider_funds"),
        ({"code": "10007"}, 400, DispatchState.UNKNOWN, "provider_error"),
        ({"code": "10008"}, 408, DispatchState.UNKNOWN, "provider_error"),
    ],
)
async def test_a_code_has_its_class(error: object, status: int, state: DispatchState, reason: str) -> None:
    """docs/carriers/telnyx.md#codes: by the table, what it lacks by the status, and Telnyx's own errors as unknown."""
    outcome = await _refused([error], status)
    assert (outcome.state, outcome.reason) == (state, reason)
    assert outcome.account_wide
    # T-Mobile's daily limit ends at midnight in Los Angeles.
    assert (outcome.retry_after_seconds == SECONDS_TO_PACIFIC_MIDNIGHT) is (error == {"code": "40016"})


@pytest.mark.parametrize(
    ("codes", "state", "reason", "code"),
    [
        (["40016", "40310"], DispatchState.REFUSED, "invalid_number", "40310"),
        (["40310", "20100"], DispatchState.REFUSED, "provider_funds", "20100"),
        (["99999", "40300"], DispatchState.REFUSED, "opted_out", "40300"),
        (["99999", "40318"], DispatchState.DEFERRED, "rate_limited", "40318"),
        (["40310", "10007"], DispatchState.UNKNOWN, "provider_error", "10007"),
        (["40001", "40310"], DispatchState.REFUSED, "invalid_number", "40001"),
    ],
)
async def test_of_several_errors_the_strongest_decides(
    codes: list[str], state: DispatchState, reason: str, code: str
) -> None:
    """Wherever it stands; of equal ones the first."""
    outcome = await _refused(["x", *({"code": one} for one in codes)], 400)
    assert (outcome.state, outcome.reason, outcome.error_code) == (state, reason, code)


@pytest.mark.parametrize("errors", [None, [], 5, "x", {"code": "40310"}, [[]]])
async def test_a_refusal_without_errors_goes_by_its_status(errors: object) -> None:
    """Whatever stands where the errors should be, the answer is still a no."""
    assert (await _refused(errors, 400)).state is DispatchState.REFUSED


async def test_limit_headers_say_when_to_come_again() -> None:
    """`x-ratelimit-reset`, where there is no `Retry-After`."""
    answer = httpx.Response(429, headers={"x-ratelimit-reset": "3"}, json={"errors": [{"code": "10011"}]})
    outcome, _ = await sent(ADAPTER, CREDENTIALS, answer)
    assert outcome.retry_after_seconds == 3.0


@pytest.mark.parametrize(
    ("status", "code", "reason"),
    [("sending_failed", "40002", "filtered"), ("delivery_failed", "40008", "temporary"), ("expired", None, "rejected")],
)
async def test_a_yes_that_has_failed_already_is_a_no(status: str, code: str | None, reason: str) -> None:
    """An answer of success whose message has failed reached nobody; its id is kept."""
    payload = a_payload(status, errors=[{"code": code, "title": "No"}] if code else [])
    outcome, _ = await sent(ADAPTER, CREDENTIALS, httpx.Response(200, json={"data": payload}))
    assert (outcome.state, outcome.reason, outcome.provider_id) == (DispatchState.REFUSED, reason, ID)


async def _look_up(*rows: dict[str, Any], pages: int = 1, **changes: Any) -> tuple[DispatchOutcome | None, Caught]:
    caught = Caught(lambda _: httpx.Response(200, json={"data": list(rows), "meta": {"total_pages": pages}}))
    carrier = ADAPTER.connect(caught.connection(CREDENTIALS))
    return await carrier.look_up(lookup(dispatch_id=DISPATCH, **changes)), caught


async def test_a_look_up_searches_the_records() -> None:
    """By both numbers and the days; the record whose address carries our id is the message."""
    mine, another = a_row(uuid=ID), a_row(delivery_status_webhook_url=f"{CALLBACK_URL}?dispatch=another")
    found, caught = await _look_up(another, mine, a_row(delivery_status_webhook_url=None))
    assert found == DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=ID)
    assert dict(caught.request.url.params) == {
        "filter[record_type]": "messaging",
        "filter[direction]": "outbound",
        "filter[cld]": TO,
        "filter[cli]": SENDER,
        "filter[created_at][gte]": "2026-03-02",
        "filter[created_at][lt]": "2026-03-03",
        "page[size]": "50",
        "page[number]": "1",
    }


async def test_the_only_record_without_an_address_is_taken() -> None:
    """Where no public address was set, the numbers and the time have to do: where nothing else could be meant."""
    found, caught = await _look_up(a_row(uuid=ID, delivery_status_webhook_url=None))
    assert found == DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=ID, circumstantial=True)
    assert caught.request.url.params["filter[cli]"] == SENDER


async def test_what_had_no_sender_is_not_looked_for() -> None:
    """It was refused here."""
    found, caught = await _look_up(a_row(), from_number=None)
    assert (found, caught.requests) == (None, [])


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [a_row(), a_row()],
        [a_row(delivery_status_webhook_url=None), a_row(delivery_status_webhook_url="")],
        [a_row(delivery_status_webhook_url=f"{CALLBACK_URL}?dispatch=another")],
        [a_row(cld="+14155550101")],
        [a_row(cli="+14155550198")],
        [a_row(direction="inbound")],
        [a_row(created_at=format_timestamp(NOW - timedelta(minutes=1)))],
        [a_row(created_at=format_timestamp(NOW + timedelta(minutes=2)))],
        [a_row(created_at=None)],
        [a_row(uuid=None)],
        [a_row(delivery_status_webhook_url="https://[")] * 2,
    ],
)
async def test_a_look_up_that_finds_none_or_several_says_nothing(rows: list[dict[str, Any]]) -> None:
    """Two that fit could be anybody's; a record of another dispatch is not ours."""
    assert (await _look_up(*rows))[0] is None


@pytest.mark.parametrize(
    ("status", "errors", "reason"),
    [
        ("failed", ["40001"], "invalid_number"),
        ("gw_reject", ["40008"], "temporary"),
        ("failed", [7], "rejected"),
        ("failed", ["40008", "40300"], "opted_out"),
    ],
)
async def test_a_record_of_a_failure_is_a_refusal(status: str, errors: list[object], reason: str) -> None:
    """A message that failed reached nobody; why says the code of the record."""
    found, _ = await _look_up(a_row(uuid=ID, status=status, errors=errors))
    assert found is not None
    assert (found.state, found.reason, found.provider_id) == (DispatchState.REFUSED, reason, ID)


async def test_a_look_up_that_would_read_too_many_pages_gives_up() -> None:
    """What cannot be seen whole cannot be told to hold only one."""
    found, caught = await _look_up(a_row(), pages=9)
    assert found is None
    assert [request.url.params["page[number]"] for request in caught.requests] == ["1", "2", "3", "4"]


async def test_a_message_whose_id_is_known_is_asked_for_by_it() -> None:
    """With an identifier there is nothing to compare."""
    caught = Caught(httpx.Response(200, json={"data": a_payload("delivered")}))
    found = await ADAPTER.connect(caught.connection(CREDENTIALS)).look_up(lookup(provider_id=ID))
    assert caught.request.url.path == f"/v2/messages/{ID}"
    assert found == DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=ID)


@pytest.mark.parametrize("key", ["AAAA", "no base64 !", CREDENTIALS["public_key"] + "AAAA"])
def test_a_public_key_that_is_none_is_a_problem(key: str) -> None:
    """Without a key that can verify callbacks there is no account."""
    (problem,) = ADAPTER.problems({**CREDENTIALS, "public_key": key})
    assert problem.startswith("public_key")


async def test_a_check_lists_one_profile() -> None:
    """A harmless question where no profile is named."""
    caught = Caught(httpx.Response(200, json={"data": []}))
    assert (await ADAPTER.check(caught.connection(CREDENTIALS))).ok
    assert (caught.request.method, caught.request.url.path) == ("GET", "/v2/messaging_profiles")
    assert dict(caught.request.url.params) == {"page[size]": "1"}


@pytest.mark.parametrize(("data", "ok"), [({"enabled": True}, True), ({}, True), ({"enabled": False}, False)])
async def test_a_check_reads_the_profile_that_is_named(data: dict[str, object], ok: bool) -> None:
    """A profile that is disabled would refuse every message."""
    caught = Caught(httpx.Response(200, json={"data": data}))
    assert (await ADAPTER.check(caught.connection({**CREDENTIALS, **PROFILE}))).ok is ok
    assert caught.request.url.path == f"/v2/messaging_profiles/{PROFILE['messaging_profile_id']}"


@pytest.mark.parametrize("reason", get_args(FailureClass))
def test_a_code_of_any_class_is_ranked_among_other_errors(
    monkeypatch: pytest.MonkeyPatch, reason: FailureClass
) -> None:
    """A class that a code gets one day must not break the reading of every such answer."""
    monkeypatch.setattr(errors, "FAILURES", {"1": reason})
    assert deciding_error({"errors": [{"code": "unknown"}, {"code": "1"}]}) == {"code": "1"}
