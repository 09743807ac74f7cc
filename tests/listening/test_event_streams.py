"""Streams of events, over a server of the real kind."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import attrs
import pytest
from starlette.applications import Starlette
from starlette.types import Message, Send

from outreach import NewWorkspace, Outreach, WorkspaceStatus, WorkspaceUpdate
from outreach_server import create_app, event_stream
from outreach_server.streams import MAX_STREAMS_EACH, Streams, end_streams
from tests.listening.conftest import PATIENCE, Client, Place, serving

pytestmark = pytest.mark.anyio

STREAM = "GET /manage/events?since=0 HTTP/1.1"
ACCEPT = "Accept: text/event-stream"


@attrs.define
class Listener:
    """Reads a stream of events that is sent in chunks."""

    client: Client
    text: str = ""
    ended: bool = False

    async def begin(self, place: Place, start: str = STREAM, *lines: str) -> str:
        """Ask for a stream, and return the head of the answer."""
        await self.client.send(place.head(start, ACCEPT, *lines))
        with anyio.fail_after(PATIENCE):
            return (await self.client.reader.readuntil(b"\r\n\r\n")).decode()

    async def read(self) -> None:
        """Read a chunk."""
        with anyio.fail_after(PATIENCE):
            size = int(await self.client.reader.readuntil(b"\r\n"), 16)
            self.text += (await self.client.reader.readexactly(size + 2))[:-2].decode()
            self.ended = size == 0

    async def until(self, part: str) -> None:
        """Read until something was told."""
        while part not in self.text:
            assert not self.ended, f"{part!r} was not told: {self.text}"
            await self.read()

    async def to_the_end(self) -> None:
        """Read the rest."""
        while not self.ended:
            await self.read()

    @property
    def events(self) -> list[dict[str, Any]]:
        """What was told."""
        return [json.loads(line[6:]) for line in self.text.splitlines() if line.startswith("data: ")]


@asynccontextmanager
async def listening(place: Place, start: str = STREAM, *lines: str) -> AsyncIterator[Listener]:
    """Open a stream."""
    async with place.client() as client:
        listener = Listener(client)
        head = await listener.begin(place, start, *lines)
        assert head.startswith("HTTP/1.1 200 "), head
        assert "content-type: text/event-stream; charset=utf-8\r\n" in head.lower()
        assert "cache-control: no-store\r\n" in head.lower()
        assert "x-request-id: " in head.lower()
        yield listener


def streams(place: Place) -> Streams:
    """Return the open streams of a server."""
    app: Any = place.server._app
    found: Streams = app.state.streams
    return found


async def until_open(place: Place, count: int) -> None:
    """Wait until so many streams are open."""
    with anyio.fail_after(PATIENCE):
        while streams(place).open != count:  # noqa: ASYNC110 - of the server, which tells nobody
            await anyio.sleep(0.01)


async def test_events_are_delivered_as_they_come(place: Place) -> None:
    """Those after the number, then each new one, with its number, type and JSON."""
    await place.engine.unsubscribes.add(place.workspace_id, "+14155550177")
    async with listening(place) as listener:
        await listener.until("+14155550177")
        await place.engine.unsubscribes.add(place.workspace_id, "+14155550178")
        await listener.until("+14155550178")
    first, second = listener.events
    assert [one["type"] for one in (first, second)] == ["opted_out", "opted_out"]
    assert listener.text.startswith("retry: 3000\nid: 0\n\n")
    assert f"id: {second['number']}\nevent: opted_out\ndata: {{" in listener.text
    page = await place.engine.events.page(workspace_id=place.workspace_id, since=0)
    assert [one["number"] for one in (first, second)] == [one.number for one in page.events]


async def test_a_client_that_comes_back_goes_on(place: Place) -> None:
    """`Last-Event-ID` counts more than `since`; without both a stream begins now, and says where that is."""
    await place.engine.unsubscribes.add(place.workspace_id, "+14155550177", "+14155550178")
    page = await place.engine.events.page(workspace_id=place.workspace_id, since=0)
    async with listening(place, STREAM, f"Last-Event-ID: {page.events[0].number}") as listener:
        await listener.until("+14155550178")
        assert "+14155550177" not in listener.text
    async with listening(place, "GET /manage/events HTTP/1.1") as listener:
        await listener.until(f"id: {page.position}\n\n")
        await place.engine.unsubscribes.add(place.workspace_id, "+14155550179")
        await listener.until("+14155550179")
    assert [one["phone"] for one in listener.events] == ["+14155550179"]


async def test_only_the_type_that_is_asked_for_is_delivered(place: Place) -> None:
    """The number in a heartbeat is past the other types: a client that comes back resumes after it."""
    streams(place).heartbeat_seconds = 0.05
    async with listening(place, "GET /manage/events?since=0&type=opted_in HTTP/1.1") as listener:
        await place.engine.unsubscribes.add(place.workspace_id, "+14155550177")
        position = (await place.engine.events.page(workspace_id=place.workspace_id)).position
        await listener.until(f": heartbeat\nid: {position}\n\n")
        await place.engine.unsubscribes.remove(place.workspace_id, "+14155550177")
        await listener.until("opted_in")
    assert [one["type"] for one in listener.events] == ["opted_in"]


@pytest.mark.parametrize("why", ["revoked", "suspended"])
async def test_a_stream_ends_where_its_key_may_not_read_any_more(place: Place, why: str) -> None:
    """At the next heartbeat; the client that comes back is told why."""
    streams(place).heartbeat_seconds = 0.05
    async with listening(place) as listener:
        if why == "revoked":
            [key] = await place.engine.api_keys.list(place.workspace_id)
            await place.engine.api_keys.revoke(place.workspace_id, key.id)
        else:
            await place.engine.workspaces.update(place.workspace_id, WorkspaceUpdate(status=WorkspaceStatus.SUSPENDED))
        await listener.to_the_end()
    async with place.client() as client:
        head = await Listener(client).begin(place)
        assert head.split()[1] == ("401" if why == "revoked" else "403")


async def test_a_revoked_key_gets_no_event_until_the_next_heartbeat(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is looked at before events are sent, and not only where nothing happens."""
    monkeypatch.setattr(event_stream, "CHECK_SECONDS", 0.0)
    async with listening(place) as listener:
        await place.engine.unsubscribes.add(place.workspace_id, "+14155550177")
        await listener.until("+14155550177")
        [key] = await place.engine.api_keys.list(place.workspace_id)
        await place.engine.api_keys.revoke(place.workspace_id, key.id)
        await place.engine.unsubscribes.add(place.workspace_id, "+14155550178")
        await listener.to_the_end()
        assert "+14155550178" not in listener.text


async def test_a_stream_ends_when_its_client_goes(place: Place) -> None:
    """Nothing of it stays behind."""
    async with listening(place):
        await until_open(place, 1)
    await until_open(place, 0)


async def test_a_workspace_has_so_many_streams(place: Place) -> None:
    """One more is a 429 that says when to come back; a place that becomes free is taken."""
    from contextlib import AsyncExitStack

    async with AsyncExitStack() as stack:
        for _ in range(MAX_STREAMS_EACH):
            await stack.enter_async_context(listening(place))
        async with place.client() as client:
            await client.send(place.head(STREAM, ACCEPT))
            answer = await client.answer()
            assert (answer.status, answer.headers["retry-after"]) == (429, "3")
            assert json.loads(answer.body)["error"]["code"] == "too_many_streams"
    await until_open(place, 0)
    async with listening(place):
        pass


async def test_a_stream_ends_in_order_when_the_server_stops() -> None:
    """With its last chunk, and without waiting for the client."""
    async with anyio.create_task_group() as tasks:
        ended = anyio.Event()

        async def listen(place: Place, *, task_status: anyio.abc.TaskStatus[None]) -> None:
            async with listening(place) as listener:
                await until_open(place, 1)
                task_status.started()
                await listener.to_the_end()
                ended.set()

        async with serving() as place:
            await tasks.start(listen, place)
        with anyio.fail_after(PATIENCE):
            await ended.wait()


async def test_a_client_that_takes_nothing_is_held_to_one_page() -> None:
    """The next page is read when the last one was taken."""
    async with Outreach.open("memory://") as engine:
        app, headers = await _app(engine)
        workspace_id = (await engine.workspaces.list()).items[0].id
        await engine.unsubscribes.add(workspace_id, *(f"+1415555{last:04d}" for last in range(250)))
        arrived, taken, gone = anyio.Semaphore(0), anyio.Semaphore(0), anyio.Event()
        sent: list[Message] = []

        async def receive() -> Message:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            sent.append(message)
            arrived.release()
            await taken.acquire()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(app, _scope(headers), receive, send)
            for steps in range(1, 5):
                with anyio.fail_after(PATIENCE):
                    while len(sent) < steps:
                        await anyio.lowlevel.checkpoint()
                await anyio.wait_all_tasks_blocked()
                assert len(sent) == steps
                taken.release()
            gone.set()
            for _ in range(9):
                taken.release()
    told = [message["body"].count(b"data: ") for message in sent if message["type"] == "http.response.body"]
    assert told[:3] == [0, 100, 100]


async def test_an_app_that_ends_ends_its_streams() -> None:
    """So that a host which waits for them is not kept waiting; of another app nothing is ended."""
    async with Outreach.open("memory://") as engine:
        app, headers = await _app(engine)
        sent: list[Message] = []
        begun, ended = anyio.Event(), anyio.Event()

        async def receive() -> Message:
            await anyio.sleep_forever()
            raise AssertionError

        async def send(message: Message) -> None:
            sent.append(message)
            if message.get("body"):
                begun.set()
            if message.get("more_body") is False:
                ended.set()

        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks, app.router.lifespan_context(app):
                tasks.start_soon(app, _scope(headers), receive, send)
                await begun.wait()
                end_streams(object())
                assert not ended.is_set()
            await ended.wait()


async def test_a_stream_that_begins_as_the_server_stops_ends_at_once() -> None:
    """Its request was let in before the end; it tells its position, and does not hold the end up."""
    async with Outreach.open("memory://") as engine:
        app, headers = await _app(engine)
        for starts in range(2):
            sent: list[Message] = []
            begun, ended = anyio.Event(), anyio.Event()

            async def send(message: Message, sent: list[Message] = sent, begun: anyio.Event = begun) -> None:
                sent.append(message)
                if message.get("body"):
                    begun.set()

            async def run(ended: anyio.Event = ended, send: Send = send) -> None:
                await app(_scope(headers), _silent, send)
                ended.set()

            with anyio.fail_after(PATIENCE):
                async with anyio.create_task_group() as tasks, app.router.lifespan_context(app):
                    if starts == 0:
                        end_streams(app)
                    tasks.start_soon(run)
                    await begun.wait()
                    if starts == 0:
                        await ended.wait()
                    else:
                        # The app was started anew, and its streams go on.
                        await anyio.wait_all_tasks_blocked()
                        assert not ended.is_set()
            bodies = [message["body"] for message in sent if message["type"] == "http.response.body"]
            assert (bodies[0].startswith(b"retry: "), bodies[-1]) == (True, b"")


async def _silent() -> Message:
    await anyio.sleep_forever()
    raise AssertionError


async def _app(engine: Outreach) -> tuple[Starlette, list[tuple[bytes, bytes]]]:
    workspace = await engine.workspaces.create(NewWorkspace(name="Acme"))
    key = await engine.api_keys.create(workspace.id, scopes=["read"])
    return create_app(engine=engine), [
        (b"authorization", f"Bearer {key.api_key}".encode()),
        (b"accept", b"text/event-stream"),
    ]


def _scope(headers: list[tuple[bytes, bytes]]) -> dict[str, Any]:
    return {
        "type": "http",
        "method": "GET",
        "path": "/manage/events",
        "query_string": b"since=0",
        "headers": headers,
        "scheme": "http",
        "server": ("testserver", 80),
        "root_path": "",
    }
