"""What a test client cannot do: clients that go away, or stop in the middle."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from outreach import NewWorkspace, NotFound, Outreach
from outreach.models import NewUpload
from outreach_server import create_app
from outreach_server.bodies import body
from outreach_server.context import RequestState, Server, set_request_state
from outreach_server.errors import FaultMiddleware
from outreach_server.lists.tables import ZIP
from tests.server.conftest import Service, sms_body
from tests.server.test_bodies import large_body
from tests.server.test_errors import check_envelope

pytestmark = pytest.mark.anyio


async def post(
    app: ASGIApp, key: str, receive: Receive, *, path: str = "/sms-campaigns", **headers: str
) -> list[Message]:
    """Send a POST, of a campaign where no path is given, the body as `receive` tells it; return what was answered."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    given = {"authorization": f"Bearer {key}", "content-type": "application/json"} | headers
    scope: Scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "root_path": "",
        "query_string": b"",
        "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items()],
    }
    await app(scope, receive, send)
    return sent


async def with_app(test: Callable[[ASGIApp, str], Awaitable[Any]], **options: Any) -> Any:
    """Run a test with an app and a key."""
    async with Outreach.open("memory://") as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme"))
        key = await engine.api_keys.create(workspace.id)
        return await test(create_app(engine=engine, **options), key.api_key)


def receiver(*messages: Message) -> Receive:
    """Return a `receive` that tells these messages, and then nothing more."""
    left = list(messages)

    async def receive() -> Message:
        if left:
            return left.pop(0)
        await anyio.sleep_forever()
        raise AssertionError

    return receive


def chunk(data: bytes, *, more: bool = True) -> Message:
    """Return a part of a body."""
    return {"type": "http.request", "body": data, "more_body": more}


async def test_a_client_that_disconnects_is_not_answered(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is no error either, and what it had sent is deleted."""

    async def test(app: ASGIApp, key: str) -> None:
        raw = large_body()
        assert await post(app, key, receiver(chunk(raw), {"type": "http.disconnect"})) == []
        assert await post(app, key, receiver(chunk(b"{"), {"type": "http.disconnect"})) == []

    with caplog.at_level(logging.ERROR):
        await with_app(test, spool_directory=tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert caplog.records == []


async def test_a_check_ends_with_its_helper_when_the_client_goes(tmp_path: Path) -> None:
    """The helper would keep the turn of another list."""
    pipe = tmp_path / "pid"
    os.mkfifo(pipe)
    script = f"import os, pathlib, time; pathlib.Path({str(pipe)!r}).write_text(str(os.getpid())); time.sleep(600)"
    told = [chunk(b"{}", more=False)]
    helpers: list[int] = []

    async def receive() -> Message:
        if told:
            return told.pop()
        helpers.append(int(await anyio.Path(pipe).read_text()))
        return {"type": "http.disconnect"}

    async with Outreach.open("memory://") as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme"))
        key = await engine.api_keys.create(workspace.id, scopes=("manage",))
        upload = await engine.uploads.create(workspace.id, NewUpload(file_name="a.xlsx", size_bytes=len(ZIP)))
        await engine.uploads.add_chunk(workspace.id, upload.id, 0, ZIP)
        app = create_app(engine=engine, spool_directory=tmp_path, parser_command=(sys.executable, "-c", script))
        with anyio.fail_after(60):
            assert await post(app, key.api_key, receive, path=f"/manage/uploads/{upload.id}/check") == []
    with pytest.raises(ProcessLookupError):
        os.kill(helpers[0], 0)


async def test_a_body_that_stops_arriving_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A client that trickles must not keep the turns of the others."""
    monkeypatch.setattr(body, "_IDLE_SECONDS", 0.05)

    async def test(app: ASGIApp, key: str) -> None:
        for data in (b"{", large_body()):
            start, content = await post(app, key, receiver(chunk(data)))
            assert start["status"] == 400
            assert (b"connection", b"close") in [(name.lower(), value) for name, value in start["headers"]]
            assert b"stopped arriving" in content["body"]

    await with_app(test, spool_directory=tmp_path)
    assert list(tmp_path.iterdir()) == []


async def test_a_client_that_expects_100_continue_is_refused_at_once() -> None:
    """With `Expect: 100-continue` nothing of a body that is too large is ever sent."""

    async def test(app: ASGIApp, key: str) -> None:
        start, _ = await post(app, key, receiver(), content_length="1001", expect="100-continue")
        assert start["status"] == 400

    # Sooner than a body that does not come is given up.
    with anyio.fail_after(body._IDLE_SECONDS / 2):
        await with_app(test, max_body_bytes=1000)


async def test_no_more_than_a_bound_is_thrown_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that never stops sending is cut off."""
    monkeypatch.setattr(body, "_DRAIN_BYTES", 3000)
    told = 0

    async def endless() -> Message:
        nonlocal told
        told += 1
        return chunk(b" " * 1000)

    async def test(app: ASGIApp, key: str) -> None:
        start, _ = await post(app, key, endless, content_length="1000000")
        assert start["status"] == 400

    await with_app(test, max_body_bytes=1000)
    assert told == 4


async def test_large_bodies_wait_for_their_turn_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """A body that is announced as large is not read from its socket before it is its turn."""
    monkeypatch.setattr("outreach_server.context.MAX_LARGE_BODIES", 1)
    read: list[str] = []
    reading = anyio.Event()

    def slow(name: str) -> Receive:
        async def receive() -> Message:
            read.append(name)
            reading.set()
            await anyio.sleep_forever()
            raise AssertionError

        return receive

    async def test(app: ASGIApp, key: str) -> None:
        async with anyio.create_task_group() as tasks:
            for name in ("first", "second"):
                tasks.start_soon(lambda name=name: post(app, key, slow(name), content_length="1000000"))  # type: ignore[misc]
            with anyio.fail_after(30):
                await reading.wait()
            await anyio.sleep(0.1)  # in which the other could begin as well
            tasks.cancel_scope.cancel()

    await with_app(test)
    assert len(read) == 1


@pytest.mark.parametrize("announced", [True, False])
async def test_a_body_that_trickles_is_given_up(
    announced: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its time is in proportion to what has arrived, whatever length it says; who is fast enough is not hurried."""
    monkeypatch.setattr(body, "_BASE_SECONDS", 0.3)
    monkeypatch.setattr(body, "_MIN_BYTES_PER_SECOND", 1000)
    headers = {"content_length": "60000000"} if announced else {}

    def stream(data: bytes, pause: float, times: int) -> Receive:
        left = times

        async def receive() -> Message:
            nonlocal left
            left -= 1
            if left < times - 1:
                # What comes at once gives the others their time.
                await anyio.sleep(pause)
            return chunk(data, more=left > 0)

        return receive

    async def test(app: ASGIApp, key: str) -> None:
        with anyio.fail_after(30):
            start, content = await post(app, key, stream(b"{", 0.02, 100_000), **headers)
        assert start["status"] == 400
        assert b"too slowly" in content["body"]
        # For more than those 0.3 s, at more than a thousand bytes a second.
        start, content = await post(app, key, stream(b" " * 10_000, 0.02, 30))
        assert b"too slowly" not in content["body"]

    await with_app(test, spool_directory=tmp_path)
    assert list(tmp_path.iterdir()) == []


async def test_an_answer_that_breaks_in_the_middle_ends_the_connection() -> None:
    """Once the status is out nothing else can be said: the server around the app has to close."""

    async def breaking(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ZeroDivisionError

    async def send(_: Message) -> None:
        pass

    scope: Scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
    set_request_state(scope, RequestState(server=Server(max_body_bytes=1), request_id="r"))
    with pytest.raises(ZeroDivisionError):
        await FaultMiddleware(breaking)(scope, receiver(), send)


def test_a_campaign_that_vanishes_while_it_is_loaded_is_our_fault(
    memory_service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/interface.md#statuses: POST /sms-campaigns lists no 404."""
    tenant = memory_service.tenant()

    async def swept(*_: Any, **__: Any) -> None:
        raise NotFound("campaign", "1")

    monkeypatch.setattr(memory_service.engine.campaigns, "create_sms", swept)
    check_envelope(tenant.post("/sms-campaigns", sms_body()), 500, "internal_error")
