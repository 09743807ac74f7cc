"""Connections that send nothing, or half of something, or take nothing."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import anyio
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from outreach_server.listening import connection, listener
from tests.listening.conftest import PATIENCE, Client, Place, serving

pytestmark = pytest.mark.anyio


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give clients almost no time."""
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr(connection, "STUCK_SECONDS", 0.2)
    monkeypatch.setattr(connection, "CLOSING_SECONDS", 0.2)


@pytest.mark.usefixtures("impatient")
async def test_a_head_that_does_not_come_to_its_end(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """However it trickles: the deadline is one for all of it; one line in the log, however many there are."""
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            async with place.client() as client, anyio.create_task_group() as tasks:
                await client.send(b"GET /healthz HTTP/1.1\r\nHost: a\r\nX-Slow: ")
                tasks.start_soon(_trickle, client)
                answer = await client.answer()
                tasks.cancel_scope.cancel()
            assert answer.status == 400
            assert "had not arrived" in answer.error["message"]
    assert len([record for record in caplog.records if record.__dict__.get("action") == "request_late"]) == 1


@pytest.mark.usefixtures("impatient")
async def test_a_connection_without_a_request_is_closed(place: Place) -> None:
    """Also one that goes on with a body that nobody reads any more."""
    async with place.client() as client:
        assert await client.closed()
    async with place.client() as client, anyio.create_task_group() as tasks:
        await client.send(b"POST /sms HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n")
        assert (await client.answer()).status == 401
        tasks.start_soon(_trickle, client)
        assert await client.closed()
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("piece", [b"GET /heal", b"\r\n"])
async def test_a_connection_is_kept_for_the_next_request(place: Place, piece: bytes) -> None:
    """For 75 s after a response: the deadline of a head counts from its first byte, or from an empty line."""
    async with place.client() as client:
        await client.send(place.head())
        assert (await client.answer()).status == 200
        [kept] = _connections(place)
        await _until(lambda: kept.timeout_keep_alive_task is not None)
        now = asyncio.get_running_loop().time()
        assert 70 < kept.timeout_keep_alive_task.when() - now < 76
        kept.look(now + 70)
        assert not kept.transport.is_closing()
        await client.send(piece)
        await _until(lambda: kept.timeout_keep_alive_task is None)
        kept.look(now + 70)
        assert kept.transport.is_closing()


async def test_a_kept_connection_is_closed_in_time() -> None:
    """After as long as is configured."""
    async with serving(keep_alive_seconds=1) as place, place.client() as client:
        await client.send(place.head())
        assert (await client.answer()).status == 200
        assert await client.closed()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("size", [64, 4_000_000])
async def test_an_answer_that_nobody_takes(size: int) -> None:
    """A client that does not read holds a connection no longer than one that does not write."""
    begun = anyio.Event()

    def large(app: Any) -> Any:
        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            begun.set()
            head: Message = {"type": "http.response.start", "status": 200, "headers": [(b"connection", b"close")]}
            await send(head)
            for _ in range(5):
                await send({"type": "http.response.body", "body": b"x" * size, "more_body": True})
            await send({"type": "http.response.body", "body": b"x" * 16_000_000})

        return serve

    async with serving(large) as place:
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.setblocking(False)
            await anyio.to_thread.run_sync(_connect, client, place.port)
            await begun.wait()
            await _until(lambda: not place.server.server_state.connections)


@pytest.mark.parametrize("line", ["Connection: keep-alive", "Connection: close"])
async def test_a_large_answer_is_written_as_it_is_taken(line: str) -> None:
    """So that the deadlines are for a piece of it: a client on a slow line could not keep them with all of it."""
    size = 16_000_000

    async def large(_: Request) -> Response:
        return Response(b"x" * size)

    def with_large(app: Starlette) -> Starlette:
        app.router.routes.append(Route("/large", large))
        return app

    async with serving(with_large) as place:
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            await anyio.to_thread.run_sync(_connect, client, place.port, "/large", line)
            client.setblocking(False)
            await _until(lambda: any(not one.flow._is_writable_event.is_set() for one in _connections(place)))
            [open_one] = _connections(place)
            assert not open_one.cycle.response_complete
            assert open_one.transport.get_write_buffer_size() < 256 * 1024
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024 * 1024)
            taken = 0
            with anyio.fail_after(PATIENCE):
                while taken < size:
                    part = await asyncio.get_running_loop().sock_recv(client, 1024 * 1024)
                    assert part, f"The connection ended after {taken} bytes."
                    taken += part.count(b"x")


async def test_half_sent_requests_make_way_for_whole_ones(caplog: pytest.LogCaptureFixture) -> None:
    """However many there are, and from the same address too; it is one line in the log."""
    caplog.set_level(logging.WARNING)
    async with serving(most_connections=8) as place, AsyncExitStack() as stack:
        for _ in range(40):
            half = await stack.enter_async_context(place.client())
            await half.send(b"GET /healthz HTTP/1.1\r\nHo")
        for _ in range(5):
            async with place.client() as client:
                await client.send(place.head())
                assert (await client.answer()).status == 200
        await _until(lambda: len(place.server.server_state.connections) <= 4)  # the share of this address
    assert len([record for record in caplog.records if record.__dict__.get("action") == "connection_let_go"]) == 1


async def test_a_request_over_the_limit_gets_an_error(caplog: pytest.LogCaptureFixture) -> None:
    """An honest 503 in the envelope, and one line in the log."""
    release, served = anyio.Event(), 0

    def slow(app: Any) -> Any:
        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            nonlocal served
            if scope["type"] == "http":
                served += 1
                await release.wait()
            await app(scope, receive, send)

        return serve

    async with serving(slow, most_connections=4) as place, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(place.client()) for _ in range(2)]
        for client in clients:
            await client.send(place.head())
        await _until(lambda: served == 2)
        with caplog.at_level(logging.WARNING):
            for _ in range(3):
                async with place.client() as another:
                    answer = await another.answer()
                    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
                    assert answer.error["code"] == "internal_error"
        release.set()
        for client in clients:
            assert (await client.answer()).status == 200
    assert len([record for record in caplog.records if record.__dict__.get("action") == "connections_full"]) == 1


async def test_no_descriptor_left(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """It is no busy loop, one line in the log, and goes on when there is one again."""
    monkeypatch.setattr(listener, "_PAUSE_SECONDS", 0.05)
    async with serving() as place:
        loop = asyncio.get_running_loop()
        accept, tried = loop.sock_accept, 0

        async def fail(sock: socket.socket) -> Any:
            nonlocal tried
            tried += 1
            if tried > 4:
                return await accept(sock)
            raise OSError(errno.EMFILE, "Too many open files")

        monkeypatch.setattr(loop, "sock_accept", fail)
        began = loop.time()
        with caplog.at_level(logging.WARNING):
            # The first one was waited for before.
            async with place.client() as first, place.client() as second:
                for client in (first, second):
                    await client.send(place.head())
                    assert (await client.answer()).status == 200
        assert tried > 4
        assert loop.time() - began >= 4 * 0.05
    assert [record.__dict__["action"] for record in caplog.records] == ["descriptors_short"]


def _connections(place: Place) -> list[Any]:
    return list(place.server.server_state.connections)


def _connect(client: socket.socket, port: int, path: str = "/healthz", line: str = "Accept: */*") -> None:
    client.setblocking(True)
    client.connect(("127.0.0.1", port))
    client.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n{line}\r\n\r\n".encode())


async def _trickle(client: Client) -> None:
    while True:
        await anyio.sleep(0.02)
        try:
            await client.send(b"x")
        except ConnectionError:
            return


async def _until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(PATIENCE):
        while not condition():  # noqa: ASYNC110 - nothing announces that a connection is gone
            await anyio.sleep(0.02)


async def test_a_request_that_outlasts_a_stop_gets_the_whole_envelope(caplog: pytest.LogCaptureFixture) -> None:
    """It says that the server stops, with the request's id in the header too; the log has the status that was sent."""
    caplog.set_level(logging.INFO, logger="outreach_server.access")
    entered = anyio.Event()

    async def endless(_: Request) -> Response:
        entered.set()
        await anyio.sleep_forever()
        raise AssertionError

    def with_endless(app: Starlette) -> Starlette:
        app.router.routes.append(Route("/endless", endless))
        return app

    async with serving(with_endless) as place, place.client() as client:
        await client.send(place.head("GET /endless HTTP/1.1", "X-Request-Id: mine"))
        await entered.wait()
        place.server.should_exit = True
        answer = await client.answer()
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert (answer.error["code"], answer.error["request_id"]) == ("internal_error", "mine")
    assert [record.__dict__["status"] for record in caplog.records if "status" in record.__dict__] == [503]


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="The system has no such option.")
async def test_a_client_whose_machine_has_gone_is_given_up_by_the_system(place: Place) -> None:
    """Nobody acknowledges what is sent to it: else its stream of events would be open for a quarter of an hour."""
    async with place.client() as client:
        await client.send(place.head())
        assert (await client.answer()).status == 200
        [open_one] = place.server.server_state.connections
        seen = open_one.transport.get_extra_info("socket")
        assert seen.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 60_000
