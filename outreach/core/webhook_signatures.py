"""Signatures of Standard Webhooks 1.0: HMAC-SHA256 over id, time and body, one for each secret that is valid."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping, Sequence


def sign(secrets: Sequence[bytes], message_id: str, sent_at: int, body: bytes) -> str:
    """Return the value of `webhook-signature`.

    Args:
        secrets: The raw bytes of each secret that is valid, the current one first.
        message_id: The value of `webhook-id`; it has no full stop.
        sent_at: The value of `webhook-timestamp`, in Unix seconds.
        body: The bytes that are sent.
    """
    signed = b".".join((message_id.encode(), str(sent_at).encode(), body))
    made = (hmac.digest(secret, signed, hashlib.sha256) for secret in secrets)
    return " ".join(f"v1,{base64.b64encode(one).decode()}" for one in made)


def signed_headers(secrets: Sequence[bytes], message_id: str, sent_at: int, body: bytes) -> Mapping[str, str]:
    """Return the three headers of a delivery; the arguments are those of `sign`."""
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(sent_at),
        "webhook-signature": sign(secrets, message_id, sent_at, body),
    }
