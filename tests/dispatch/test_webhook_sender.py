"""Deliveries over HTTP: each connection is made to an address that was checked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from outreach.dispatch import webhook_sender
from outreach.dispatch.webhook_endpoint import DeliveryAnswer
from outreach.dispatch.webhook_sender import MAX_ANSWER_BYTES, WebhookSender, resolve
from outreach.rules.webhook_targets import Allowed
from outreach.testing.fault_server import Answer, FaultServer
from tests.rules.test_webhook_targets import SPECIAL

pytestmark = pytest.mark.anyio

LOCAL = Allowed.from_settings("127.0.0.0/8", http=True)


class Names:
    """A resolver that returns one answer after the other, the last one again and again."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.hosts: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Return the next answer."""
        self.hosts.append(host)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


async def deliver(sender: WebhookSender, url: str, **headers: str) -> DeliveryAnswer:
    """Send a delivery."""
    return await sender.send(url, headers, b'{"type":"webhook.test"}')


def named(url: str, host: str) -> str:
    """Named."""
    return f"http://{host}:{urlsplit(url).port}/hooks"


async def test_a_delivery_goes_to_the_address_that_was_checked_under_the_name_of_the_url() -> None:
    """The name is resolved once, and stands in `Host`."""
    names = Names(["127.0.0.1"])
    async with (
        FaultServer(lambda _: Answer(body=b"taken")) as server,
        WebhookSender(allowed=LOCAL, resolver=names) as sender,
    ):
        answer = await sender.send(named(server.url, "hooks.example.com"), {"webhook-id": "evt_1"}, b"{}")

    (received,) = server.requests
    assert (answer.ok, answer.status, answer.text, answer.error) == (True, 200, b"taken", None)
    assert received.headers["host"].startswith("hooks.example.com:")
    assert (received.method, received.path, received.body) == ("POST", "/hooks", b"{}")
    assert received.headers["webhook-id"] == "evt_1"
    assert names.hosts == ["hooks.example.com"]


async def test_a_name_that_resolves_to_a_private_address_later_is_refused_at_the_connection() -> None:
    """Though its URL was allowed."""
    allowed = Allowed.from_settings("127.0.0.1/32", http=True)
    names = Names(["127.0.0.1"], ["127.0.0.2"])
    async with FaultServer(lambda _: Answer(headers={"connection": "close"})) as server:  # noqa: SIM117
        async with WebhookSender(allowed=allowed, resolver=names) as sender:
            first = await deliver(sender, named(server.url, "hooks.example.com"))
            second = await deliver(sender, named(server.url, "hooks.example.com"))

    assert (first.ok, second.ok, second.error, second.text) == (True, False, "target_refused", b"")
    assert server.connections == 1


async def test_one_private_address_among_public_ones_is_refused() -> None:
    """Nothing is connected to."""
    async with FaultServer(lambda _: Answer()) as server:  # noqa: SIM117
        async with WebhookSender(allowed=LOCAL, resolver=Names(["127.0.0.1", "10.0.0.1"])) as sender:
            answer = await deliver(sender, named(server.url, "hooks.example.com"))

    assert (answer.error, server.connections) == ("target_refused", 0)


@pytest.mark.parametrize("address", SPECIAL)
async def test_every_special_address_is_refused_by_name(address: str) -> None:
    """Each of the list, as what a name resolves to."""
    async with WebhookSender(allowed=Allowed(), resolver=Names([address])) as sender:
        assert (await deliver(sender, "https://hooks.example.com/")).error == "target_refused"


async def test_a_name_without_an_address_is_not_connected() -> None:
    """It is no refused target, nor did it break anything off; some names cannot be looked up at all."""

    async def resolver(host: str, port: int) -> Sequence[str]:
        raise OSError("no such name")

    async with WebhookSender(allowed=Allowed(), resolver=resolver) as sender:
        for host in ("hooks.example.com", "xn--", "xn--a"):
            assert (await deliver(sender, f"https://{host}/")).error == "not_connected"


async def test_a_second_address_is_tried() -> None:
    """Where the first one takes no connection."""
    async with FaultServer(lambda _: Answer()) as server:  # noqa: SIM117
        async with WebhookSender(allowed=LOCAL, resolver=Names(["127.0.0.9", "127.0.0.1"])) as sender:
            assert (await deliver(sender, named(server.url, "hooks.example.com"))).ok


async def test_the_system_resolves_names() -> None:
    """Also what is an address already."""
    assert "127.0.0.1" in await resolve("127.0.0.1", 443)


async def test_connections_to_a_host_are_closed_half_a_minute_after_its_last_request() -> None:
    """At the next request to any other; until then they are used again."""
    now = [100.0]
    async with (
        FaultServer(lambda _: Answer()) as server,
        WebhookSender(allowed=LOCAL, resolver=Names(["127.0.0.1"]), clock=lambda: now[0]) as sender,
    ):
        opened = []
        for seconds, host in ((0, "a"), (0, "b"), (30, "b"), (0, "a"), (31, "b"), (0, "a")):
            now[0] += seconds
            assert (await deliver(sender, named(server.url, f"{host}.example.com"))).ok
            opened.append(server.connections)

    assert opened == [1, 2, 2, 2, 2, 3]


async def test_redirects_are_not_followed() -> None:
    """The answer is what the endpoint itself says."""
    async with FaultServer(lambda _: Answer(status=307, headers={"location": "/other"})) as server:  # noqa: SIM117
        async with WebhookSender(allowed=LOCAL) as sender:
            answer = await deliver(sender, server.url)

    assert (answer.status, answer.ok, len(server.requests)) == (307, False, 1)


async def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would connect to what nobody has checked."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with FaultServer(lambda _: Answer()) as server, WebhookSender(allowed=LOCAL) as sender:
        assert (await deliver(sender, server.url)).ok


async def test_an_answer_is_read_to_4_kb_and_its_cookies_are_forgotten() -> None:
    """The next request has none of them."""
    long = Answer(body=b"x" * 1_000_000, headers={"set-cookie": "a=b", "retry-after": "7"}, status=503)
    async with FaultServer(lambda _: long) as server, WebhookSender(allowed=LOCAL) as sender:
        answer = await deliver(sender, server.url)
        await deliver(sender, server.url)

    assert (len(answer.text), answer.retry_after, answer.status) == (MAX_ANSWER_BYTES, "7", 503)
    assert "cookie" not in server.requests[1].headers


@pytest.mark.parametrize(
    ("fault", "error"), [("silence", "timeout"), ("drop_before", "dropped"), ("drop_after", "dropped")]
)
async def test_a_receiver_that_fails(fault: str, error: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each way has its word; nothing is raised."""
    monkeypatch.setattr(webhook_sender, "WHOLE_SECONDS", 0.3)
    async with FaultServer(lambda _: Answer()) as server, WebhookSender(allowed=LOCAL) as sender:
        server.fault = fault  # type: ignore[assignment]
        assert (await deliver(sender, server.url)).error == error


@asynccontextmanager
async def dripping(text: bytes, seconds: float) -> AsyncIterator[str]:
    """A server that answers byte by byte."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        try:
            for at in range(len(text)):
                writer.write(text[at : at + 1])
                await writer.drain()
                await asyncio.sleep(seconds)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    finally:
        server.close()


@pytest.mark.parametrize(
    ("answered", "status", "error"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n", 200, None),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 500, None, "timeout"),
    ],
)
async def test_an_answer_that_comes_byte_by_byte_ends_in_time(
    answered: bytes, status: int | None, error: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once its status is there, that counts."""
    monkeypatch.setattr(webhook_sender, "WHOLE_SECONDS", 1.0)
    began = time.monotonic()
    async with dripping(answered, 0.01) as url, WebhookSender(allowed=LOCAL) as sender:
        answer = await deliver(sender, url)

    assert (answer.status, answer.error) == (status, error)
    assert time.monotonic() - began < 3
