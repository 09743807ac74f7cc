"""Limits on connections, in all and from one address, and which one goes to make room.

Idle connections (before a complete request, or after a response) go first, the longest idle one first, so that any
number of half-sent requests keeps nobody out.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Final, Protocol

import attrs

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
        self._guests: dict[LimitedConnection, str | None] = {}
        self._waiting: dict[LimitedConnection, None] = {}
        self._parties: dict[str | None, _AddressConnections] = {}

    def __len__(self) -> int:
        return len(self._guests)

    def admit(self, address: str | None) -> bool:
        """Make room for one more from an address; False if all connections are being served.

        Args:
            address: None for a trusted proxy, which brings many clients and so has no limit of its own.
        """
        party = None if address is None else self._parties.get(address)
        if party is not None and party.count >= self._share:
            return self._let_go(party.waiting)
        return len(self._guests) < self._most or self._let_go(self._waiting)

    def enter(self, guest: LimitedConnection, address: str | None) -> None:
        """Add an idle connection."""
        self._guests[guest] = address
        self._parties.setdefault(address, _AddressConnections()).count += 1
        self.wait(guest)

    def wait(self, guest: LimitedConnection) -> None:
        """Mark a connection as idle."""
        if guest in self._guests:
            for waiting in (self._waiting, self._parties[self._guests[guest]].waiting):
                waiting.pop(guest, None)
                waiting[guest] = None

    def serve(self, guest: LimitedConnection) -> None:
        """Mark a connection as being served."""
        self._waiting.pop(guest, None)
        if guest in self._guests:
            self._parties[self._guests[guest]].waiting.pop(guest, None)

    def exit(self, guest: LimitedConnection) -> None:
        """Remove a connection; idempotent."""
        self.serve(guest)
        address = self._guests.pop(guest, None)
        if address is not None:
            party = self._parties[address]
            party.count -= 1
            if not party.count:
                del self._parties[address]

    def _let_go(self, waiting: dict[LimitedConnection, None]) -> bool:
        guest = next(iter(waiting), None)
        if guest is None:
            return False
        self.exit(guest)
        guest.leave()
        return True


def address_of(peer: Any) -> str:
    """Return the address that identifies a client, from a socket's peer."""
    try:
        address = ipaddress.ip_address(peer[0].partition("%")[0])
    except (ValueError, TypeError, IndexError, AttributeError):
        return ""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, _NETWORK_BITS), strict=False).network_address)
    return str(address)
