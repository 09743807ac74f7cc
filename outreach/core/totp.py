"""Time-based one-time passwords (RFC 6238): SHA-1, six digits and steps of 30 s, as authenticators have them."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b32decode, b32encode
from datetime import datetime
from typing import Final
from urllib.parse import quote, urlencode

_STEP_SECONDS: Final = 30
_DIGITS: Final = 6
_SKEW: Final = 1
"""Steps before and after the present one that are accepted, because clocks differ."""


def step_of(now: datetime) -> int:
    """Return the time step of a moment."""
    return int(now.timestamp()) // _STEP_SECONDS


def code_at(secret: str, step: int, *, digits: int = _DIGITS) -> str:
    """Return the code of a secret, in base 32, at a time step."""
    mac = hmac.digest(b32decode(secret), step.to_bytes(8, "big"), hashlib.sha1)
    start = mac[-1] & 0xF
    number = int.from_bytes(mac[start : start + 4], "big") & 0x7FFFFFFF
    return str(number % 10**digits).zfill(digits)


def accepted_step(secret: str, code: str, now: datetime, *, after: int | None) -> int | None:
    """Return the time step of a code; None if it is wrong, or its step was accepted before.

    Args:
        secret: In base 32.
        code: What was typed; blanks do not count.
        now: The time.
        after: The last accepted step; None before the first.
    """
    typed = "".join(code.split())
    present = step_of(now)
    found = None
    for step in range(present - _SKEW, present + _SKEW + 1):
        # All are compared, so that the time tells nothing.
        if hmac.compare_digest(code_at(secret, step).encode(), typed.encode("utf-8", "backslashreplace")):
            found = step
    return found if found is not None and (after is None or found > after) else None


def make_secret(random_bytes: bytes) -> str:
    """Return a secret of 20 random bytes in base 32."""
    return b32encode(random_bytes).decode()


def url_of(secret: str, *, issuer: str, account: str) -> str:
    """Return what an authenticator reads from a QR code."""
    label = quote(f"{issuer}:{account}", safe="")
    return f"otpauth://totp/{label}?{urlencode({'secret': secret, 'issuer': issuer}, quote_via=quote)}"
