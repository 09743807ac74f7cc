"""JSON responses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar

import orjson
from starlette.responses import Response

from outreach.http import AnswerReplayed, IdempotentRequest, StoredAnswer
from outreach_server.bodies.body import Body

JSON: Final = "application/json"

M = TypeVar("M")


def json_response(content: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response."""
    return Response(orjson.dumps(content), status_code=status, headers=headers, media_type=JSON)


async def answer_once(
    body: Body,
    operation: str,
    make: Callable[[IdempotentRequest[M]], Awaitable[M]],
    write: Callable[[M], Any],
    *,
    location: Callable[[M], str] | None = None,
    status: int = 201,
) -> Response:
    """Return the response to a POST: the first one, where its key was used before.

    Args:
        body: The body with its key.
        operation: The operation's name, which scopes its keys.
        make: Carries out the request; the argument is its `idempotency_key`.
        write: Makes the JSON of the response.
        location: Makes the header `Location`; None for none.
        status: The status of the response.
    """

    def render(made: M) -> StoredAnswer:
        return StoredAnswer(body=orjson.dumps(write(made)), location=None if location is None else location(made))

    request = IdempotentRequest(
        operation=operation, key=body.key, digest=body.digest, render=render, idempotency_days=body.key_days
    )
    with suppress(AnswerReplayed):
        await make(request)
    headers = {} if request.answer.location is None else {"Location": request.answer.location}
    return Response(request.answer.body, status_code=status, headers=headers, media_type=JSON)
