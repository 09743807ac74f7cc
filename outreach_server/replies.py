"""JSON responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson
from starlette.responses import Response

from outreach.http import StoredAnswer

JSON: Final = "application/json"


def json_response(content: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response."""
    return Response(orjson.dumps(content), status_code=status, headers=headers, media_type=JSON)


def created_response(answer: StoredAnswer) -> Response:
    """Return the response to a POST that has created something, now or at its first request."""
    headers = {} if answer.location is None else {"Location": answer.location}
    return Response(answer.body, status_code=201, headers=headers, media_type=JSON)


def answer_of(content: Any, *, location: str | None = None) -> StoredAnswer:
    """Return a POST's response, in the form that an idempotency key stores."""
    return StoredAnswer(body=orjson.dumps(content), location=location)
