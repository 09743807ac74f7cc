"""Limits on connections, in all and from one address, and which one goes to make room.

Idle connections (before a complete request, or after a response) go first, the longest idle one first, so that any
number of half-sent requests keeps nobody out.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Final, Protocol

import attrs

from outreach_server.listening.proxies import peer_address

_NETWORK_BITS: Final = 64
"""The usual IPv6 prefix of one customer, whose addresses count as one."""


class LimitedConnection(Protocol):
    """A connection, as the limiter sees it."""

    def leave(self) -> None:
        """Close at once."""
        ...


@attrs.define
class _AddressConnections:
    """The connections from one address: their number, and the idle ones, longest first."""

    count: int = 0
    waiting: dict[LimitedConnection, None] = attrs.field(factory=dict)


class ConnectionLimiter:
    """Counts connections.

    Args:
        most: The limit.
        share: The limit for one address; half by default.
    """

    def __init__(self, most: int, share: int | None = None) -> None:
        self._most = most
        self._share = share if share is not None else max(1, most // 2)
        self._connections: dict[LimitedConnection, str | None] = {}
        self._waiting: dict[LimitedConnection, None] = {}
        self._by_address: dict[str | None, _AddressConnections] = {}

    def __len__(self) -> int:
        return len(self._connections)

    def admit(self, address: str | None) -> bool:
        """Make room for one more from an address; False if all connections are being served.

        Args:
            address: None for a trusted proxy, which brings many clients and so has no limit of its own.
        """
        address_connections = None if address is None else self._by_address.get(address)
        if address_connections is not None and address_connections.count >= self._share:
            return self._evict_oldest(address_connections.waiting)
        return len(self._connections) < self._most or self._evict_oldest(self._waiting)

    def enter(self, connection: LimitedConnection, address: str | None) -> None:
        """Add an idle connection."""
        self._connections[connection] = address
        self._by_address.setdefault(address, _AddressConnections()).count += 1
        self.wait(connection)

    def wait(self, connection: LimitedConnection) -> None:
        """Mark a connection as idle."""
        if connection in self._connections:
            for waiting in (self._waiting, self._by_address[self._connections[connection]].waiting):
                waiting.pop(connection, None)
                waiting[connection] = None

    def serve(self, connection: LimitedConnection) -> None:
        """Mark a connection as being served."""
        self._waiting.pop(connection, None)
        if connection in self._connections:
            self._by_address[self._connections[connection]].waiting.pop(connection, None)

    def exit(self, connection: LimitedConnection) -> None:
        """Remove a connection; idempotent."""
        self.serve(connection)
        address = self._connections.pop(connection, None)
        if address is not None:
            address_connections = self._by_address[address]
            address_connections.count -= 1
            if not address_connections.count:
                del self._by_address[address]

    def _evict_oldest(self, waiting: dict[LimitedConnection, None]) -> bool:
        connection = next(iter(waiting), None)
        if connection is None:
            return False
        self.exit(connection)
        connection.leave()
        return True


def address_of(peer: Any) -> str:
    """Return the address that identifies a client, from a socket's peer."""
    try:
        address = peer_address(peer)
    except (ValueError, TypeError, IndexError, AttributeError):
        return ""
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address, _NETWORK_BITS), strict=False).network_address)
    return str(address)
