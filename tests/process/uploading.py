"""Sending bodies by hand: halves, bodies that lie about their length, bodies too large to hold."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable, Iterable
from typing import Any, Final
from urllib.parse import urlsplit

from tests.process.place import Place
from tests.process.server import ServerProcess
from tests.process.waiting import PATIENCE, wait_for

MEBIBYTE: Final = 2**20


class Upload:
    """One POST /sms-campaigns on a connection of its own.

    Args:
        server: Where to.
        place: Whose key is used.
        headers: More headers, such as those that announce the body.
    """

    def __init__(self, server: ServerProcess, place: Place, headers: dict[str, str]) -> None:
        parts = urlsplit(server.url)
        assert parts.hostname is not None
        self._socket = socket.create_connection((parts.hostname, parts.port), timeout=2 * PATIENCE)
        given = {"Host": parts.netloc, "Content-Type": "application/json", **place.headers, **headers}
        lines = [f"{name}: {value}" for name, value in given.items()]
        self._socket.sendall("\r\n".join(["POST /sms-campaigns HTTP/1.1", *lines, "", ""]).encode())

    def send(self, data: bytes) -> None:
        """Send a part of the body as it is."""
        self._socket.sendall(data)

    def send_chunks(self, chunks: Iterable[bytes]) -> None:
        """Send parts of the body in the chunked encoding, without its end."""
        for chunk in chunks:
            self._socket.sendall(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")

    def answer(self) -> tuple[int, Any]:
        """Return the status and the document of the answer."""
        response = http.client.HTTPResponse(self._socket, method="POST")
        response.begin()
        return response.status, json.loads(response.read())

    def close(self) -> None:
        """Go away."""
        self._socket.close()


def largest_resident(server: ServerProcess, until: Callable[[], bool], *, seconds: float = 4 * PATIENCE) -> int:
    """Return the most memory that a server and its helpers were seen to hold until something is so."""
    seen = [0]

    def look() -> bool:
        seen[0] = max(seen[0], server.resident_bytes())
        return until()

    wait_for("the work to be done", look, seconds=seconds)
    return seen[0]


def padded(document: dict[str, Any], size: int) -> bytes:
    """Return a document as JSON of so many bytes, most of them blanks."""
    text = json.dumps(document).encode()
    return text[:-1] + b" " * (size - len(text)) + b"}"
