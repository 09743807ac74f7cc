"""Verifies providers' signatures: on the raw bytes, in constant time, with the age of signed times."""

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
"""How far a signed time may be from our clock, past or future."""


def require_header(headers: Mapping[str, str], name: str) -> str:
    """Return a required header.

    Raises:
        CallbackRefused: It is missing or empty.
    """
    value = headers.get(name)
    if not value:
        raise CallbackRefused(f"The header {name} is missing.")
    return value


def keyed_digest(secret: str | bytes, *parts: bytes, algorithm: Literal["sha1", "sha256"] = "sha256") -> bytes:
    """Return the HMAC of the joined parts."""
    key = secret.encode() if isinstance(secret, str) else secret
    made = hmac.new(key, digestmod=getattr(hashlib, algorithm))
    for part in parts:
        made.update(part)
    return made.digest()


def equal_in_constant_time(one: str | bytes, other: str | bytes) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(raw(one), raw(other))


def raw(text: str | bytes) -> bytes:
    """Return a text's bytes, also of a header that is not UTF-8."""
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text


def require_signature(given: str | bytes, expected: str | bytes) -> None:
    """Compare a signature with the expected one.

    Raises:
        CallbackRefused: They differ.
    """
    if not equal_in_constant_time(given, expected):
        raise CallbackRefused("The signature does not match the body.")


def require_recent(signed_at: float, *, now: datetime, age: timedelta = MAX_SIGNATURE_AGE) -> None:
    """Check a signed time, in Unix seconds.

    Raises:
        CallbackRefused: It is too old, too far ahead or invalid.
    """
    if abs(now - _moment(signed_at)) > age:
        raise CallbackRefused("The signed time is too far from now: an old callback, or a wrong clock.")


def require_valid(
    *, now: datetime, not_before: float | None = None, expires: float | None = None, age: timedelta = MAX_SIGNATURE_AGE
) -> None:
    """Check the validity times of a signature, in Unix seconds; None for one not given.

    Raises:
        CallbackRefused: It is not valid yet, or has expired, by more than `age`, or a time is invalid.
    """
    if not_before is not None and _moment(not_before) - now > age:
        raise CallbackRefused("The signature is not valid yet: a clock is wrong.")
    if expires is not None and now - _moment(expires) > age:
        raise CallbackRefused("The signature has expired: an old callback, or a wrong clock.")


def _moment(seconds: float) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, tz=UTC)
    except (ValueError, OverflowError, OSError):
        raise CallbackRefused("The signed time cannot be read.") from None


def from_base64(text: str) -> bytes:
    """Decode base64 in either alphabet, padded or not.

    Raises:
        CallbackRefused: It is not base64.
    """
    try:
        padded = text.strip() + "=" * (-len(text.strip()) % 4)
        return base64.b64decode(padded.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        raise CallbackRefused("A value that must be base64 is not.") from None
