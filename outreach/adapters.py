"""The functions by which an adapter of your own sends and verifies: docs/own-carrier.md. A public module."""

from __future__ import annotations

from outreach.providers.http.callback_bodies import json_event
from outreach.providers.http.sending import (
    UnreadableResponse,
    json_object,
    json_object_or_empty,
    refusal,
    retry_after,
    send_once,
    text_of,
)
from outreach.providers.http.signatures import (
    from_base64,
    keyed_digest,
    require_header,
    require_recent,
    require_signature,
)

__all__ = [
    "UnreadableResponse",
    "from_base64",
    "json_event",
    "json_object",
    "json_object_or_empty",
    "keyed_digest",
    "refusal",
    "require_header",
    "require_recent",
    "require_signature",
    "retry_after",
    "send_once",
    "text_of",
]
