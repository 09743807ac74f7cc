"""The header `Idempotency-Key`, which makes POSTs safe to retry (docs/interface.md#safe-retry)."""

from __future__ import annotations

import re
from typing import Final

from starlette.requests import Request

from outreach import InvalidRequest
from outreach.http import IdempotentRequest

IDEMPOTENCY_KEY: Final = "Idempotency-Key"

_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")


def idempotency_key(request: Request) -> str | None:
    """Return a request's idempotency key, if any.

    Raises:
        InvalidRequest: It is empty, too long, repeated, or not visible ASCII.
    """
    given = request.headers.getlist(IDEMPOTENCY_KEY)
    if not given:
        return None
    if len(given) > 1 or not _KEY.fullmatch(given[0]):
        raise InvalidRequest.at(IDEMPOTENCY_KEY, "must be 1 to 255 visible ASCII characters, given once")
    return given[0]


def keyed_request(request: Request, operation: str, *, digest: str) -> IdempotentRequest | None:
    """Return a POST under its key; None without a key.

    Args:
        request: The request.
        operation: The operation's name, which scopes its keys.
        digest: SHA-256 of its raw body, in hexadecimal.

    Raises:
        InvalidRequest: The key is malformed.
    """
    key = idempotency_key(request)
    return None if key is None else IdempotentRequest(operation=operation, key=key, digest=digest)
