"""The client that puts servers under load: raw sockets, no HTTP library, so that it is not what is measured.

An answer is found by its Content-Length and nothing else of it is read but the status. `flood` says how much of a core
it used itself: where that comes near 1, the figure is its own and not the server's.
"""

from __future__ import annotations

import re
import selectors
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Final

import attrs
import orjson

_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_RECEIVE_BYTES: Final = 1024 * 1024
_TIMEOUT_SECONDS: Final = 600.0
_LOOK_AGAIN_SECONDS: Final = 0.01

Address = tuple[str, int]


def request(
    method: str, target: str, *, key: str | None = None, body: bytes | None = None, headers: Mapping[str, str] = {}
) -> bytes:
    """Return a request as it goes over the wire."""
    lines = [f"{method} {target} HTTP/1.1", "Host: localhost", *(f"{name}: {value}" for name, value in headers.items())]
    if key is not None:
        lines.append(f"Authorization: Bearer {key}")
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")


@attrs.frozen
class Answer:
    """One answer.

    Attributes:
        status: The status.
        body: All of it.
        seconds: From the first byte sent to the last one received.
    """

    status: int
    body: bytes
    seconds: float


class Client:
    """One connection on which one request follows another; a context manager that closes it."""

    def __init__(self, address: Address) -> None:
        self._socket = socket.create_connection(address, timeout=_TIMEOUT_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, raw: bytes, *, expect: int | None = None) -> Answer:
        """Send a request and wait for its answer.

        Args:
            raw: The request.
            expect: The status that the answer must have.

        Raises:
            RuntimeError: It has another one, or the server closed the connection.
        """
        begun = time.perf_counter()
        self._socket.sendall(raw)
        received = bytearray()
        while (found := _answer_in(received, 0)) is None:
            received += _received(self._socket)
        answer = Answer(found.status, bytes(received[found.body : found.end]), time.perf_counter() - begun)
        if expect is not None and answer.status != expect:
            raise RuntimeError(f"The answer is {answer.status}, not {expect}: {answer.body[:500]!r}")
        return answer

    def __enter__(self) -> Client:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self._socket.close()


@attrs.frozen
class Flood:
    """What many connections got in a time.

    Attributes:
        answers: How many.
        seconds: In how long.
        computing: Share of a core that the client used itself.
    """

    answers: int
    seconds: float
    computing: float

    @property
    def a_second(self) -> float:
        """Answers a second."""
        return self.answers / self.seconds


def flood(
    address: Address, requests: Iterator[bytes], *, connections: int, seconds: float, expect: int, depth: int = 1
) -> Flood:
    """Keep requests on their way on many connections for a time, and until there is an answer.

    Args:
        address: Where to.
        requests: What to send; as many as it takes.
        connections: How many connections.
        seconds: For how long.
        expect: The status that each answer must have.
        depth: Requests on their way on each connection.

    Raises:
        RuntimeError: An answer had another status, or a connection was closed.
    """
    answers = 0
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        buffers: dict[socket.socket, bytearray] = {}
        for _ in range(connections):
            connected = stack.enter_context(socket.create_connection(address, timeout=_TIMEOUT_SECONDS))
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            selector.register(connected, selectors.EVENT_READ)
            buffers[connected] = bytearray()
        begun, computing = time.perf_counter(), time.process_time()
        ends = begun + seconds
        for connected in buffers:
            connected.sendall(b"".join(next(requests) for _ in range(depth)))
        while (now := time.perf_counter()) < (ends if answers else begun + max(seconds, _TIMEOUT_SECONDS)):
            for ready, _ in selector.select(max(ends - now, _LOOK_AGAIN_SECONDS)):
                connected = ready.fileobj  # type: ignore[assignment]
                found = _take_answers(buffers[connected], _received(connected), expect)
                answers += found
                if found:
                    connected.sendall(b"".join(next(requests) for _ in range(found)))
        taken = time.perf_counter() - begun
        return Flood(answers, taken, (time.process_time() - computing) / taken)


def ask_often(address: Address, requests: Sequence[bytes], *, expect: int) -> list[float]:
    """Ask one after the other on one connection; return how long each took, in seconds."""
    with Client(address) as client:
        return [client.ask(raw, expect=expect).seconds for raw in requests]


def json_of(address: Address, raw: bytes, *, expect: int = 200) -> object:
    """Ask once; return the document of the answer."""
    with Client(address) as client:
        return orjson.loads(client.ask(raw, expect=expect).body)


@attrs.frozen
class _Found:
    status: int
    body: int
    end: int


def _answer_in(received: bytearray, start: int) -> _Found | None:
    """Return where the next answer lies, once all of it is there."""
    body = received.find(b"\r\n\r\n", start)
    if body < 0:
        return None
    body += 4
    length = _LENGTH.search(received, start, body)
    if length is None:
        raise RuntimeError(f"An answer without Content-Length: {bytes(received[start:body])!r}")
    end = body + int(length[1])
    return _Found(int(received[start + 9 : start + 12]), body, end) if end <= len(received) else None


def _take_answers(buffer: bytearray, more: bytes, expect: int) -> int:
    """Count the answers that have become whole, and drop them."""
    buffer += more
    count = start = 0
    while (found := _answer_in(buffer, start)) is not None:
        if found.status != expect:
            raise RuntimeError(f"An answer is {found.status}, not {expect}: {bytes(buffer[found.body : found.end])!r}")
        count, start = count + 1, found.end
    if start:
        del buffer[:start]
    return count


def _received(connected: socket.socket) -> bytes:
    more = connected.recv(_RECEIVE_BYTES)
    if not more:
        raise RuntimeError("The server closed the connection.")
    return more
