"""The reverse proxies whose word about their clients is taken."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any, Final

from outreach import ConfigError

# The configuration of every command reads a list of proxies; few commands serve.
if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

UNIX: Final = "unix"
"""In a list of proxies: every client that connects by a Unix socket."""


class TrustedProxies:
    """Addresses and networks of proxies.

    Args:
        listed: Such as `127.0.0.1, 10.0.0.0/8, unix`.

    Raises:
        ConfigError: Something in it is no address, no network and not `unix`.
    """

    def __init__(self, listed: str) -> None:
        self.names = [name.strip() for name in listed.split(",")]
        self._networks = [_network(name) for name in self.names if name != UNIX]

    def trusts(self, peer: Any) -> bool:
        """Whether the other side of a connection, as a socket names it, is one of them."""
        if not isinstance(peer, tuple):
            return UNIX in self.names
        try:
            address = peer_address(peer)
        except ValueError:
            return False
        return any(address in network for network in self._networks)


class ForwardedMiddleware:
    """Takes the client and the scheme of a request from `X-Forwarded-For` and `-Proto`, where a trusted proxy sent it.

    Args:
        app: The wrapped app.
        proxies: The trusted ones.
    """

    def __init__(self, app: ASGIApp, proxies: TrustedProxies) -> None:
        from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

        self._app = app
        self._proxies = proxies
        self._forwarded: Any = ProxyHeadersMiddleware(app, proxies.names)  # type: ignore[arg-type]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http" or not self._proxies.trusts(scope["client"]):
            await self._app(scope, receive, send)
            return
        # uvicorn's middleware wants a name for the other end of a Unix socket, and plain addresses.
        client = scope["client"]
        scope["client"] = (UNIX, 0) if client is None else (str(peer_address(client)), client[1])
        await self._forwarded(scope, receive, send)


def peer_address(peer: Any) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return the address of the other side, IPv4 where it is mapped; raise `ValueError` if it has none."""
    address = ipaddress.ip_address(peer[0].partition("%")[0])
    return getattr(address, "ipv4_mapped", None) or address


def is_loopback_host(host: str) -> bool:
    """Return whether a host is this machine alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def client_address(client: Any) -> str | None:
    """Return the address of a request's client without its port; None for a Unix socket and what is no address.

    Args:
        client: As ASGI's `scope["client"]`. A proxy's header may have put any text there.
    """
    try:
        return str(peer_address(client)) if client else None
    except ValueError:
        return None


def _network(name: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(name)
    except ValueError:
        raise ConfigError(
            f"{name!r} is no proxy: name addresses and networks such as 127.0.0.1 or 10.0.0.0/8, and unix."
        ) from None
