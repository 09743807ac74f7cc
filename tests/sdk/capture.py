"""What a library and an adapter of ours write for the same message, caught by one server."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl

import anyio.to_thread
import attrs

from outreach.testing.fault_server import Answer, FaultServer, Received


@attrs.frozen(kw_only=True)
class Written:
    """What matters of a request: where it goes, as whom, and what it says.

    Attributes:
        body: Decoded; None for none.
    """

    method: str
    path: str
    query: dict[str, str]
    authorization: str
    content_type: str
    body: Any


def written(request: Received) -> Written:
    """Return what matters of a request that arrived."""
    content_type = request.headers.get("content-type", "").partition(";")[0]
    body: Any = None
    if content_type == "application/json":
        body = json.loads(request.body)
    elif request.body:
        body = sorted(parse_qsl(request.body.decode(), keep_blank_values=True, strict_parsing=True))
    return Written(
        method=request.method,
        path=request.path,
        query=dict(request.query),
        authorization=request.headers.get("authorization") or request.headers["xi-api-key"],
        content_type=content_type,
        body=body,
    )


async def both(
    answer: Answer, theirs: Callable[[str], Any], ours: Callable[[str], Awaitable[Any]]
) -> tuple[Written, Written, Any, Any]:
    """Have a library, in a thread, and an adapter make one request each.

    Args:
        answer: What both are answered.
        theirs: Uses the library, with the provider at a URL.
        ours: Uses the adapter, likewise.

    Returns:
        What the library wrote, what the adapter wrote, and what each made of the answer.
    """
    async with FaultServer(lambda _: answer) as server:
        said = await anyio.to_thread.run_sync(theirs, server.url)
        found = await ours(server.url)
        their_request, our_request = server.requests
    return written(their_request), written(our_request), said, found
