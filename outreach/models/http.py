"""What a keyed request, its stored response and a rate limit are to whoever serves them over HTTP."""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class IdempotentRequest:
    """A request that brings an idempotency key, and all that tells it from others.

    Attributes:
        operation: The operation's name; keys of different operations do not meet.
        key: The client's key.
        digest: SHA-256 of what is asked for, in hexadecimal; the same key with another one is refused.
        where: What holds the key, for the error that refuses it.
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
