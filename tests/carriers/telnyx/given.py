"""A Telnyx account, and Telnyx's part: what it answers, signs, and remembers."""

from __future__ import annotations

import base64
import json
import uuid
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from outreach.core.clock import format_timestamp
from outreach.protocols.adapter import Callback
from outreach.testing.builders import NOW
from outreach_server.stand_ins import telnyx
from outreach_server.stand_ins.telnyx import detail_record
from outreach_server.stand_ins.telnyx import message_payload as a_payload
from tests.carriers.kit import CALLBACK_URL, Played, callback

__all__ = ["a_payload"]

KEY: Final = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC_KEY: Final = base64.b64encode(KEY.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)).decode()
CREDENTIALS: Final = {"api_key": "KEY-of-the-account", "public_key": PUBLIC_KEY}
PROFILE: Final = {"messaging_profile_id": "abc85f64-5717-4562-b3fc-2c9600000000"}
ID: Final = "40385f64-5717-4562-b3fc-2c963f66afa6"
DISPATCH: Final = "0195554e-0000-7000-9000-00000000d15c"


def a_row(**changes: Any) -> dict[str, Any]:
    """Return a detail record of a message as Telnyx writes it."""
    address = f"{CALLBACK_URL}?dispatch={DISPATCH}"
    row = {"uuid": str(uuid.uuid4()), "created_at": format_timestamp(NOW), "delivery_status_webhook_url": address}
    return detail_record(**{**row, **changes})


class TelnyxStandIn(Played):
    """Plays Telnyx."""

    def __init__(self) -> None:
        super().__init__(telnyx.TelnyxStandIn())


def signed(
    event: object,
    *,
    url: str = CALLBACK_URL,
    at: float | None = None,
    key: Ed25519PrivateKey = KEY,
    body: bytes | None = None,
) -> Callback:
    """Return a callback that Telnyx has signed; `body` replaces the JSON of the event."""
    content = json.dumps(event).encode() if body is None else body
    moment = str(int(NOW.timestamp() if at is None else at))
    signature = key.sign(f"{moment}|".encode() + content)
    headers = {"telnyx-timestamp": moment, "telnyx-signature-ed25519": base64.b64encode(signature).decode()}
    return callback(content, headers, url=url)
