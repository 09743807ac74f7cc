"""A Telnyx account, and Telnyx's part: what it answers, signs, and remembers."""

from __future__ import annotations

import base64
import json
import uuid
from datetime import UTC, datetime
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from outreach.core.clock import format_timestamp
from outreach.protocols.adapter import Callback
from outreach.testing.builders import NOW
from outreach.testing.fault_server import Answer, Received
from outreach.testing.provider_contract import Scenario
from tests.carriers.kit import CALLBACK_URL, as_json, callback

KEY: Final = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC_KEY: Final = base64.b64encode(KEY.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)).decode()
CREDENTIALS: Final = {"api_key": "KEY-of-the-account", "public_key": PUBLIC_KEY}
PROFILE: Final = {"messaging_profile_id": "abc85f64-5717-4562-b3fc-2c9600000000"}
ID: Final = "40385f64-5717-4562-b3fc-2c963f66afa6"
DISPATCH: Final = "0195554e-0000-7000-9000-00000000d15c"


def a_payload(status: str = "queued", **changes: Any) -> dict[str, Any]:
    """Return an outbound message as Telnyx writes it."""
    payload = {
        "record_type": "message",
        "direction": "outbound",
        "id": ID,
        "type": "SMS",
        "from": {"phone_number": "+14155550199", "carrier": "Telnyx", "line_type": "VoIP"},
        "to": [{"phone_number": "+14155550100", "status": status, "carrier": "A", "line_type": "Wireless"}],
        "text": "x",
        "encoding": "GSM-7",
        "parts": 1,
        "cost": {"amount": "0.0051", "currency": "USD"},
        "errors": [],
    }
    return {**payload, **changes}


def a_row(**changes: Any) -> dict[str, Any]:
    """Return a detail record of a message as Telnyx writes it."""
    row = {
        "record_type": "message_detail_record",
        "direction": "outbound",
        "uuid": str(uuid.uuid4()),
        "cli": "+14155550199",
        "cld": "+14155550100",
        "created_at": format_timestamp(NOW),
        "status": "delivered",
        "delivery_status_webhook_url": f"{CALLBACK_URL}?dispatch={DISPATCH}",
    }
    return {**row, **changes}


class TelnyxStandIn:
    """Plays Telnyx: takes messages, keeps their records, and refuses as Telnyx does."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def accept(self, request: Received) -> Answer:
        """Take a message, or search the records."""
        if request.method == "POST":
            asked = json.loads(request.body)
            row = a_row(
                cli=asked.get("from"),
                cld=asked["to"],
                created_at=format_timestamp(datetime.now(UTC)),
                delivery_status_webhook_url=asked.get("webhook_url"),
            )
            self.rows.append(row)
            return as_json({"data": a_payload(id=row["uuid"])})
        rows = [row for row in self.rows if row["cld"] == request.query["filter[cld]"]]
        return as_json({"data": rows, "meta": {"page_number": 1, "total_pages": 1, "total_results": len(rows)}})

    def refuse(self, scenario: Scenario) -> Answer:
        """Refuse an impossible number for good, and for a network that is away for now."""
        code = "40310" if scenario == "refuses_for_good" else "40006"
        return as_json({"errors": [{"code": code, "title": "No", "detail": "No."}]}, 400)


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
