"""Failed logins: after ten of an account or of a network there is a wait that doubles (docs/users.md#logins)."""

from __future__ import annotations

import hashlib
import ipaddress
from datetime import datetime, timedelta
from typing import Final

from outreach.models.user import LoginFailures

FREE_FAILURES: Final = 10
"""So many failures cost no wait."""

WINDOW: Final = timedelta(minutes=15)
"""Failures are forgotten so long after their wait, without another one; it is the longest wait, too."""

_FIRST_WAIT_SECONDS: Final = 1
_MOST_DOUBLINGS: Final = 10


def count_failure(known: LoginFailures | None, bucket: str, now: datetime) -> LoginFailures:
    """Return the failures of a bucket after another one."""
    count = known.count if known is not None and not is_forgotten(known, now) else 0
    return LoginFailures(bucket=bucket, count=count + 1, last_at=now)


def open_from(known: LoginFailures | None) -> datetime | None:
    """Return from when on another attempt is accepted; None if at once.

    A refused attempt does not count, so that the wait ends for everybody.
    """
    if known is None or known.count < FREE_FAILURES:
        return None
    wait = timedelta(seconds=_FIRST_WAIT_SECONDS << min(known.count - FREE_FAILURES, _MOST_DOUBLINGS))
    return known.last_at + min(wait, WINDOW)


def is_forgotten(known: LoginFailures, now: datetime) -> bool:
    """Return whether failures count no longer."""
    return now >= (open_from(known) or known.last_at) + WINDOW


def network_of(address: str) -> str:
    """Return the network of an address: /24 of IPv4, /64 of IPv6; the text itself if it is no address."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    host = mapped or found
    return str(ipaddress.ip_network((host, 24 if host.version == 4 else 64), strict=False))


def bucket_of(*parts: str) -> str:
    """Return the name of the bucket of an account or a network, from which neither can be read."""
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "backslashreplace")).hexdigest()
