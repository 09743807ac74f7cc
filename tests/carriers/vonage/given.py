"""A Vonage account, and Vonage's part: what it answers, signs, and remembers."""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from outreach.protocols.adapter import Callback
from outreach.testing.builders import NOW
from outreach_server.stand_ins import vonage
from outreach_server.stand_ins.vonage import error_of as a_refusal
from tests.carriers.kit import CALLBACK_URL, Played, callback

__all__ = ["a_refusal"]

API_KEY: Final = "abcd1234"
SECRET: Final = "signature-secret-of-the-account"
CREDENTIALS: Final = {"api_key": API_KEY, "api_secret": "secret-of-the-account", "signature_secret": SECRET}
REPORTS: Final = {"use_reports": "yes"}
APPLICATION_ID: Final = "78d335fa-323d-0114-9c3d-d6f0d48968cf"
UUID: Final = "aaaaaaaa-bbbb-4ccc-8ddd-0123456789ab"
ACCEPTED: Final = {"message_uuid": UUID}


@functools.cache
def rsa_key() -> RSAPrivateKey:
    """Return the key of an application, made once."""
    return generate_private_key(public_exponent=65537, key_size=2048)


def application() -> Mapping[str, str]:
    """Return the credentials of an application."""
    pem = rsa_key().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return {"application_id": APPLICATION_ID, "private_key": pem}


class VonageStandIn(Played):
    """Plays Vonage."""

    def __init__(self) -> None:
        super().__init__(vonage.VonageStandIn())


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def token(
    body: bytes,
    *,
    secret: str = SECRET,
    head: Mapping[str, Any] | None = None,
    now: datetime = NOW,
    **claims: Any,
) -> str:
    """Return a token of Vonage's for a body; a claim of None is left out."""
    usual = {
        "iat": int(now.timestamp()),
        "jti": "0f7b0a3e-6c0e-4f0e-9d3c-6a7a34a4f7b2",
        "iss": "Vonage",
        "payload_hash": hashlib.sha256(body).hexdigest(),
        "api_key": API_KEY,
        "application_id": APPLICATION_ID,
    }
    given = {name: value for name, value in {**usual, **claims}.items() if value is not None}
    signed_part = f"{_part(head or {'alg': 'HS256', 'typ': 'JWT'})}.{_part(given)}"
    digest = hmac.new(secret.encode(), signed_part.encode(), hashlib.sha256).digest()
    return f"{signed_part}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


def signed(event: object, *, body: bytes | None = None, url: str = CALLBACK_URL, **options: Any) -> Callback:
    """Return a callback that Vonage has signed; `body` replaces the JSON of the event."""
    content = json.dumps(event).encode() if body is None else body
    return callback(content, {"authorization": f"Bearer {token(content, **options)}"}, url=url)


def a_status(status: str, **changes: Any) -> dict[str, Any]:
    """Return a status as Vonage writes it."""
    event = {
        "message_uuid": UUID,
        "to": "14155550100",
        "from": "14155550199",
        "timestamp": "2026-03-02T09:30:11Z",
        "status": status,
        "channel": "sms",
        "client_ref": "d-1",
        "usage": {"currency": "EUR", "price": "0.0333"},
        "sms": {"count_total": "1"},
    }
    return {**event, **changes}
