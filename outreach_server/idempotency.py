"""POSTs that may safely be sent again: the header `Idempotency-Key` (design, section 3)."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from outreach import Answer, Claim, InvalidRequest
from outreach_server.context import server_of
from outreach_server.replies import created_response

IDEMPOTENCY_KEY: Final = "Idempotency-Key"

_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}")


def idempotency_key(request: Request) -> str | None:
    """Return the key that a request brings, if any.

    Raises:
        InvalidRequest: It is empty, too long, given twice, or holds more than visible ASCII.
    """
    given = request.headers.getlist(IDEMPOTENCY_KEY)
    if not given:
        return None
    if len(given) > 1 or not _KEY.fullmatch(given[0]):
        raise InvalidRequest.at(IDEMPOTENCY_KEY, "must be 1 to 255 visible ASCII characters, given once")
    return given[0]


async def answer_once(
    request: Request,
    workspace_id: str,
    operation: str,
    *,
    digest: str,
    act: Callable[[Claim | None], Awaitable[Answer]],
) -> Response:
    """Carry a POST out, or give the answer that it got the first time.

    Args:
        request: The request.
        workspace_id: Whose it is.
        operation: The operation's name.
        digest: SHA-256 of its raw body, in hexadecimal.
        act: Carries it out under the claim of its key, where it has one.

    Raises:
        InvalidRequest: The key is malformed, or was used with another body.
        RequestInProgress: The first request with the key still runs.
    """
    key = idempotency_key(request)
    if key is None:
        return created_response(await act(None))
    requests = server_of(request).engine.requests
    async with requests.idempotent(workspace_id, operation, key, digest=digest) as attempt:
        return created_response(attempt.replay or await act(attempt.claim))
