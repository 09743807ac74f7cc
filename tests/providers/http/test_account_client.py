"""The clients of accounts, which share the number of connections to a provider, and no connection."""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final

import anyio
import httpx
import pytest
from httpcore._backends.anyio import AnyIOStream

from outreach.core.clock import SystemClock
from outreach.models.dispatch import DispatchOutcome
from outreach.models.states import DispatchState
from outreach.providers.http import account_client, client
from outreach.providers.http.account_client import AccountClient, SharedConnections
from outreach.providers.http.sending import send_once
from outreach.testing.fault_server import Answer, FaultServer, Received
from tests.listening.certificates import write_pair

pytestmark = pytest.mark.anyio

TIMEOUT = httpx.Timeout(30.0, pool=30.0)


@asynccontextmanager
async def sharing(
    most: int, *, waiting: httpx.Timeout = TIMEOUT, keepalive_expiry: float = 4.0
) -> AsyncIterator[tuple[SharedConnections, FaultServer]]:
    """Open connections, and somebody who answers them."""
    async with (
        FaultServer(lambda _: Answer(body=b"{}")) as server,
        SharedConnections(most=most, keepalive_expiry=keepalive_expiry, timeout=waiting) as connections,
    ):
        yield connections, server


@asynccontextmanager
async def asking(
    most: int, *, waiting: httpx.Timeout = TIMEOUT, keepalive_expiry: float = 4.0
) -> AsyncIterator[tuple[AccountClient, FaultServer]]:
    """Open the client of one account, and somebody who answers it."""
    async with sharing(most, waiting=waiting, keepalive_expiry=keepalive_expiry) as (connections, server):
        yield connections.client("a"), server


async def arrived(server: FaultServer, count: int) -> None:
    """Wait until so many requests have arrived."""
    while len(server.requests) < count:  # noqa: ASYNC110 - the server has no event for a request
        await anyio.sleep(0.01)


def open_connections(connections: SharedConnections) -> int:
    """Return how many connections have not been closed."""
    transports = [one.client._transport for one in (*connections._idle, *connections._used)]
    return sum(len(one._pool.connections) for one in transports if isinstance(one, httpx.AsyncHTTPTransport))


async def test_requests_at_once_have_as_many_connections_as_there_may_be() -> None:
    """Three of four are an account's; those that wait for a free one are sent when others have been answered."""
    async with asking(33) as (http, server):
        server.fault = "silence"
        with anyio.move_on_after(30) as waiting:
            async with anyio.create_task_group() as tasks:
                for _ in range(40):
                    tasks.start_soon(http.get, server.url)
                await arrived(server, 25)
                assert server.connections == 25
                server.fault = None
                tasks.cancel_scope.cancel()
        assert not waiting.cancelled_caught
        # What was cancelled, while it waited or was under way, has left its place.
        async with anyio.create_task_group() as tasks:
            for _ in range(40):
                tasks.start_soon(http.get, server.url)
        assert len(server.requests) == 65


async def test_requests_one_after_the_other_share_a_connection() -> None:
    """The one that was used last is taken."""
    async with asking(100) as (http, server):
        for _ in range(20):
            assert (await http.post(server.url, json={})).json() == {}
        assert server.connections == 1


async def test_an_answer_that_is_read_as_it_comes_keeps_its_connection_until_it_is_closed() -> None:
    """Closing it twice gives it back once."""
    async with asking(1, waiting=httpx.Timeout(30.0, pool=0.05)) as (http, server):
        async with http.stream("GET", server.url) as response:
            with pytest.raises(httpx.PoolTimeout):
                await http.get(server.url)
            assert await response.aread() == b"{}"
        await response.aclose()
        async with http.stream("GET", server.url):
            with pytest.raises(httpx.PoolTimeout):
                await http.get(server.url)
        assert (await http.get(server.url)).is_success
        assert len(server.requests) == 3


async def test_a_request_that_fails_gives_its_connection_back() -> None:
    """Whatever became of it."""
    async with asking(1, waiting=httpx.Timeout(30.0, pool=0.5)) as (http, server):
        for _ in range(3):
            with pytest.raises(httpx.ConnectError):
                await http.get("http://127.0.0.1:1/")
        assert (await http.get(server.url)).is_success


async def test_a_closed_client_sends_nothing() -> None:
    """Neither what comes afterwards nor what waited for a connection."""
    async with sharing(1) as (connections, server):
        http = connections.client("a")
        server.fault = "silence"
        failures: list[Exception] = []

        async def ask() -> None:
            try:
                await http.get(server.url)
            except (RuntimeError, httpx.HTTPError) as error:
                failures.append(error)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await arrived(server, 1)
            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            await connections.aclose()
        with pytest.raises(RuntimeError, match="closed"):
            await http.get(server.url)
        assert len(failures) == 2
        assert len(server.requests) == 1


async def test_connections_that_nobody_uses_are_closed_without_another_request() -> None:
    """Those of every account; what comes afterwards has new ones."""
    async with sharing(33, keepalive_expiry=0.05) as (connections, server):
        async with anyio.create_task_group() as tasks:
            for number in range(15):
                tasks.start_soon(connections.client(f"{number % 3}").get, server.url)
        with anyio.fail_after(30):
            while open_connections(connections):  # noqa: ASYNC110 - a closed connection has no event
                await anyio.sleep(0.01)
        assert (await connections.client("0").get(server.url)).is_success


async def test_no_connection_is_used_by_two_accounts() -> None:
    """Also one after the other, when a connection is idle."""
    async with sharing(100) as (connections, server):
        for _ in range(3):
            for account in ("a", "b", "c"):
                assert (await connections.client(account).get(server.url)).is_success
        assert server.connections == 3


async def test_idle_connections_make_room_for_those_of_another_account() -> None:
    """There are never more than there may be, in use and idle together; the longest idle one goes."""
    async with sharing(4) as (connections, server):
        for number in range(20):
            assert (await connections.client(f"{number}").get(server.url)).is_success
            assert open_connections(connections) <= 4
        assert (await connections.client("17").get(server.url)).is_success
        assert server.connections == 20
        assert (await connections.client("15").get(server.url)).is_success
        assert server.connections == 21


async def test_accounts_whose_requests_hang_leave_connections_to_the_others() -> None:
    """However many requests each has waiting: several of them hang, and the next one is still served."""
    async with sharing(100, waiting=httpx.Timeout(30.0, pool=5.0)) as (connections, server):
        server.fault = "silence"
        async with anyio.create_task_group() as tasks:
            for account in ("a", "b", "c"):
                for _ in range(200):
                    tasks.start_soon(_ask_in_vain, connections.client(account), server.url)
            await arrived(server, 90)
            await anyio.wait_all_tasks_blocked()
            server.fault = None
            for _ in range(50):
                assert (await connections.client("d").get(server.url)).is_success
            tasks.cancel_scope.cancel()


async def _ask_in_vain(http: AccountClient, url: str) -> None:
    with pytest.raises(httpx.PoolTimeout):
        await http.get(url)


def trusted(directory: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """Return the server's side of TLS, with a certificate that clients trust from now on."""
    certificate, key = directory / "certificate.pem", directory / "key.pem"
    write_pair(certificate, key, name="Provider")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.setattr(account_client, "verified_tls", httpx.create_ssl_context)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return context


SECOND: Final = b'HTTP/1.1 200 OK\r\ncontent-length: 15\r\n\r\n{"id": "wrong"}'


@pytest.mark.parametrize("surplus", [SECOND, SECOND[:9], b"\r\n", b"x" * 200_000])
@pytest.mark.parametrize("secure", [False, True])
async def test_what_comes_beyond_an_answer_is_not_the_next_one(
    surplus: bytes, secure: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the same segment, and over TLS: the connection is closed, and the next request has another one."""
    tls = None
    if secure:
        tls = trusted(tmp_path, monkeypatch)
    number = count(1)

    def answer(_: Received) -> Answer:
        return Answer(body=json.dumps({"id": next(number)}).encode(), surplus=surplus)

    async with (
        FaultServer(answer, tls=tls) as server,
        SharedConnections(most=4, keepalive_expiry=4.0, timeout=TIMEOUT) as connections,
    ):
        http = connections.client("a")
        for expected in range(1, 5):
            assert (await http.post(server.url, json={})).json() == {"id": expected}
        async with http.stream("POST", server.url) as streamed:
            assert json.loads(await streamed.aread()) == {"id": 5}
        assert (await http.post(server.url, json={})).json() == {"id": 6}
        assert server.connections == 6


@pytest.mark.parametrize("secure", [False, True])
async def test_what_comes_beyond_an_answer_of_all_that_is_read_at_once_is_not_the_next_one(
    secure: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """64 KiB are; the rest of what has arrived waits in a queue of its own, and the connection is closed."""
    connected: list[asyncio.StreamWriter] = []
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 65494\r\n\r\n"
    first = head + b"a" * 65_494
    assert len(first) == 65_536

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connected.append(writer)
        with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(first + SECOND)

    tls = trusted(tmp_path, monkeypatch) if secure else None
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    async with SharedConnections(most=4, keepalive_expiry=4.0, timeout=TIMEOUT) as connections:
        http, port = connections.client("a"), server.sockets[0].getsockname()[1]
        for number in range(1, 4):
            answer = await http.get(f"http{'s' if secure else ''}://127.0.0.1:{port}")
            assert set(answer.text) == {"a"}
            assert len(connected) == number
    for writer in connected:
        writer.close()
    server.close()
    await server.wait_closed()


async def test_a_large_answer_keeps_its_connection() -> None:
    """Where nothing comes beyond it."""
    async with (
        FaultServer(lambda _: Answer(body=b"a" * 300_000)) as server,
        SharedConnections(most=4, keepalive_expiry=4.0, timeout=TIMEOUT) as connections,
    ):
        for _ in range(3):
            assert len((await connections.client("a").get(server.url)).text) == 300_000
        assert server.connections == 1


@pytest.mark.parametrize("lost", ["_WAY_TO_PARSER", "_WAY_TO_QUEUE"])
async def test_where_what_comes_beyond_an_answer_cannot_be_seen_each_request_has_a_connection(
    lost: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As with another httpx or anyio; one line of the log says so."""
    monkeypatch.setattr(client, lost, ("made_another_way",))
    client.warn_of_closed_connections.cache_clear()
    async with sharing(4) as (connections, server):
        for _ in range(3):
            assert (await connections.client("a").get(server.url)).is_success
        assert server.connections == 3
    (line,) = [record for record in caplog.records if getattr(record, "action", None) == "connections_not_kept"]
    assert line.levelname == "WARNING"
    client.warn_of_closed_connections.cache_clear()


@pytest.mark.parametrize("failure", [OSError("It is gone."), asyncio.CancelledError()])
async def test_a_connection_whose_closing_fails_gives_its_place_back(
    failure: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is closed because nobody can see what comes beyond an answer."""
    monkeypatch.setattr(client, "_WAY_TO_PARSER", ("made_another_way",))
    closing, failing = AnyIOStream.aclose, [failure]

    async def close(stream: AnyIOStream) -> None:
        await closing(stream)
        if failing:
            raise failing.pop()

    monkeypatch.setattr(AnyIOStream, "aclose", close)
    async with sharing(1, waiting=httpx.Timeout(30.0, pool=0.5)) as (connections, server):
        http = connections.client("a")
        with pytest.raises(type(failure)):
            await http.get(server.url)
        for _ in range(3):
            assert (await http.get(server.url)).is_success


async def test_what_comes_between_two_requests_is_not_an_answer() -> None:
    """It came before it was asked for: the connection is closed."""
    served: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(writer)
        with suppress(ConnectionError):
            while b"\r\n\r\n" in await reader.read(65_536):
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with SharedConnections(most=4, keepalive_expiry=4.0, timeout=TIMEOUT) as connections:
        http, url = connections.client("a"), f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for number in range(3):
            assert (await http.get(url)).json() == {}
            assert len(served) == number + 1
            served[-1].write(SECOND)
            await served[-1].drain()
            await _readable(connections)
    for writer in served:
        writer.close()
    server.close()
    await server.wait_closed()


async def _readable(connections: SharedConnections) -> None:
    """Wait until an idle connection has been sent something."""
    (idle,) = connections._idle
    transport = idle.client._transport
    assert isinstance(transport, httpx.AsyncHTTPTransport)
    with anyio.fail_after(30):
        while not any(one.has_expired() for one in transport._pool.connections):  # noqa: ASYNC110 - as above
            await anyio.sleep(0.01)


async def test_an_answer_over_tls_keeps_its_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing comes beyond it."""
    async with (
        FaultServer(lambda _: Answer(body=b"{}"), tls=trusted(tmp_path, monkeypatch)) as server,
        SharedConnections(most=4, keepalive_expiry=4.0, timeout=TIMEOUT) as connections,
    ):
        for _ in range(5):
            assert (await connections.client("a").post(server.url, json={})).json() == {}
        assert server.connections == 1


async def test_a_proxy_of_an_unknown_scheme_leaves_nothing_sent_and_no_connection_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However often it fails, a later request has a connection."""
    async with sharing(1, waiting=httpx.Timeout(30.0, pool=0.5)) as (connections, server):
        http = connections.client("a")
        with monkeypatch.context() as environment:
            environment.setenv("HTTPS_PROXY", "unknown://127.0.0.1:1")
            for _ in range(3):
                refused = await send_once(http, http.build_request("POST", server.url), _accepted, clock=SystemClock())
                assert (refused.state, refused.error_code) == (DispatchState.NOT_SENT, "ProxyError")
        assert (await http.get(server.url)).is_success


async def test_a_proxy_without_its_package_leaves_nothing_sent_and_no_connection_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A proxy of SOCKS requires one that is not among those of the engine."""
    monkeypatch.setitem(sys.modules, "socksio", None)
    async with sharing(1, waiting=httpx.Timeout(30.0, pool=0.5)) as (connections, server):
        http = connections.client("a")
        with monkeypatch.context() as environment:
            environment.setenv("ALL_PROXY", "socks5://user:password@127.0.0.1:1")
            for _ in range(3):
                with pytest.raises(httpx.ProxyError, match="cannot be used: ImportError") as failure:
                    await http.get(server.url)
                assert "password" not in str(failure.value)
        assert (await http.get(server.url)).is_success


def _accepted(_: httpx.Response) -> DispatchOutcome:
    return DispatchOutcome(state=DispatchState.ACCEPTED, provider_id="1")
