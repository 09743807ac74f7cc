"""Responses without the application: to malformed requests, and at the connection limit."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from http import HTTPStatus

import orjson

from outreach_server.errors import envelope
from outreach_server.request_id import REQUEST_ID


def refusal(
    status: HTTPStatus,
    code: str,
    message: str,
    *,
    request_id: str | None = None,
    headers: Sequence[tuple[bytes, bytes]] = (),
) -> bytes:
    """Return a complete error response, after which the connection is closed."""
    request_id = request_id or str(uuid.uuid4())
    body = orjson.dumps(envelope(code, message, request_id=request_id))
    lines = [
        f"HTTP/1.1 {status.value} {status.phrase}".encode(),
        *(name + b": " + value for name, value in headers),
        b"content-type: application/json",
        f"content-length: {len(body)}".encode(),
        REQUEST_ID + b": " + request_id.encode(),
        b"connection: close",
    ]
    return b"\r\n".join([*lines, b"", body])
