"""A local HTTP server that fails as a provider, or the network before it, can fail.

async with FaultServer(answer=lambda request: Answer(status=201, body=b"{}")) as server:
server.fault = "drop_after"
...
assert len(server.requests) == 1
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Final, Literal, Self
from urllib.parse import parse_qsl, urlsplit

import attrs
import h11

__all__ = ["Answer", "Fault", "FaultServer", "Received"]

Fault = Literal["drop_before", "drop_during", "drop_after", "silence", "cut_answer"]
"""Close without reading, after the first bytes, after the whole request; read it and never answer;
or reset the connection during the answer."""

_CHUNK: Final = 65_536


@attrs.frozen(kw_only=True)
class Received:
    """One request that arrived whole.

    Attributes:
        path: Without the query.
        query: Decoded; of a repeated name the last.
        headers: Names in lower case; of a repeated name the last.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


@attrs.frozen(kw_only=True)
class Answer:
    """A response of the server.

    Attributes:
        surplus: What it sends beyond that, in the same write: raw bytes, such as a second, unrequested answer.
    """

    status: int = 200
    headers: Mapping[str, str] = attrs.field(factory=dict)
    body: bytes = b""
    surplus: bytes = b""


class FaultServer:
    """Serves HTTP/1.1 on a free port of the loopback while it is entered.

    Args:
        answer: What is answered when no fault is set.
        tls: The certificate, for https; None serves http.

    Attributes:
        fault: What happens to the requests that come from now on; None answers them.
        requests: The requests that arrived whole, in order, answered or not.
        connections: How many connections were opened.
    """

    def __init__(self, answer: Callable[[Received], Answer], *, tls: ssl.SSLContext | None = None) -> None:
        self.answer = answer
        self._tls = tls
        self.fault: Fault | None = None
        self.requests: list[Received] = []
        self.connections = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        """Where it listens: `http://127.0.0.1:PORT`, or `https://…`."""
        if self._server is None:
            raise RuntimeError("The server is not entered.")
        scheme = "http" if self._tls is None else "https"
        return f"{scheme}://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        """Begin to listen."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Stop listening, and drop the connections that are open."""
        server, self._server = self._server, None
        if server is not None:
            loop = asyncio.get_running_loop()
            for listening in server.sockets:
                loop.remove_reader(listening.fileno())
            # What is just being accepted becomes a connection first: a server that is closed in between forgets it.
            for _ in range(3):
                await asyncio.sleep(0)
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # A task that was cancelled before its first step has closed nothing.
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()
        # A transport is closed one round of the loop after `close`.
        await asyncio.sleep(0)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._server is None:
            # Accepted while the server was being closed: nobody would serve it, or close it later.
            writer.transport.abort()
            return
        self.connections += 1
        self._writers.add(writer)
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h11.Connection(h11.SERVER)
        try:
            while await self._exchange(connection, reader, writer):
                connection.start_next_cycle()
        except (h11.ProtocolError, ConnectionError):
            pass
        finally:
            # An abort rather than a goodbye: what a fault leaves behind is a connection that is gone.
            writer.transport.abort()
            self._writers.discard(writer)
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _exchange(
        self, connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Go through one request; return whether the connection is good for another one."""
        if self.fault == "drop_before":
            return False
        request: h11.Request | None = None
        body = b""
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                data = await reader.read(_CHUNK)
                if self.fault == "drop_during":
                    return False
                connection.receive_data(data)
            elif isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                break
            else:
                return False
        if request is None:
            return False
        received = _received(request, body)
        self.requests.append(received)
        if self.fault == "drop_after":
            return False
        if self.fault == "silence":
            await asyncio.get_running_loop().create_future()
        answer = self.answer(received)
        headers = [*answer.headers.items(), ("content-length", str(len(answer.body)))]
        head = connection.send(h11.Response(status_code=answer.status, headers=headers)) or b""
        body = connection.send(h11.Data(data=answer.body)) or b""
        end = connection.send(h11.EndOfMessage()) or b""
        if self.fault == "cut_answer":
            # Closing a socket that lingers for no time resets the connection.
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.write(head[: len(head) // 2])
            return False
        writer.write(head + body + end + answer.surplus)
        await writer.drain()
        return connection.our_state is not h11.MUST_CLOSE


def _received(request: h11.Request, body: bytes) -> Received:
    target = urlsplit(request.target.decode("ascii"))
    return Received(
        method=request.method.decode("ascii"),
        path=target.path,
        query=dict(parse_qsl(target.query, keep_blank_values=True)),
        headers={name.decode("ascii"): value.decode("latin-1") for name, value in request.headers},
        body=body,
    )
