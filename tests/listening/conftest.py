"""A server of the real kind in this process, on a socket of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import attrs
import pytest
import uvicorn.server
from starlette.applications import Starlette

from outreach import NewWorkspace, Outreach
from outreach.models import API_SCOPES
from outreach_server import create_app
from outreach_server.cli.serving.serving import Server, bind

PATIENCE = 30.0


@attrs.frozen(kw_only=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def error(self) -> dict[str, Any]:
        """The envelope's content; it must be one, and say that the connection ends."""
        assert self.headers["content-type"] == "application/json"
        assert self.headers["connection"] == "close"
        document = json.loads(self.body)
        assert set(document) == {"error"}
        error: dict[str, Any] = document["error"]
        assert set(error) == {"code", "message", "request_id", "details"}
        assert error["request_id"] == self.headers["x-request-id"]
        return error


@attrs.define(kw_only=True)
class Client:
    """One connection, by hand."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        """Send what no client library would."""
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self) -> Answer:
        """Return the next answer."""
        with anyio.fail_after(PATIENCE):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
            status, *lines = head.split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
            body = await self.reader.readexactly(int(headers.get("content-length", "0")))
        return Answer(status=int(status.split()[1]), headers=headers, body=body)

    async def closed(self) -> bool:
        """Wait until the server has closed; return whether nothing more came before."""
        with anyio.fail_after(PATIENCE):
            try:
                return await self.reader.read() == b""
            except ConnectionError:
                return True


@attrs.frozen(kw_only=True)
class Place:
    """A running server."""

    server: Server
    port: int
    key: str
    workspace_id: str
    engine: Outreach

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """Connect."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            yield Client(reader=reader, writer=writer)
        finally:
            writer.transport.abort()

    def head(self, start: str = "GET /sms-campaigns HTTP/1.1", *lines: str) -> bytes:
        """Return the head of a request with a key."""
        return "\r\n".join([start, "Host: test", f"Authorization: Bearer {self.key}", *lines, "", ""]).encode()


@asynccontextmanager
async def serving(
    wrap: Callable[[Starlette], Any] = lambda app: app, *, most_connections: int = 100, **options: Any
) -> AsyncIterator[Place]:
    """Serve an engine in memory, with further options of the server."""
    async with Outreach.open("memory://") as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme"))
        key = await engine.api_keys.create(workspace.id, scopes=API_SCOPES)
        with bind("127.0.0.1", 0) as listener:
            up = asyncio.Event()
            server = Server(
                wrap(create_app(engine=engine)),
                listener,
                level="warning",
                on_started=up.set,
                most_connections=most_connections,
                **options,
            )
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(server._serve)
                await up.wait()
                try:
                    yield Place(
                        server=server,
                        port=listener.getsockname()[1],
                        key=key.api_key,
                        workspace_id=workspace.id,
                        engine=engine,
                    )
                finally:
                    server.should_exit = True


@pytest.fixture(
    params=[
        pytest.param(False, id="asyncio", marks=pytest.mark.soak("the server's commands use uvloop")),
        pytest.param(True, id="uvloop"),
    ]
)
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """Serve on both loops: the one that commands serve on, and the one where there is none of those."""
    return "asyncio", {"use_uvloop": request.param}


class _Hurried:
    """The module asyncio for a server whose ticks last a tenth of what they do: it looks around, and ends, sooner."""

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    @staticmethod
    async def sleep(seconds: float) -> None:
        """Sleep a tenth of that."""
        await asyncio.sleep(seconds / 10)


@pytest.fixture(autouse=True)
def ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let servers notice at once that they are to end: a test takes a twentieth of the time."""
    monkeypatch.setattr(uvicorn.server, "asyncio", _Hurried())


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    """A server that runs."""
    async with serving() as made:
        yield made
