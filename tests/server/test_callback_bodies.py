"""Bodies of callbacks: their senders have shown no key, and must not fill the memory with them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable

import anyio
import attrs
import pytest
from starlette.applications import Starlette
from starlette.types import Message

from outreach import NewWorkspace, Outreach, WorkspaceMode
from outreach_server import create_app, fair_semaphore
from outreach_server.bodies import body
from outreach_server.context import Server
from outreach_server.fair_semaphore import FairSemaphore
from tests.fake_provider import CREDENTIALS, FakeAdapter, sign
from tests.server.test_connections import chunk, post, receiver

pytestmark = pytest.mark.anyio

LARGE = body.MAX_WITHOUT_TURN + 1


@attrs.define
class Sender:
    """A client that sends the head of a body, waits to be let go on, and then does what it is told.

    Attributes:
        first: What it sends at once.
        then: What it sends when it is let go on.
        begun: Whether anything of it was read.
        asked_again: Whether more was asked for than it sends at once.
    """

    first: list[Message]
    then: list[Message]
    begun: bool = False
    asked_again: anyio.Event = attrs.field(factory=anyio.Event)
    go_on: anyio.Event = attrs.field(factory=anyio.Event)

    async def receive(self) -> Message:
        """Tell what comes next."""
        self.begun = True
        if self.first:
            return self.first.pop(0)
        self.asked_again.set()
        await self.go_on.wait()
        return self.then.pop(0)


@attrs.frozen(kw_only=True)
class House:
    """A server with one turn for large callbacks, and an account."""

    app: Starlette
    path: str

    async def call(self, sender: Sender, **headers: str) -> int:
        """Send a callback, and return the status of its answer; 0 for none."""
        sent = await post(self.app, "", sender.receive, path=self.path, host="testserver", **headers)
        return int(sent[0]["status"]) if sent else 0

    async def small(self) -> int:
        """Send a small, signed callback."""
        content = json.dumps([{"id": "e1"}]).encode()
        signature = sign(f"http://testserver{self.path}", content)
        answered = await post(
            self.app,
            "",
            receiver(chunk(content, more=False)),
            path=self.path,
            host="testserver",
            x_signature=signature,
            content_length=str(len(content)),
        )
        return int(answered[0]["status"])

    @property
    def turns(self) -> FairSemaphore:
        """Turns for large callbacks."""
        server = self.app.user_middleware[0].kwargs["server"]
        assert isinstance(server, Server)
        return server.large_callbacks


@pytest.fixture
async def house(monkeypatch: pytest.MonkeyPatch, fake: FakeAdapter) -> AsyncIterator[House]:
    """A server with one turn."""
    monkeypatch.setattr("outreach_server.context.MAX_LARGE_CALLBACKS", 1)
    async with Outreach.open("memory://") as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme", mode=WorkspaceMode.LIVE))
        account = await engine.accounts.connect(workspace.id, "twilio", CREDENTIALS)
        yield House(app=create_app(engine=engine), path=f"/webhooks/{account.id}")


async def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until something is the case."""
    with anyio.fail_after(30):
        while not condition():  # noqa: ASYNC110 - nothing announces who waits for a turn
            await anyio.sleep(0.005)


async def test_a_body_for_no_account_is_not_read(house: House) -> None:
    """The answer is known without it."""
    sender = Sender([chunk(b" " * LARGE)], [])
    stranger = attrs.evolve(house, path="/webhooks/0195554e-0000-7000-8000-00000000cafe")
    for headers in ({}, {"content_length": str(LARGE)}):
        assert await stranger.call(sender, **headers) == 404
    assert not sender.begun


@pytest.mark.parametrize(
    ("then", "status"),
    [
        (chunk(b"", more=False), 403),
        (chunk(b" " * FakeAdapter.max_callback_bytes), 400),
        ({"type": "http.disconnect"}, 0),
    ],
)
@pytest.mark.parametrize("announced", [False, True])
async def test_large_bodies_take_turns_and_small_ones_do_not_wait(
    house: House, announced: bool, then: Message, status: int
) -> None:
    """However a turn ends, the next one begins; what is announced as large is not read before, else no more of it."""
    headers = {"content_length": str(LARGE)} if announced else {}
    last = chunk(b"", more=False)
    first, second = Sender([chunk(b" " * LARGE)], [then, last]), Sender([chunk(b" " * LARGE)], [last])
    answers: dict[str, int] = {}

    async def call(name: str, sender: Sender) -> None:
        answers[name] = await house.call(sender, **headers)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call, "first", first)
        with anyio.fail_after(30):
            await first.asked_again.wait()
        tasks.start_soon(call, "second", second)
        await wait_until(lambda: house.turns.waiting == 1)
        assert await house.small() == 204
        assert second.begun is not announced
        assert not second.asked_again.is_set()
        first.go_on.set()
        with anyio.fail_after(30):
            await second.asked_again.wait()
        second.go_on.set()
    assert answers == {"first": status, "second": 403}
    assert house.turns.free == 1


async def test_what_is_announced_as_too_large_needs_no_turn(house: House) -> None:
    """It is refused at once, even while another account has every turn."""
    too_large = str(FakeAdapter.max_callback_bytes + 1)
    async with house.turns.turn("another account"):
        assert house.turns.free == 0
        with anyio.fail_after(30):
            assert await house.call(Sender([], []), content_length=too_large, expect="100-continue") == 400


async def test_a_body_that_trickles_loses_its_turn(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that never stops for long could keep a turn for ever."""
    monkeypatch.setattr(body, "_BASE_SECONDS", 0.05)
    monkeypatch.setattr(body, "_MIN_BYTES_PER_SECOND", 2**40)
    with anyio.fail_after(30):
        assert await house.call(Sender([chunk(b" " * LARGE)], [])) == 400
    assert house.turns.free == 1


async def test_a_callback_that_waits_too_long_for_a_turn_gets_a_503(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Providers come again after it. Nothing of the body was read, so the connection ends."""
    monkeypatch.setattr(fair_semaphore, "WAIT_SECONDS", 0.01)
    sender = Sender([], [])
    async with house.turns.turn("another account"):
        sent = await post(house.app, "", sender.receive, path=house.path, host="testserver", content_length=str(LARGE))
    headers = dict(sent[0]["headers"])
    assert (sent[0]["status"], headers[b"retry-after"], headers[b"connection"]) == (503, b"30", b"close")
    assert not sender.begun
