"""What the tests of the real voice providers' adapters share: a laboratory, requests, and the matrix of faults."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Final

import attrs
import httpx
import pytest

from outreach.core.clock import Clock, SystemClock
from outreach.models.dispatch import DispatchOutcome
from outreach.models.reports import CallReport
from outreach.models.states import DispatchState
from outreach.protocols.adapter import Callback, CallbackRefused, Connection, VoiceAdapter
from outreach.protocols.voice import CallRequest
from outreach.testing.builders import NOW, WORKSPACE_ID, new_id
from outreach.testing.clock import ManualClock
from outreach.testing.fault_server import Answer, Fault, FaultServer, Received
from outreach.testing.http_harness import FakeProvider, HttpHarness
from outreach.testing.voice_contract import VoiceContract

AGENT: Final = "agent-1"
SENDER: Final = "+14155550199"
CONTACT: Final = "+14155550100"
PATIENCE: Final = httpx.Timeout(30, read=1)
"""How long a client waits for a provider that says nothing; all else may take its time on a machine that is busy."""

D: Final = DispatchState


def _unasked(request: httpx.Request) -> httpx.Response:
    raise AssertionError("Nothing is asked here.")


NOBODY: Final = httpx.AsyncClient(transport=httpx.MockTransport(_unasked))
"""A client for what makes no request."""


def connection_of(
    credentials: Mapping[str, str],
    *,
    http: httpx.AsyncClient | None = None,
    clock: Clock | None = None,
    callback_url: str | None = None,
) -> Connection:
    """Return an account as an adapter gets it."""
    return Connection(
        workspace_id=WORKSPACE_ID,
        account_id="account-1",
        credentials=credentials,
        http=http or NOBODY,
        clock=clock or SystemClock(),
        callback_url=callback_url,
    )


def call_request(**changes: Any) -> CallRequest:
    """Return a call to place."""
    fields: dict[str, Any] = {
        "dispatch_id": new_id(),
        "workspace_id": WORKSPACE_ID,
        "provider_agent_id": AGENT,
        "from_number": SENDER,
        "to": CONTACT,
        "variables": {"first_name": "Zoë", "amount": "1.10"},
    }
    return CallRequest(**{**fields, **changes})


FULL: Final[dict[str, Any]] = {
    "ivr_enabled": True,
    "call_screen_enabled": True,
    "screen_identity": "Ada of Example Ltd",
    "screen_purpose": "your appointment",
    "voicemail": "leave_message",
    "voicemail_message": "Please call us back.",
    "max_seconds": 300,
    "not_after": datetime(2026, 3, 1, 21, 0, tzinfo=UTC),
}
"""Every option that a call has, but for a trunk."""


class Recording:
    """A client that sends nothing: it keeps the requests, and answers each with the same.

    Args:
        answer: What is answered.
        status: With which status.
    """

    def __init__(self, answer: object, *, status: int = 200) -> None:
        self.requests: list[httpx.Request] = []
        self._answer = answer
        self._status = status
        self.http = httpx.AsyncClient(transport=httpx.MockTransport(self._respond))

    def _respond(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return httpx.Response(self._status, json=self._answer)

    @property
    def only(self) -> httpx.Request:
        """Return the one request that was made."""
        (request,) = self.requests
        return request

    async def place(self, adapter: VoiceAdapter, credentials: Mapping[str, str]) -> DispatchOutcome:
        """Ask an account for one call, and close the client."""
        async with self.http:
            return await adapter.connect(connection_of(credentials, http=self.http)).place_call(call_request())

    async def status(
        self,
        adapter: VoiceAdapter,
        credentials: Mapping[str, str],
        *,
        provider_id: str = "call-1",
        clock: Clock | None = None,
    ) -> CallReport | None:
        """Ask an account what became of a call, and close the client."""
        async with self.http:
            voice = adapter.connect(connection_of(credentials, http=self.http, clock=clock))
            return await voice.status(workspace_id=WORKSPACE_ID, dispatch_id="d-1", provider_id=provider_id)


def body_of(request: httpx.Request | Received) -> dict[str, Any]:
    """Return the JSON object that a request brings."""
    value: dict[str, Any] = json.loads(request.content if isinstance(request, httpx.Request) else request.body)
    return value


def called_back(body: object, headers: Mapping[str, str]) -> Callback:
    """Return a callback as the server hands it on."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    lower = {name.lower(): value for name, value in headers.items()}
    return Callback(url="https://example.com/webhooks/account-1", headers=lower, query={}, body=raw)


def is_read(adapter: VoiceAdapter, credentials: Mapping[str, str], body: bytes, headers: Mapping[str, str]) -> bool:
    """Return whether an account takes a callback for its provider's, and can read it."""
    try:
        adapter.read(connection_of(credentials, clock=clock_at()), called_back(body, headers))
    except CallbackRefused:
        return False
    return True


@attrs.frozen(kw_only=True)
class Bench:
    """An adapter's provider, in front of a server that has faults."""

    server: FaultServer
    harness: HttpHarness


class AdapterContract(VoiceContract):
    """The contract of a voice provider, held by an adapter over HTTP, and what each fault must come to.

    A subclass names the adapter, its credentials and what plays the provider.
    """

    provider_agent_id = AGENT
    adapter: ClassVar[VoiceAdapter]
    credentials: ClassVar[Mapping[str, str]]
    harmless: ClassVar[bytes]

    def stand_in(self) -> FakeProvider:
        """Return what plays the provider."""
        raise NotImplementedError("A subclass names what plays the provider.")

    def asks(self, request: Received) -> bool:
        """Return whether a request places a call."""
        return request.method == "POST"

    @asynccontextmanager
    async def bench(self, *, patience: httpx.Timeout | float = 30) -> AsyncIterator[Bench]:
        """Run a server, and connect the adapter to it."""
        stand_in = self.stand_in()
        async with (
            FaultServer(stand_in.accept) as server,
            httpx.AsyncClient(timeout=patience) as http,
        ):

            def connect(url: str) -> Any:
                return self.adapter.connect(connection_of({**self.credentials, "api_base": url}, http=http))

            harness = HttpHarness(server, stand_in, connect, self.asks, http)
            # None of them has a refusal that passes: a limit is a deferral, and a 408 leaves it unknown.
            harness.scenarios -= {"refuses_for_now"}
            yield Bench(server=server, harness=harness)

    @pytest.fixture
    async def harness(self, anyio_backend: str) -> AsyncIterator[HttpHarness]:
        """Give the contract its laboratory."""
        async with self.bench() as bench:
            yield bench.harness

    @pytest.mark.parametrize(
        ("status", "body", "state", "reason"),
        [
            (500, b"{}", D.UNKNOWN, "provider_error"),
            (429, b"", D.DEFERRED, "rate_limited"),
            (408, b'{"message": "Request timeout", "statusCode": 408}', D.UNKNOWN, "timeout"),
            (403, b"<html>", D.REFUSED, "provider_auth"),
            (418, b"[1]", D.REFUSED, "rejected"),
            (307, b"", D.UNKNOWN, "unreadable"),
            (200, b"<html>", D.UNKNOWN, "unreadable"),
            (201, b"{}", D.UNKNOWN, "unreadable"),
            (201, b"[" * 50_000, D.UNKNOWN, "unreadable"),
            (204, b"", D.UNKNOWN, "unreadable"),
        ],
    )
    async def test_every_answer_has_its_class(
        self, status: int, body: bytes, state: DispatchState, reason: str
    ) -> None:
        """docs/delivery-contract.md#rule-5 and #rule-7: no more is claimed than is known."""
        async with self.bench() as bench:
            bench.server.answer = lambda _: Answer(status=status, body=body)
            outcome = await self.ask(bench.harness.adapter, new_id())
            assert (outcome.state, outcome.reason) == (state, reason)

    async def test_a_call_without_an_agent_is_refused_and_nobody_is_asked(self) -> None:
        """An agent that has no identifier at the provider cannot call there; that is our set-up's fault."""
        async with self.bench() as bench:
            outcome = await bench.harness.adapter.place_call(call_request(provider_agent_id=None))
            assert (outcome.state, outcome.reason) == (DispatchState.REFUSED, "bad_sender")
            assert bench.server.requests == []

    @pytest.mark.parametrize("fault", ["drop_after", "silence"])
    async def test_a_look_up_that_gets_no_answer_says_nothing(self, fault: Fault) -> None:
        """`look_up` and `status` raise for nothing that the network does."""
        async with self.bench(patience=PATIENCE) as bench:
            dispatch_id = new_id()
            accepted = await self.ask(bench.harness.adapter, dispatch_id)
            bench.server.fault = fault
            look_up, status = bench.harness.adapter.look_up, bench.harness.adapter.status
            at_once: list[Awaitable[object]] = []
            for provider_id in (None, accepted.provider_id):
                at_once.append(look_up(attrs.evolve(self.lookup(dispatch_id), provider_id=provider_id)))
                at_once.append(status(workspace_id=WORKSPACE_ID, dispatch_id=dispatch_id, provider_id=provider_id))
            assert await asyncio.gather(*at_once) == [None] * 4

    @pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}", b"[1]", b'{"items": 5}', b"null", b"[" * 50_000])
    async def test_a_look_up_that_cannot_be_read_says_nothing(self, body: bytes) -> None:
        """An answer of success that holds nothing of use is no evidence."""
        async with self.bench() as bench:
            bench.server.answer = lambda _: Answer(status=200, body=body)
            for provider_id in (None, "call-1"):
                lookup = attrs.evolve(self.lookup(new_id()), provider_id=provider_id)
                assert await bench.harness.adapter.look_up(lookup) is None
                status = bench.harness.adapter.status
                assert await status(workspace_id=WORKSPACE_ID, dispatch_id=new_id(), provider_id=provider_id) is None

    async def test_a_known_identifier_is_looked_up_by_it(self) -> None:
        """Evidence by the provider's own identifier needs no search, and one that it does not know is none."""
        async with self.bench() as bench:
            dispatch_id = new_id()
            accepted = await self.ask(bench.harness.adapter, dispatch_id)
            lookup = attrs.evolve(self.lookup(dispatch_id), provider_id=accepted.provider_id)
            found = await bench.harness.adapter.look_up(lookup)
            assert found == DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=accepted.provider_id)
            nobody = attrs.evolve(self.lookup(new_id()), provider_id="../nobody")
            assert await bench.harness.adapter.look_up(nobody) is None

    async def test_a_check_asks_once(self) -> None:
        """`check` makes one harmless request."""
        async with FaultServer(lambda _: Answer(body=self.harmless)) as server, httpx.AsyncClient() as http:
            credentials = {**self.credentials, "api_base": server.url}
            check = await self.adapter.check(connection_of(credentials, http=http))
            assert check.ok
            assert "accepts" in check.message
            assert [request.method for request in server.requests] == ["GET"]

    def test_these_credentials_are_complete_and_none_of_the_others(self) -> None:
        """What the guide tells to give is accepted; an address without encryption is not, and neither is a line end."""
        assert list(self.adapter.problems(self.credentials)) == []
        assert self.adapter.problems({**self.credentials, "api_base": "http://provider.example.com"})
        assert self.adapter.problems({**self.credentials, "api_base": "not an address"})
        assert self.adapter.problems({**self.credentials, "api_key": "two\nlines"})
        names = [field.name for field in self.adapter.fields]
        assert len(names) == len(set(names))
        assert set(self.credentials) <= set(names)
        assert {field.name for field in self.adapter.fields if field.required} <= set(self.credentials)

    def test_no_credential_is_shown(self) -> None:
        """An account that is printed shows none of its secrets."""
        connection = connection_of(self.credentials)
        assert self.credentials["api_key"] not in repr(connection)


def clock_at(moment: datetime = NOW, *, late_by: timedelta = timedelta()) -> ManualClock:
    """Return a clock that stands still."""
    return ManualClock(moment + late_by)
