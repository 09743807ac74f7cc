"""The server's stand-ins of providers against the adapters: what they accept, answer and call back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import httpx
import pytest
from openapi_core.testing import MockResponse

from outreach.models.dispatch import DispatchOutcome
from outreach.models.reports import CallReport, MessageReport
from outreach.models.states import CallStatus, DispatchState, MessageStatus
from outreach.protocols.adapter import Connection, InboundMessageEvent
from outreach.protocols.carrier import LookupRequest
from outreach.protocols.sent_list import SentQuery
from outreach.testing.builders import NOW, WORKSPACE_ID
from outreach_server.cli.serving.stand_in import STAND_INS, stand_in_of
from outreach_server.stand_ins.app import is_loopback, stand_in_app
from outreach_server.stand_ins.base import POOL_NUMBER, WRITTEN_AFTER, Answer, Request, Scenario, StandIn
from tests.carriers.kit import CALLBACK_URL, callback, connection, message
from tests.provider_documents import as_mock, check, spec
from tests.voice.adapters import call_request

pytestmark = pytest.mark.anyio

CARRIERS = ("twilio", "telnyx", "vonage")
SENDER = "+14155550199"
_BUSY = {"elevenlabs": CallStatus.FAILED}
"""A conversation does not show why its call failed."""
DAY = timedelta(days=1)
DOCUMENTS = {one: f"{one}_messages" if one in CARRIERS else f"{one}_call" for one in STAND_INS}


async def asked(adapter: Any, account: Connection, to: str, **options: Any) -> DispatchOutcome:
    """Send a message, or place a call, and return the outcome."""
    provider: Any = adapter.connect(account)
    if adapter.kind == "carrier":
        sent: DispatchOutcome = await provider.send(message(to=to, **options))
        return sent
    placed: DispatchOutcome = await provider.place_call(call_request(to=to))
    return placed


class Played:
    """An adapter in front of a stand-in, without a network."""

    def __init__(self, provider: str) -> None:
        from outreach.providers.registry import Adapters

        self.stand_in: StandIn = stand_in_of(provider)
        self.adapter: Any = Adapters(()).adapter(provider)
        self.exchanges: list[tuple[httpx.Request, Answer]] = []
        self.connection = connection(
            self.stand_in.credentials, http=httpx.AsyncClient(transport=httpx.MockTransport(self._answer))
        )

    def _answer(self, request: httpx.Request) -> httpx.Response:
        received = Request(
            method=request.method, path=request.url.path, query=dict(request.url.params), body=request.content
        )
        found = self.stand_in.answer(received)
        self.exchanges.append((request, found))
        return httpx.Response(found.status, content=found.body, headers={"content-type": "application/json"})

    async def ask(self, to: str, **options: Any) -> Any:
        """Send a message, or place a call, and return the outcome."""
        return await asked(self.adapter, self.connection, to, **options)

    def told(self) -> list[Any]:
        """Return what the adapter reads in the callbacks of the last request."""
        found = []
        for one in self.exchanges[-1][1].callbacks:
            url = one.url or CALLBACK_URL
            signed = self.stand_in.sign(url, one.content, NOW)
            events = self.adapter.read(self.connection, callback(signed.body, signed.headers, url=url))
            found += [event.content for event in events]
        return found


async def looked_up(adapter: Any, account: Connection, outcome: DispatchOutcome) -> Any:
    """Return what the adapter finds of a message or call: the state of the message, the status of the call."""
    provider, name = adapter.connect(account), outcome.provider_id
    if adapter.kind == "voice":
        return (await provider.status(workspace_id=WORKSPACE_ID, dispatch_id="unknown", provider_id=name)).status
    lookup = LookupRequest(
        dispatch_id="unknown",
        workspace_id=WORKSPACE_ID,
        provider_id=name,
        from_number=SENDER,
        to=number(Scenario.FAILED),
        body="x",
        since=NOW,
        until=NOW,
    )
    found = await provider.look_up(lookup)
    return found.state, found.reason


@asynccontextmanager
async def served(played: Played, *, callback_url: str | None = CALLBACK_URL, **changes: str) -> AsyncIterator[Any]:
    """Serve a stand-in, and open an account there whose credentials are changed."""

    async def account_url() -> None:
        return None

    app = stand_in_app(played.stand_in, account_url)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app)) as http,
    ):
        yield connection({**played.stand_in.credentials, **changes}, http=http, callback_url=callback_url)


def number(scenario: Scenario) -> str:
    """Return a number with a scenario."""
    return f"+1415555{scenario or '0102'}"


@pytest.mark.parametrize("provider", STAND_INS)
async def test_its_credentials_and_its_account_are_in_order(provider: str) -> None:
    """As `accounts connect` and `accounts check` find them."""
    played = Played(provider)
    assert list(played.adapter.problems({**played.stand_in.credentials, "api_base": "http://127.0.0.1:9000"})) == []
    assert (await played.adapter.check(played.connection)).ok


@pytest.mark.parametrize(
    ("provider", "secret"),
    [(one, {"twilio": "auth_token", "vonage": "api_secret"}.get(one, "api_key")) for one in STAND_INS],
)
async def test_wrong_credentials_are_found(provider: str, secret: str) -> None:
    """A mistyped one is found in the rehearsal, and not at the provider."""
    played = Played(provider)
    for given, is_right in (({}, True), ({secret: "mistyped"}, False)):
        async with served(played, **given) as account:
            assert (await played.adapter.check(account)).ok is is_right
            found = await asked(played.adapter, account, number(Scenario.USUAL))
            assert (found.state is DispatchState.ACCEPTED, found.reason == "provider_auth") == (is_right, not is_right)


@pytest.mark.parametrize("provider", STAND_INS)
async def test_requests_and_answers_are_those_of_the_published_document(provider: str) -> None:
    """Of an acceptance and of a refusal."""
    played = Played(provider)
    for scenario in (Scenario.USUAL, Scenario.REFUSED):
        await played.ask(number(scenario))
        request, answer = played.exchanges[-1]
        check(DOCUMENTS[provider], request)
        response = MockResponse(answer.body, status_code=answer.status, content_type="application/json")
        if answer.status < 300:
            spec(DOCUMENTS[provider]).validate_response(as_mock(request), response)


@pytest.mark.parametrize(
    ("provider", "service"), [("twilio", "MG" + "0aF1" * 8), ("telnyx", "4000eba1-a0c0-4563-9925-b25e842a7cb6")]
)
async def test_a_messaging_service_chooses_a_number(provider: str, service: str) -> None:
    """Receipts and the reply name it; request and answer are those of the published document."""
    played = Played(provider)
    assert (await played.ask(number(Scenario.ANSWERED), from_number=service)).state is DispatchState.ACCEPTED
    request, answer = played.exchanges[-1]
    check(DOCUMENTS[provider], request)
    response = MockResponse(answer.body, status_code=answer.status, content_type="application/json")
    spec(DOCUMENTS[provider]).validate_response(as_mock(request), response)
    told = played.told()
    assert {one.from_number for one in told if isinstance(one, MessageReport)} == {POOL_NUMBER}
    assert [one.to for one in told if isinstance(one, InboundMessageEvent)] == [POOL_NUMBER]


@pytest.mark.parametrize("provider", STAND_INS)
async def test_a_number_is_refused(provider: str) -> None:
    """At once, and nothing is called back."""
    played = Played(provider)
    outcome = await played.ask(number(Scenario.REFUSED))
    assert (outcome.state, outcome.reason) == (DispatchState.REFUSED, "invalid_number")
    assert played.told() == []


@pytest.mark.parametrize("provider", CARRIERS)
@pytest.mark.parametrize(
    ("scenario", "status", "text"),
    [
        (Scenario.USUAL, MessageStatus.DELIVERED, None),
        (Scenario.FAILED, MessageStatus.FAILED, None),
        (Scenario.OPTED_OUT, MessageStatus.DELIVERED, "STOP"),
        (Scenario.ANSWERED, MessageStatus.DELIVERED, "Yes, please"),
    ],
)
async def test_a_message_takes_its_course(
    provider: str, scenario: Scenario, status: MessageStatus, text: str | None
) -> None:
    """It is accepted, sent, and ends; what the contact writes comes from the number to ours."""
    played = Played(provider)
    outcome = await played.ask(number(scenario))
    assert outcome.state is DispatchState.ACCEPTED
    told = played.told()
    reports = [one for one in told if isinstance(one, MessageReport)]
    assert [one.status for one in reports] == [MessageStatus.SENT, status]
    assert {one.provider_id for one in reports} == {outcome.provider_id}
    assert reports[-1].reason == ("unreachable" if scenario is Scenario.FAILED else None)
    texts = [one for one in told if isinstance(one, InboundMessageEvent)]
    assert [(one.body, one.from_number, one.to) for one in texts] == (
        [] if text is None else [(text, number(scenario), "+14155550199")]
    )


@pytest.mark.parametrize("provider", [one for one in STAND_INS if one not in CARRIERS])
@pytest.mark.parametrize(
    ("scenario", "status", "outcome"),
    [
        (Scenario.USUAL, CallStatus.COMPLETED, "positive"),
        (Scenario.FAILED, CallStatus.BUSY, None),
        (Scenario.OPTED_OUT, CallStatus.COMPLETED, "negative"),
        (Scenario.ANSWERED, CallStatus.COMPLETED, "voicemail"),
        (Scenario.SILENT, CallStatus.NO_ANSWER, None),
    ],
)
async def test_a_call_ends_by_its_scenario(
    provider: str, scenario: Scenario, status: CallStatus, outcome: str | None
) -> None:
    """It is accepted and ends, with the verdict of the provider's analysis."""
    played = Played(provider)
    accepted = await played.ask(number(scenario))
    assert accepted.state is DispatchState.ACCEPTED
    reports = [one for one in played.told() if isinstance(one, CallReport)]
    assert (reports[-1].status, reports[-1].do_not_call) == (status, scenario is Scenario.OPTED_OUT)
    if outcome is not None:
        assert reports[-1].outcome == outcome
    assert {one.provider_id for one in reports} == {accepted.provider_id}


@pytest.mark.virtual_time
@pytest.mark.parametrize("provider", STAND_INS)
@pytest.mark.parametrize("callback_url", [None, "https://elsewhere.example/webhooks/1"])
async def test_look_ups_show_the_end_though_no_callback_arrives(provider: str, callback_url: str | None) -> None:
    """Of a message that fails, and of a call to a number that is busy."""
    played = Played(provider)
    more = {"use_reports": "yes"} if provider == "vonage" else {}
    async with served(played, callback_url=callback_url, **more) as account:
        outcome = await asked(played.adapter, account, number(Scenario.FAILED))
        await anyio.sleep(WRITTEN_AFTER + 1)
        end = (DispatchState.REFUSED, "temporary") if provider in CARRIERS else _BUSY.get(provider, CallStatus.BUSY)
        assert await looked_up(played.adapter, account, outcome) == end


async def test_a_message_at_telnyx_is_shown_as_it_was_sent() -> None:
    """Its number and text are those of the request."""
    played = Played("telnyx")
    taken = await played.ask(number(Scenario.USUAL), body="Hello")
    request = Request(method="GET", path=f"/v2/messages/{taken.provider_id}", query={}, body=b"")
    shown = played.stand_in.answer(request).document["data"]
    assert (shown["to"][0]["phone_number"], shown["text"]) == (number(Scenario.USUAL), "Hello")


@pytest.mark.parametrize(("provider", "count"), [("retell", 100), ("retell", 101), ("twilio", 1001)])
async def test_a_list_comes_in_pages(provider: str, count: int) -> None:
    """The adapter finds each request once; the newest is the first."""
    played = Played(provider)
    taken = [await played.ask(f"+141555{2000 + last}") for last in range(count)]
    asked_before = len(played.exchanges)
    query = SentQuery(
        workspace_id=WORKSPACE_ID, from_number=None, since=datetime.now(UTC) - DAY, until=datetime.now(UTC) + DAY
    )
    found = await played.adapter.connect(played.connection).list_sent(query)
    assert [one.outcome.provider_id for one in found] == [one.provider_id for one in reversed(taken)]
    assert len(played.exchanges) - asked_before == 2


@pytest.mark.parametrize(
    ("url", "is_here"),
    [
        ("http://127.0.0.1:8000/webhooks/1", True),
        ("http://localhost:8000/webhooks/1", True),
        ("http://[::1]:8000/webhooks/1", True),
        ("https://hooks.example.com/webhooks/1", False),
        ("http://127.0.0.1.example.com/", False),
        ("http://10.0.0.1/", False),
        ("nonsense", False),
    ],
)
async def test_nothing_leaves_the_machine(url: str, is_here: bool) -> None:
    """A callback goes to the loopback alone."""
    assert is_loopback(url) is is_here
