from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import Context, copy_context
from functools import partial

import anyio
import httpx
import pytest

from outreach.core.clock import SystemClock
from outreach.core.vault import Vault
from outreach.models.dispatch import DispatchOutcome
from outreach.models.states import DispatchState
from outreach.providers import pool
from outreach.providers.http import client
from outreach.providers.http.client import ResponseTooLarge, TooLate
from outreach.providers.http.request_gate import request_gate
from outreach.providers.http.sending import send_once
from outreach.providers.pool import AccountConnections
from outreach.testing.fault_server import Answer, FaultServer, Received

pytestmark = pytest.mark.anyio

MOST = 100_000


@asynccontextmanager
async def asking(
    answer: Callable[[Received], Answer], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[httpx.AsyncClient, FaultServer]]:
    """Open the client that an account is worked with, and somebody who answers it."""
    monkeypatch.setattr(client, "MAX_RESPONSE_BYTES", MOST)
    opened = AccountConnections(vault=Vault(), clock=SystemClock(), answer_seconds=30.0, public_url=None)
    async with FaultServer(answer) as server:
        yield opened._client("twilio", "a"), server
        await opened.aclose()


@pytest.mark.parametrize("packed", [False, True])
async def test_an_answer_is_read_up_to_a_bound(packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is larger is no answer, however it is packed; nobody can tell what became of the request."""
    size = MOST
    headers = {"content-encoding": "gzip", "x-kind": "packed"} if packed else {"x-kind": "plain"}

    def answer(_: Received) -> Answer:
        content = b"x" * size
        return Answer(body=gzip.compress(content) if packed else content, headers=headers)

    def read(response: httpx.Response) -> DispatchOutcome:
        assert response.content == b"x" * MOST
        return DispatchOutcome(state=DispatchState.ACCEPTED, provider_id=response.headers["x-kind"])

    async with asking(answer, monkeypatch) as (http, server):
        clock = SystemClock()
        taken = await send_once(http, http.build_request("POST", server.url), read, clock=clock)
        assert (taken.state, taken.provider_id) == (DispatchState.ACCEPTED, headers["x-kind"])
        size += 1
        lost = await send_once(http, http.build_request("POST", server.url), read, clock=clock)
        assert (lost.state, lost.reason, lost.error_code) == (DispatchState.UNKNOWN, "unreadable", "ResponseTooLarge")
        assert server.requests[0].headers["accept-encoding"] == "identity"
        async with http.stream("GET", server.url) as response:
            assert response.status_code == 200


async def test_an_answer_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says no length; what was read is dropped, and the connection with it."""

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 1000

    monkeypatch.setattr(client, "MAX_RESPONSE_BYTES", MOST)
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=endless()))
    async with client.ProviderClient(transport=transport) as http:
        with pytest.raises(ResponseTooLarge):
            await http.get("https://a.example/")


async def test_a_request_that_may_not_start_when_its_connection_is_there_is_not_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is asked after connecting, before the first byte; docs/delivery-contract.md#rule-4."""
    connected: list[int] = []
    allowed = False

    async def may_start() -> bool:
        connected.append(server.connections)
        return allowed

    def read(_: httpx.Response) -> DispatchOutcome:
        return DispatchOutcome(state=DispatchState.ACCEPTED, provider_id="a")

    async def ask() -> DispatchOutcome:
        with request_gate(may_start):
            return await send_once(http, http.build_request("POST", server.url), read, clock=SystemClock())

    async with asking(lambda _: Answer(), monkeypatch) as (http, server):
        late = await ask()
        assert (late.state, late.reason, late.error_code) == (DispatchState.NOT_SENT, "not_connected", "TooLate")
        assert server.requests == []
        allowed = True
        assert (await ask()).state is DispatchState.ACCEPTED
        assert len(server.requests) == 1
        assert len(connected) == 2
        # Outside, nobody is asked.
        allowed = False
        assert (await http.get(server.url)).is_success


async def test_no_cookie_of_an_answer_comes_with_the_next_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests of many campaigns share a client; a session that a provider opens with one is not the other's."""

    def answer(_: Received) -> Answer:
        return Answer(body=b"{}", headers={"set-cookie": "session=of-the-first; Path=/"})

    async with asking(answer, monkeypatch) as (http, server):
        for _ in range(2):
            await http.send(http.build_request("POST", server.url))
        assert len(server.requests) == 2
        assert all("cookie" not in asked.headers for asked in server.requests)


@pytest.mark.parametrize("other_provider", ["telnyx", "twilio"])
async def test_an_account_without_answers_takes_no_connection_from_another(
    other_provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for one of its connections in vain is not sent, which is known before the engine gives up."""
    monkeypatch.setattr(pool, "_MAX_CONNECTIONS", 4)
    monkeypatch.setattr(pool, "_FREE_SECONDS", 0.05)
    clock = SystemClock()

    def accepted(_: httpx.Response) -> DispatchOutcome:
        return DispatchOutcome(state=DispatchState.ACCEPTED, provider_id="1")

    opened = AccountConnections(vault=Vault(), clock=clock, answer_seconds=30.0, public_url=None)
    async with FaultServer(lambda _: Answer(body=b"{}")) as server, anyio.create_task_group() as tasks:
        http, other = opened._client("twilio", "a"), opened._client(other_provider, "b")
        server.fault = "silence"
        # Of four connections an account has three.
        for _ in range(3):
            hanging = http.build_request("POST", server.url)
            tasks.start_soon(partial(send_once, http, hanging, accepted, clock=clock))
        while len(server.requests) < 3:  # noqa: ASYNC110 - the server has no event for a request
            await anyio.sleep(0.01)
        server.fault = None
        waited = await send_once(http, http.build_request("POST", server.url), accepted, clock=clock)
        assert (waited.state, waited.error_code) == (DispatchState.NOT_SENT, "PoolTimeout")
        assert len(server.requests) == 3
        taken = await send_once(other, other.build_request("POST", server.url), accepted, clock=clock)
        assert taken.state is DispatchState.ACCEPTED
        tasks.cancel_scope.cancel()
    await opened.aclose()


@pytest.mark.parametrize("answer_seconds", [0.5, 5.0, 12.0, 30.0, 3600.0])
async def test_connecting_ends_before_the_engine_gives_the_request_up(answer_seconds: float) -> None:
    """Waiting for a connection, TCP and TLS together: what has not been written by then is not sent, never unknown."""
    opened = AccountConnections(vault=Vault(), clock=SystemClock(), answer_seconds=answer_seconds, public_url=None)
    timeout = opened._client("telnyx", "a").timeout
    await opened.aclose()
    assert timeout.pool is not None
    assert timeout.connect is not None
    assert timeout.pool + 2 * timeout.connect <= answer_seconds * 0.9


async def test_a_background_task_without_a_context_outlives_the_request_that_started_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Such as one that renews a token."""

    async def may_start() -> bool:
        return False

    async with asking(lambda _: Answer(), monkeypatch) as (http, server):
        with request_gate(may_start):
            tasks = [
                asyncio.create_task(http.get(server.url), context=context) for context in (copy_context(), Context())
            ]
        refused, answered = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(refused, TooLate)
        assert isinstance(answered, httpx.Response)
