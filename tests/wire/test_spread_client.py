"""The client whose connections are in several small pools."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import httpx
import pytest

from outreach.testing.fault_server import Answer, FaultServer
from outreach.wire.spread_client import SpreadClient

pytestmark = pytest.mark.anyio

TIMEOUT = httpx.Timeout(30.0, pool=30.0)


@asynccontextmanager
async def asking(
    connections: int, *, waiting: httpx.Timeout = TIMEOUT, keepalive_expiry: float = 4.0
) -> AsyncIterator[tuple[SpreadClient, FaultServer]]:
    """Open a client, and somebody who answers it."""
    async with (
        FaultServer(lambda _: Answer(body=b"{}")) as server,
        SpreadClient(connections=connections, keepalive_expiry=keepalive_expiry, timeout=waiting) as http,
    ):
        yield http, server


async def arrived(server: FaultServer, count: int) -> None:
    """Wait until so many requests have arrived."""
    while len(server.requests) < count:  # noqa: ASYNC110 - the server tells nobody of a request
        await anyio.sleep(0.01)


def open_connections(http: SpreadClient) -> int:
    """Return how many connections of the client have not been closed."""
    transports = [pool.client._transport for pool in http._pools]
    return sum(len(one._pool.connections) for one in transports if isinstance(one, httpx.AsyncHTTPTransport))


async def test_requests_at_once_have_as_many_connections_as_there_may_be() -> None:
    """Also beyond one pool; those that wait for a free one are sent when others have been answered."""
    async with asking(25) as (http, server):
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
    """The first pool that has a free one is taken."""
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
    async with asking(1) as (http, server):
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
            await http.aclose()
        with pytest.raises(RuntimeError, match="closed"):
            await http.get(server.url)
        assert len(failures) == 2
        assert len(server.requests) == 1


async def test_connections_that_nobody_uses_are_closed_without_another_request() -> None:
    """Those of every pool; what comes afterwards has new ones."""
    async with asking(25, keepalive_expiry=0.05) as (http, server):
        server.fault = "silence"
        async with anyio.create_task_group() as tasks:
            for _ in range(15):
                tasks.start_soon(http.get, server.url)
            await arrived(server, 15)
            tasks.cancel_scope.cancel()
        server.fault = None
        async with anyio.create_task_group() as tasks:
            for _ in range(15):
                tasks.start_soon(http.get, server.url)
        with anyio.fail_after(30):
            while open_connections(http):  # noqa: ASYNC110 - nobody is told of a closed connection
                await anyio.sleep(0.01)
        assert (await http.get(server.url)).is_success
