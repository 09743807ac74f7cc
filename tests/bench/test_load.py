from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from benchmarks.load import Address, Client, flood, json_of, request

ANSWER = b'HTTP/1.1 %d Some\r\ndate: now\r\nContent-Length: 11\r\n\r\n{"a": "b"}\n'


def serve(listener: socket.socket, status: int, piece: int) -> None:
    """Answer each request on each connection, some bytes at a time."""

    def answer(connected: socket.socket) -> None:
        received = b""
        with connected, suppress(OSError):
            while more := connected.recv(65536):
                received += more
                while b"\r\n\r\n" in received:
                    received = received.partition(b"\r\n\r\n")[2]
                    raw = ANSWER % status
                    for start in range(0, len(raw), piece):
                        connected.sendall(raw[start : start + piece])

    with suppress(OSError):
        while True:
            threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()


@pytest.fixture(params=[7, 4096])
def piece(request: pytest.FixtureRequest) -> int:
    """How many bytes come at a time."""
    size: int = request.param
    return size


@pytest.fixture
def address(piece: int) -> Iterator[Address]:
    """A server that answers with 200."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener, 200, piece), daemon=True).start()
        yield listener.getsockname()[:2]


def test_an_answer_is_whole(address: Address) -> None:
    """However it is cut, and one after the other on one connection."""
    raw = request("GET", "/", key="k")
    with Client(address) as client:
        for _ in range(3):
            answer = client.ask(raw, expect=200)
            assert (answer.status, answer.body) == (200, b'{"a": "b"}\n')
            assert answer.seconds > 0
    assert json_of(address, raw) == {"a": "b"}


@pytest.mark.parametrize("depth", [1, 3])
def test_a_flood_counts_answers(address: Address, depth: int) -> None:
    """It keeps asking on every connection for its time."""
    asked = itertools.count()
    requests = (request("GET", f"/{number}") for number in asked)
    found = flood(address, requests, connections=3, seconds=0.2, expect=200, depth=depth)
    sent = next(asked)
    assert 3 * depth < sent
    # What is on its way at the end has no answer yet.
    assert sent - 3 * depth <= found.answers <= sent
    assert found.seconds >= 0.2
    assert found.computing > 0


def test_a_flood_waits_for_the_first_answer(address: Address) -> None:
    """A time that is too short for a busy machine gives a figure all the same, and none of nothing."""
    found = flood(address, itertools.repeat(request("GET", "/")), connections=3, seconds=0.0, expect=200)
    assert found.answers >= 1
    assert found.a_second > 0


def test_another_status_is_an_error(address: Address) -> None:
    """Figures of answers that say no are not taken for those of work that was done."""
    raw = request("GET", "/")
    with Client(address) as client, pytest.raises(RuntimeError, match="200, not 201"):
        client.ask(raw, expect=201)
    with pytest.raises(RuntimeError, match="200, not 201"):
        flood(address, itertools.repeat(raw), connections=1, seconds=5, expect=201)


def test_a_request_is_one_of_http() -> None:
    """A body is announced with its length."""
    assert request("POST", "/calls", key="k", body=b"{}") == (
        b"POST /calls HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer k\r\n"
        b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    )
