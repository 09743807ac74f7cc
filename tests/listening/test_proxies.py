"""What a reverse proxy says of its clients is taken from trusted ones alone."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from outreach import ConfigError
from outreach_server.config import ServerConfig
from outreach_server.listening.proxies import ForwardedMiddleware, TrustedProxies, client_address
from tests.listening.conftest import serving

FORWARDED = ("X-Forwarded-For: 203.0.113.9", "X-Forwarded-Proto: https")


class Seen:
    """Keeps what the application sees of its requests."""

    def __init__(self) -> None:
        self.scopes: list[Any] = []

    def wrap(self, app: Starlette) -> ASGIApp:
        """Return an application that notes its scopes."""

        async def noting(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                self.scopes.append((scope["scheme"], scope["client"][0] if scope["client"] else None))
            await app(scope, receive, send)

        return noting


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("listed", "seen"),
    [
        (None, ("http", "127.0.0.1")),
        ("192.0.2.1, unix", ("http", "127.0.0.1")),
        ("127.0.0.1", ("https", "203.0.113.9")),
        ("192.0.2.1,127.0.0.0/8", ("https", "203.0.113.9")),
    ],
)
async def test_the_headers_of_a_trusted_proxy_alone_are_believed(listed: str | None, seen: tuple[str, str]) -> None:
    """Anybody can send them."""
    application = Seen()
    proxies = TrustedProxies(listed) if listed is not None else None
    async with serving(application.wrap, proxies=proxies) as place, place.client() as client:
        await client.send(place.head("GET /healthz HTTP/1.1", *FORWARDED))
        assert (await client.answer()).status == 200
    assert application.scopes == [seen]


@pytest.mark.anyio
@pytest.mark.parametrize(("listed", "client"), [("unix", "203.0.113.9"), ("127.0.0.1", None)])
async def test_a_unix_socket_is_trusted_by_its_name(listed: str, client: str | None) -> None:
    """Who connects there has no address."""
    application = Seen()
    scope = {"type": "http", "client": None, "scheme": "http", "headers": [(b"x-forwarded-for", b"203.0.113.9")]}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        """Do nothing."""

    noting: Any = application.wrap(app)  # type: ignore[arg-type]
    middleware: Any = ForwardedMiddleware(noting, TrustedProxies(listed))
    await middleware(scope, None, None)
    assert application.scopes == [("http", client)]


@pytest.mark.anyio
@pytest.mark.parametrize("peer", ["::ffff:127.0.0.1", "fe80::1%eth0"])
async def test_a_proxy_is_believed_however_its_address_is_written(peer: str) -> None:
    """A server that listens on `::` sees an IPv4 proxy as an IPv6 address."""
    application = Seen()
    headers = [(b"x-forwarded-for", b"203.0.113.9"), (b"x-forwarded-proto", b"https")]
    scope = {"type": "http", "client": (peer, 4711), "scheme": "http", "headers": headers}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        """Do nothing."""

    noting: Any = application.wrap(app)  # type: ignore[arg-type]
    middleware: Any = ForwardedMiddleware(noting, TrustedProxies("127.0.0.1, fe80::/10"))
    await middleware(scope, None, None)
    assert application.scopes == [("https", "203.0.113.9")]


@pytest.mark.anyio
@pytest.mark.parametrize(("listed", "served"), [("127.0.0.1", 4), (None, 2)])
async def test_a_trusted_proxy_has_no_limit_of_its_own(listed: str | None, served: int) -> None:
    """It brings the connections of many; another address has half of all."""
    proxies = TrustedProxies(listed) if listed is not None else None
    async with serving(most_connections=4, proxies=proxies) as place, AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(place.client()) for _ in range(4)]
        for client in clients[2:]:
            await client.send(place.head("GET /healthz HTTP/1.1"))
            assert (await client.answer()).status == 200
        alive = 2
        for client in clients[:2]:
            if served == 4:
                await client.send(place.head("GET /healthz HTTP/1.1"))
                alive += (await client.answer()).status == 200
            else:
                assert await client.closed()
        assert alive == served


@pytest.mark.parametrize("listed", ["proxy.example.com", "10.0.0.1/8", "*", "127.0.0.1;unix", ""])
def test_a_wrong_list_is_reported_in_words(listed: str) -> None:
    """With the name of the setting."""
    with pytest.raises(ConfigError, match=r"ServerConfig\.proxy_headers is"):
        ServerConfig(proxy_headers=listed)


def test_addresses_of_both_kinds_are_recognized() -> None:
    """Also an IPv4 address that comes by an IPv6 socket, and one with a zone."""
    proxies = TrustedProxies("10.0.0.0/8, ::1, fe80::/10")
    for address in ("10.1.2.3", "::ffff:10.1.2.3", "::1", "fe80::1%eth0"):
        assert proxies.trusts((address, 1)), address
    for address in ("11.0.0.1", "::2", "", "unix"):
        assert not proxies.trusts((address, 1)), address
    assert not proxies.trusts("")


@pytest.mark.parametrize(
    ("client", "address"),
    [
        (("203.0.113.9", 4711), "203.0.113.9"),
        (("::ffff:203.0.113.9", 4711), "203.0.113.9"),
        (("2001:db8::9", 0), "2001:db8::9"),
        (("<script>", 0), None),
        (("unix", 0), None),
        (None, None),
    ],
)
def test_an_address_is_logged_alone(client: tuple[str, int] | None, address: str | None) -> None:
    """IPv4 as itself; no text of a header that is no address, and none for a Unix socket."""
    assert client_address(client) == address
