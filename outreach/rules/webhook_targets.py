"""Where webhooks may be sent: public addresses, and what the operator of the server allows beside them."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, Self
from urllib.parse import urlsplit

import attrs

from outreach.errors import InvalidRequest

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_HTTPS_PORT: Final = 443
_HTTP_PORT: Final = 80
_FIRST_FREE_PORT: Final = 1024
_MAX_URL_LENGTH: Final = 2000

_NEVER: Final[Sequence[Network]] = [
    ip_network(text)
    for text in (
        "169.254.0.0/16",  # link-local: the metadata service of most clouds
        "100.100.100.200/32",  # that of Alibaba
        "168.63.129.16/32",  # that of Azure's machines
        "192.0.0.192/32",  # that of Oracle
        "fd00:ec2::254/128",  # that of Amazon
        "fd20:ce::254/128",  # that of Google
        "fe80::/10",
    )
]
"""Addresses that no setting opens."""

# `is_global` of Python 3.11 is True for several of these.
_SPECIAL: Final[Sequence[Network]] = [
    *_NEVER,
    *(
        ip_network(text)
        for text in (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # shared by customers of a provider
            "127.0.0.0/8",  # this machine
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocols
            "192.0.2.0/24",  # documentation
            "192.31.196.0/24",  # AS112
            "192.52.193.0/24",  # AMT
            "192.88.99.0/24",  # relays of 6to4
            "192.168.0.0/16",  # private
            "192.175.48.0/24",  # AS112
            "198.18.0.0/15",  # measurements
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
            "2001::/23",  # protocols: Teredo, ORCHID, measurements
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4
            "2620:4f:8000::/48",  # AS112
            "3fff::/20",  # documentation
        )
    ),
]

_UNICAST: Final = IPv6Network("2000::/3")
"""All public IPv6 addresses are in it; NAT64, private, multicast and reserved ones are not."""

_NAT64: Final = IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR: Final = IPv6Network("2002::/16")
_COMPATIBLE: Final = IPv6Network("::/96")


class TargetRefused(InvalidRequest):
    """A webhook may not be sent there. The message does not name an address that a name resolves to."""


@attrs.frozen(kw_only=True)
class Allowed:
    """The targets that the operator of the server allows beside public addresses.

    Attributes:
        networks: Their addresses are allowed, except those of metadata services.
        names: Hosts whose addresses are allowed, whatever they are, except those of metadata services.
        http: Whether unencrypted requests are allowed.
    """

    networks: Sequence[Network] = ()
    names: frozenset[str] = frozenset()
    http: bool = False

    @classmethod
    def from_settings(cls, allow: str, *, http: bool) -> Self:
        """Return the targets that `OUTREACH_WEBHOOK_ALLOW` and `OUTREACH_WEBHOOK_ALLOW_HTTP` allow.

        Args:
            allow: Networks and names with commas between, as `EngineConfig.webhook_allow` has checked them.
            http: Whether unencrypted requests are allowed.
        """
        networks: list[Network] = []
        names: set[str] = set()
        for one in filter(None, (part.strip() for part in allow.split(","))):
            try:
                networks.append(ip_network(one))
            except ValueError:
                names.add(_plain(one))
        return cls(networks=tuple(networks), names=frozenset(names), http=http)


def check_url(url: str, allowed: Allowed) -> None:
    """Check the URL of an endpoint, without resolving its name.

    Raises:
        TargetRefused: It is no URL to which a webhook may be sent; the message says why.
    """
    if len(url) > _MAX_URL_LENGTH or not url.isascii() or any(not 0x20 < ord(one) < 0x7F for one in url) or "\\" in url:
        raise TargetRefused(
            f"url must be at most {_MAX_URL_LENGTH} ASCII characters without blanks or backslashes: write other "
            "characters of its path with percent signs, and those of its host as xn--…."
        )
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise TargetRefused("url is no URL like https://example.com/hooks.") from None
    if parts.scheme not in ({"https", "http"} if allowed.http else {"https"}) or not host:
        raise TargetRefused(
            "url must be like https://example.com/hooks."
            + ("" if allowed.http else " Unencrypted requests require OUTREACH_WEBHOOK_ALLOW_HTTP on the server.")
        )
    if "@" in parts.netloc:
        raise TargetRefused("url has a user name or a password in it: take them out; deliveries are signed.")
    if "#" in url:
        raise TargetRefused("url has a fragment (#…), which is not sent: take it out.")
    usual = _HTTP_PORT if parts.scheme == "http" else _HTTPS_PORT
    if port is not None and port not in {usual, _HTTPS_PORT} and port < _FIRST_FREE_PORT:
        raise TargetRefused(f"The port of url is {port}; it must be {usual}, or {_FIRST_FREE_PORT} and up.")
    literal = _literal(host)
    local = _plain(host) == "localhost" or _plain(host).endswith(".localhost")
    if (literal is not None and not is_allowed(literal, host, allowed)) or (
        local and _plain(host) not in allowed.names
    ):
        raise TargetRefused(_REFUSED)


def check_addresses(found: Iterable[str], host: str, allowed: Allowed) -> Sequence[Address]:
    """Return the addresses that a host has, if a webhook may be sent to each of them.

    Args:
        found: The addresses from the resolver, for this connection.
        host: The host of the URL.
        allowed: The targets that the operator allows.

    Raises:
        TargetRefused: One of them is not allowed, is unreadable, or there is none.
    """
    addresses = [_parse_address(text) for text in found]
    checked = [one for one in addresses if one is not None and is_allowed(one, host, allowed)]
    if not checked or len(checked) < len(addresses):
        raise TargetRefused(_REFUSED)
    return checked


def is_allowed(address: Address, host: str, allowed: Allowed) -> bool:
    """Return whether a webhook may be sent to an address, which a host has."""
    address = _unmapped(address)
    if any(part in network for part in (address, *_embedded(address)) for network in _NEVER):
        return False
    if _plain(host) in allowed.names or any(address in network for network in allowed.networks):
        return True
    if isinstance(address, IPv6Address) and address not in _UNICAST:
        return False
    return not any(address in network for network in _SPECIAL)


_REFUSED: Final = (
    "Webhooks are not sent to the host of url: it must have public addresses only. The operator of the server can "
    "allow others by OUTREACH_WEBHOOK_ALLOW."
)


def _plain(host: str) -> str:
    return host.rstrip(".").lower()


def _parse_address(text: str) -> Address | None:
    try:
        return _unmapped(ip_address(text))
    except ValueError:
        return None


def _literal(host: str) -> Address | None:
    """Return the address that a host is, in each form that a resolver reads, such as 127.1 and 0x7f000001."""
    found = _parse_address(host)
    if found is None and _plain(host) and _plain(host)[0].isdigit():
        try:
            return IPv4Address(socket.inet_aton(_plain(host)))
        except OSError:
            return None
    return found


def _unmapped(address: Address) -> Address:
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def _embedded(address: Address) -> Sequence[IPv4Address]:
    """Return the IPv4 address that an IPv6 address leads to, by NAT64, 6to4 or as a compatible one."""
    if not isinstance(address, IPv6Address):
        return ()
    if address in _NAT64 or address in _COMPATIBLE:
        return (IPv4Address(int(address) & 0xFFFFFFFF),)
    if address in _SIX_TO_FOUR:
        return (IPv4Address(int(address) >> 80 & 0xFFFFFFFF),)
    return ()
