"""A carrier on the loopback, in a process of its own: `python -m tests.process.carrier LOG LATENCY_MS`.

It plays Twilio. It notes each message in its log when it arrives, as the simulator does, and answers after a while.
A kill in between leaves a message that has arrived and has no answer.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

ACCOUNT_SID: Final = "AC" + "0" * 31 + "1"
CREDENTIALS: Final = {"account_sid": ACCOUNT_SID, "auth_token": "token-of-the-account"}

_HEAD_END: Final = b"\r\n\r\n"


class Carrier:
    """Takes messages, and lists those to a number.

    Args:
        log: The file that gets one JSON line for each message.
        latency_seconds: How long an answer takes.
    """

    def __init__(self, log: Path, latency_seconds: float) -> None:
        self._log = log.open("ab", buffering=0)
        self._latency_seconds = latency_seconds
        self._numbers = itertools.count(1)
        self._taken: dict[str | None, list[dict[str, Any]]] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while True:
                head = (await reader.readuntil(_HEAD_END)).decode("latin-1").split("\r\n")
                method, target, _ = head[0].split(" ")
                headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:])}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                status, answer = self._take(body) if method == "POST" else (200, self._list(target))
                if method == "POST":
                    await asyncio.sleep(self._latency_seconds)
                raw = json.dumps(answer).encode()
                fields = f"content-type: application/json\r\ncontent-length: {len(raw)}"
                writer.write(f"HTTP/1.1 {status} OK\r\n{fields}\r\n\r\n".encode() + raw)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _take(self, body: bytes) -> tuple[int, dict[str, Any]]:
        now = datetime.now(UTC)
        form = dict(parse_qsl(body.decode()))
        dispatch = dict(parse_qsl(urlsplit(form["StatusCallback"]).query))["dispatch"]
        line = {"kind": "sms", "to": form["To"], "dispatch_id": dispatch, "at": now.isoformat()}
        self._log.write(json.dumps(line).encode() + b"\n")
        taken = {
            "account_sid": ACCOUNT_SID,
            "body": form["Body"],
            "date_created": format_datetime(now),
            "date_sent": None,
            "direction": "outbound-api",
            "error_code": None,
            "error_message": None,
            "from": form["From"],
            "sid": f"SM{next(self._numbers):032x}",
            "status": "queued",
            "to": form["To"],
        }
        self._taken.setdefault(form["To"], []).append(taken)
        return 201, taken

    def _list(self, target: str) -> dict[str, Any]:
        to = dict(parse_qsl(urlsplit(target).query)).get("To")
        return {"messages": self._taken.get(to, []), "next_page_uri": None}


async def main(log: str, latency_ms: str) -> None:
    """Serve on a free port, which is printed, until it is killed."""
    carrier = Carrier(Path(log), float(latency_ms) / 1000)
    server = await asyncio.start_server(carrier.serve, "127.0.0.1", 0, backlog=1000)
    sys.stdout.write(json.dumps({"url": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"}))
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
