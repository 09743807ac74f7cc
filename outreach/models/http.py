"""Idempotency keys, stored responses and rate limits, for HTTP servers."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class IdempotentRequest:
    """A request with an idempotency key.

    Attributes:
        operation: The operation's name, which scopes the key.
        key: The client's key.
        digest: SHA-256 of the content, in hexadecimal; the same key with another one is refused.
        where: The header or field with the key, for errors.
    """

    operation: str
    key: str
    digest: str
    where: str = "Idempotency-Key"


@attrs.frozen(kw_only=True)
class StoredAnswer:
    """The answer that a key replays."""

    body: bytes
    location: str | None = None


@attrs.frozen(kw_only=True)
class RateLimitState:
    """What is left of a workspace's request limit.

    Attributes:
        limit: Requests a minute.
        remaining: Requests left in this minute.
        reset_seconds: Whole seconds until the next minute begins.
    """

    limit: int
    remaining: int
    reset_seconds: int
