"""Verifying what providers sign: always on the raw bytes, in constant time, and with an age where a time is signed."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from outreach.protocols.adapter import CallbackRefused

MAX_SIGNATURE_AGE: Final = timedelta(minutes=5)
"""How old, and how far ahead of our clock, a signed time may be."""


def require_header(headers: Mapping[str, str], name: str) -> str:
    """Return a header that must be there.

    Raises:
        CallbackRefused: It is missing or empty.
    """
    value = headers.get(name)
    if not value:
        raise CallbackRefused(f"The header {name} is missing.")
    return value


def keyed_digest(secret: str | bytes, *parts: bytes, algorithm: Literal["sha1", "sha256"] = "sha256") -> bytes:
    """Return the HMAC of parts that are taken together."""
    key = secret.encode() if isinstance(secret, str) else secret
    made = hmac.new(key, digestmod=getattr(hashlib, algorithm))
    for part in parts:
        made.update(part)
    return made.digest()


def equal_in_constant_time(one: str | bytes, other: str | bytes) -> bool:
    """Compare in a time that does not tell where they differ."""
    return hmac.compare_digest(raw(one), raw(other))


def raw(text: str | bytes) -> bytes:
    """Return the bytes of a text; of any text, for a header may hold what no UTF-8 has."""
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text


def require_signature(given: str | bytes, expected: str | bytes) -> None:
    """Hold a signature against the one that it must be.

    Raises:
        CallbackRefused: It is another one.
    """
    if not equal_in_constant_time(given, expected):
        raise CallbackRefused("The signature does not fit the body.")


def require_recent(signed_at: float, *, now: datetime, age: timedelta = MAX_SIGNATURE_AGE) -> None:
    """Hold a signed time, in Unix seconds, against the clock.

    Raises:
        CallbackRefused: It is too old, lies too far ahead, or is no time.
    """
    if abs(now - _moment(signed_at)) > age:
        raise CallbackRefused("The signed time is too far from now: an old callback, or a clock that is wrong.")


def require_valid(
    *, now: datetime, not_before: float | None = None, expires: float | None = None, age: timedelta = MAX_SIGNATURE_AGE
) -> None:
    """Hold the times between which a signature counts, in Unix seconds, against the clock; None for one not given.

    Raises:
        CallbackRefused: It does not count yet or any more, by more than `age`, or one of them is no time.
    """
    if not_before is not None and _moment(not_before) - now > age:
        raise CallbackRefused("The signature does not count yet: a clock is wrong.")
    if expires is not None and now - _moment(expires) > age:
        raise CallbackRefused("The signature has expired: an old callback, or a clock that is wrong.")


def _moment(seconds: float) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, tz=UTC)
    except (ValueError, OverflowError, OSError):
        raise CallbackRefused("The signed time cannot be read.") from None


def from_base64(text: str) -> bytes:
    """Read base64, in either alphabet, padded or not.

    Raises:
        CallbackRefused: It is none.
    """
    try:
        padded = text.strip() + "=" * (-len(text.strip()) % 4)
        return base64.b64decode(padded.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        raise CallbackRefused("A value that must be base64 is none.") from None
