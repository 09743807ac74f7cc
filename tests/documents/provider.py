"""What stands for a provider while a page is run: it takes every credential and every message.

`python -m tests.documents.provider` serves, and prints its address.
"""

from __future__ import annotations

import base64
import json
import sys
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

_ACCOUNT: Final = f"AC{0:032}"

CREDENTIALS: Final[dict[str, dict[str, str]]] = {
    "twilio": {"account_sid": _ACCOUNT, "auth_token": "0" * 32},
    "telnyx": {"api_key": "KEY0123456789", "public_key": base64.b64encode(bytes(32)).decode()},
    "vonage": {"api_key": "abcd1234", "api_secret": "0" * 16, "signature_secret": "0" * 32},
    "vapi": {"api_key": "0" * 36, "webhook_secret": "0" * 32, "phone_number_id": "number"},
    "retell": {"api_key": "key_0123456789"},
    "elevenlabs": {"api_key": "sk_0123456789", "webhook_secret": "wsec_0123456789", "phone_number_id": "number"},
}
"""Of the form that each provider's have; a page shows none that could be used."""

_CHECKS: Final[dict[str, Any]] = {
    "sid": _ACCOUNT,
    "status": "active",
    "data": [],
    "total_items": 0,
    "current_concurrency": 0,
    "conversations": [],
}
"""What the harmless requests of all adapters look for, but of Vapi's, whose answer is a list."""


class Provider(BaseHTTPRequestHandler):
    """Answers as each provider does that has nothing against a request."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Answer the request of a check, or a look-up, which finds nothing."""
        self._answer(200, [] if self.path.startswith("/call") else _CHECKS)

    def do_POST(self) -> None:
        """Take a message."""
        self.rfile.read(int(self.headers.get("content-length") or 0))
        identifier = str(uuid.uuid4())
        if self.path.endswith("/Messages.json"):
            self._answer(201, {"sid": f"SM{identifier.replace('-', '')}", "status": "queued"})
        elif self.path.startswith("/v2/"):
            self._answer(200, {"data": {"id": identifier, "to": [{"status": "queued"}]}})
        else:
            self._answer(202, {"message_uuid": identifier})

    def _answer(self, status: int, document: object) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    sys.stdout.write(f"http://127.0.0.1:{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
