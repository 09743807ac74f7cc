"""Twilio, as far as a doctor asks it: an account and its numbers, on a port of loopback."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from tests.documents.provider import CREDENTIALS

_PATIENCE_SECONDS: Final = 60
"""The end of a request that hangs, should a test not come to its end."""

NUMBER: Final = "+14155550100"


class StandIn(ThreadingHTTPServer):
    """A server that answers as it is set.

    Attributes:
        status: The status of every answer.
        refuses: Whether it refuses the token of `CREDENTIALS`.
        account: What the account says.
        sms_url: Where messages to the number go.
        clock_ahead: How far its clock is ahead, in seconds.
        answers: Set while it answers; without it, requests hang.
        asked: The paths that were asked for.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.reset(None)

    def reset(self, sms_url: str | None) -> None:
        """Have nothing against anything, with messages to the number going to an address."""
        self.status = 200
        self.refuses = False
        self.account: dict[str, Any] = {"sid": CREDENTIALS["twilio"]["account_sid"], "status": "active"}
        self.sms_url = sms_url
        self.clock_ahead = 0.0
        self.answers = threading.Event()
        self.answers.set()
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}"


class _Answering(BaseHTTPRequestHandler):
    server: StandIn

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def date_time_string(self, timestamp: float | None = None) -> str:
        """Return the date by its own clock."""
        return formatdate((time.time() if timestamp is None else timestamp) + self.server.clock_ahead, usegmt=True)

    def _has_old_token(self) -> bool:
        given = self.headers.get("authorization", "").removeprefix("Basic ")
        return base64.b64decode(given).decode().endswith(f":{CREDENTIALS['twilio']['auth_token']}")

    def do_GET(self) -> None:
        """Answer what is asked."""
        self.server.asked.append(self.path)
        if not self.server.answers.wait(_PATIENCE_SECONDS):
            return
        numbers = [{"phone_number": NUMBER, "sms_url": self.server.sms_url}]
        told = {"incoming_phone_numbers": numbers} if "IncomingPhoneNumbers" in self.path else self.server.account
        body = json.dumps(told).encode()
        self.send_response(401 if self.server.refuses and self._has_old_token() else self.server.status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serving() -> Iterator[StandIn]:
    """Serve until the end of the context."""
    with StandIn() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
