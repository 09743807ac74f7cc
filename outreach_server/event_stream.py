"""Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import anyio
import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from outreach import OutreachError
from outreach.events import Event
from outreach.http import write_event
from outreach_server.auth import check_access
from outreach_server.context import server_of
from outreach_server.download import prefers
from outreach_server.errors import error_response

RETRY_SECONDS: Final = 3
"""After how long a client whose stream has ended reconnects."""

POLL_SECONDS: Final = 0.25
"""How often new events are looked for."""

CHECK_SECONDS: Final = 1.0
"""After how long, at the most, a key that was revoked gets no more events."""

_EVENTS_AT_ONCE: Final = 100
_MEDIA_TYPE: Final = "text/event-stream"
_TOO_MANY: Final = (
    "Too many streams of events are open for this workspace, or on this server. Close one, or read the events by the "
    "page, without the header Accept."
)


def wants_stream(request: Request) -> bool:
    """Return whether a client prefers a stream of events to a page."""
    return prefers(request, _MEDIA_TYPE)


class EventStreamResponse(Response):
    """Sends events until the client goes, the server stops, or the key may not read them any more.

    It holds the events of one page, and reads the next page only after the client has taken them.

    Args:
        request: The request, already authenticated.
        operation: Its operation, by its `operationId`.
        workspace_id: The workspace.
        kinds: The classes of events to send; none for all.
        position: The number after which it begins.
    """

    media_type = _MEDIA_TYPE

    def __init__(
        self, request: Request, operation: str, workspace_id: str, kinds: Sequence[type[Event]], position: int
    ) -> None:
        # Without a body, so that no Content-Length is set.
        self.status_code = 200
        self.background = None
        # The second header keeps nginx from collecting events before it passes them on.
        self.init_headers({"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._request = request
        self._operation = operation
        self._workspace_id = workspace_id
        self._kinds = tuple(kinds)
        self._position = position

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream."""
        with server_of(self._request).streams.enter(self._workspace_id) as ended:
            if ended is None:
                refusal = error_response(
                    self._request, 429, "too_many_streams", _TOO_MANY, headers={"Retry-After": str(RETRY_SECONDS)}
                )
                await refusal(scope, receive, send)
                return
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_watch_client, receive, ended)
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                await self._stream(send, ended)
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                tasks.cancel_scope.cancel()

    async def _stream(self, send: Send, ended: anyio.Event) -> None:
        """Send events until the stream ends."""
        server = server_of(self._request)
        sent_at = checked = anyio.current_time()
        # The position at once: a client that loses the connection before the first event reconnects with it.
        await _send(send, f"retry: {RETRY_SECONDS * 1000}\nid: {self._position}\n\n".encode())
        try:
            while not ended.is_set():
                page = await server.engine.events.page(
                    *self._kinds, workspace_id=self._workspace_id, since=self._position, limit=_EVENTS_AT_ONCE
                )
                self._position = page.position
                now = anyio.current_time()
                if now - checked >= (CHECK_SECONDS if page.events else server.streams.heartbeat_seconds):
                    await check_access(self._request, self._operation)
                    checked = now
                if page.events:
                    await _send(send, b"".join(map(_frame, page.events)))
                    sent_at = now
                elif now - sent_at >= server.streams.heartbeat_seconds:
                    # Without data it only moves the client's position, past events of types that it does not take.
                    await _send(send, f": heartbeat\nid: {self._position}\n\n".encode())
                    sent_at = now
                if not page.more:
                    with anyio.move_on_after(POLL_SECONDS):
                        await ended.wait()
        except (OutreachError, HTTPException):
            # The client reconnects, and gets the error.
            return


async def _watch_client(receive: Receive, ended: anyio.Event) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    ended.set()


async def _send(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


def _frame(event: Event) -> bytes:
    """Return an event as lines; its JSON has no line break."""
    written = write_event(event)
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (event.number, written["type"].encode(), orjson.dumps(written))
