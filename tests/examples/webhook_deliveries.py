"""Deliveries to the receivers of examples/webhook_receiver, as the server signs them."""

from __future__ import annotations

import base64
import os
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import httpx

from outreach.core.webhook_signatures import signed_headers
from outreach.models.events import OptedOut
from outreach.serialization.webhook_bodies import body_of

OLD: Final = b"o" * 32
NEW: Final = b"n" * 32
_ID: Final = "evt_w_7_1796034600000"
_PATIENCE_SECONDS: Final = 30
_BODY: Final = body_of(
    OptedOut(
        number=7,
        at=datetime(2026, 11, 28, tzinfo=UTC),
        workspace_id="w",
        phone="+14155550101",
        scope="all",
        source="Größe",
        actor=None,
    ),
    "full",
)


def check_receiver(command: Sequence[str | Path], secret: bytes, *, cwd: Path, port: int) -> None:
    """Start a receiver that knows one secret, and try it with valid, repeated, rotated and changed deliveries.

    Raises:
        AssertionError: It took what it should refuse, or the other way round.
    """
    variables = {**os.environ, "WEBHOOK_SECRET": f"whsec_{base64.b64encode(secret).decode()}", "PORT": str(port)}
    log = cwd / "receiver.log"
    with (
        log.open("w") as output,
        subprocess.Popen(command, cwd=cwd, env=variables, stdout=output, stderr=subprocess.STDOUT) as receiver,
    ):
        try:
            _wait(port, receiver, log)
            _try(f"http://127.0.0.1:{port}/webhooks", secret)
        finally:
            receiver.terminate()
    assert log.read_text(encoding="utf-8").count("contact.opted_out") == 1, "a repeated delivery was handled again"


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        return int(chosen.getsockname()[1])


def _wait(port: int, receiver: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert receiver.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)


def _try(url: str, secret: bytes) -> None:
    now = int(time.time())
    other = NEW if secret == OLD else OLD

    def post(headers: Mapping[str, str], body: bytes = _BODY) -> int:
        sent = {**headers, "Content-Type": "application/json"}
        return httpx.post(url, content=body, headers=sent, timeout=_PATIENCE_SECONDS).status_code

    rotated = signed_headers([NEW, OLD], _ID, now, _BODY)
    assert post(rotated) == 204, "neither secret of a rotation verifies"
    assert post(signed_headers([secret], _ID, now, _BODY)) == 204, "its own secret does not verify"
    refused = {
        "another secret": post(signed_headers([other], _ID, now, _BODY)),
        "a changed byte": post(rotated, _BODY.replace(b"+14155550101", b"+14155550102")),
        "a changed id": post({**rotated, "webhook-id": _ID.replace("_7_", "_8_")}),
        "a changed time": post({**rotated, "webhook-timestamp": str(now - 1)}),
        "an old time": post(signed_headers([secret], _ID, now - 3_600, _BODY)),
        "no signature": post({"webhook-id": _ID, "webhook-timestamp": str(now)}),
    }
    assert set(refused.values()) == {401}, refused
