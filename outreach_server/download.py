"""Files that are made while they are sent."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Final

import anyio
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from outreach_server.disconnects import cancel_without_client
from outreach_server.fair_semaphore import FairSemaphore

_JSON_RANGES: Final = ("application/json", "application/*", "*/*")
"""The ranges of types that match JSON, the most specific first."""

_WEIGHT: Final = re.compile(r"0(\.[0-9]{0,3})?|1(\.0{0,3})?")


def weights_of(request: Request, header: str) -> Mapping[str, float]:
    """Return the weights of what a client accepts, by name in lower case; what has no valid weight is left out."""
    weights: dict[str, float] = {}
    for accepted in ",".join(request.headers.getlist(header)).split(","):
        name, *parameters = (part.strip().lower() for part in accepted.split(";"))
        weight = next((one[2:] for one in parameters if one.startswith("q=")), "1")
        if _WEIGHT.fullmatch(weight):
            weights[name] = float(weight)
    return weights


def prefers(request: Request, media_type: str) -> bool:
    """Return whether a client names this type in `Accept`, with a higher weight than it gives to JSON."""
    weights = weights_of(request, "Accept")
    json_weight = next((weights[kind] for kind in _JSON_RANGES if kind in weights), 0.0)
    return weights.get(media_type, 0.0) > json_weight


async def made_in_turn(parts: AsyncGenerator[bytes], turns: FairSemaphore, owner: str) -> AsyncGenerator[bytes]:
    """Yield the parts of a file that is made as a whole before the first of them, which takes a turn.

    Raises:
        FairSemaphoreTimeout: There was none in time.
    """
    async with aclosing(parts):
        async with turns.turn(owner):
            part = await anext(parts, b"")
        while part:
            yield part
            part = await anext(parts, b"")


class DownloadResponse(Response):
    """Sends the parts of a file, each after the client has taken the one before; ends when the client goes.

    An error after the first part ends the connection, so that half a file is not taken for a whole one.

    Args:
        parts: The parts of the file.
        name: The name of the file, in ASCII.
        content_type: Its type.
        only_headers: Whether to answer a HEAD.
    """

    def __init__(
        self, parts: AsyncGenerator[bytes], *, name: str, content_type: str, only_headers: bool = False
    ) -> None:
        # Without a body, so that no Content-Length is set.
        self.status_code = 200
        self.background = None
        self.media_type = None
        self.init_headers(
            {
                "Content-Type": content_type,
                "Content-Disposition": f'attachment; filename="{name}"',
                "Cache-Control": "no-store",
                "X-Content-Type-Options": "nosniff",
            }
        )
        self._parts = parts
        self._only_headers = only_headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file."""
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cancel_without_client, receive, tasks.cancel_scope)
            try:
                await self._send(send)
            except Exception as error:
                # Raised below, as it is: the group would wrap it, and its status would be lost.
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _send(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        async with aclosing(self._parts) as parts:
            # The first part before the headers: what is wrong until then has an answer of its own.
            part = b"" if self._only_headers else await anext(parts, b"")
            await send(start)
            while part:
                await send({"type": "http.response.body", "body": part, "more_body": True})
                part = await anext(parts, b"")
        await send({"type": "http.response.body", "body": b"", "more_body": False})
