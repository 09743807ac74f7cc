"""Server-sent events that carry the parts of a page that have changed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final, Literal

import anyio
import attrs
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from outreach_server.console.live.fan_out import FanOut, Regions, Render, View

MAX_STREAMS: Final = 100
"""Open streams of a server."""

MAX_STREAMS_EACH: Final = 4
"""Open streams of a session: browsers open six connections to a host, and the pages need some of them."""

MAX_MESSAGE_BYTES: Final = 64 * 1024

CHECK_SECONDS: Final = 1.0
"""After how long, at the most, somebody whose access has ended gets nothing more."""

STALLED_SECONDS: Final = 30.0
"""The stream of a client ends when the client reads nothing for this time."""

SIGN_OF_LIFE_SECONDS: Final = 5.0
"""The longest time without a message; after 20 s a page says that it has lost its stream."""

AS_OF: Final = "as-of"
"""The region with the time of the rendering, which is no change by itself."""

SUPERSEDED: Final = b"event: superseded\ndata: \n\n"

End = Literal["superseded", "stopping"]


@attrs.define(eq=False)
class OpenStream:
    """A stream that is open.

    Attributes:
        subject: The session.
        ended: Set to end it.
        why: Why it was ended by the server.
    """

    subject: str
    ended: anyio.Event = attrs.field(factory=anyio.Event)
    why: End | None = None

    def end(self, why: End) -> None:
        """End it."""
        self.why = self.why or why
        self.ended.set()


class LiveStreams:
    """The open streams of a console."""

    def __init__(self) -> None:
        self._open: list[OpenStream] = []
        self._stopping = False

    @property
    def open(self) -> int:
        """How many streams are open."""
        return len(self._open)

    @contextmanager
    def enter(self, subject: str) -> Iterator[OpenStream | None]:
        """Count a stream of a session, whose oldest one ends if it has too many; yield None if the server has."""
        mine = [one for one in self._open if one.subject == subject and one.why is None]
        if len(mine) >= MAX_STREAMS_EACH:
            mine[0].end("superseded")
        elif len(self._open) >= MAX_STREAMS:
            yield None
            return
        stream = OpenStream(subject)
        if self._stopping:
            stream.end("stopping")
        self._open.append(stream)
        try:
            yield stream
        finally:
            self._open.remove(stream)

    def begin(self) -> None:
        """Let streams go on, because the server starts."""
        self._stopping = False

    def end(self) -> None:
        """End all streams, and those that begin from now on, because the server stops."""
        self._stopping = True
        for one in self._open:
            one.end("stopping")


class LiveResponse(Response):
    """Sends the whole state of a page, and then what changes, until the client goes or its access ends.

    Each message is the newest state against what this client has got: a slow client gets fewer messages, and no queue.

    Args:
        streams: The open streams.
        fan_out: Renders.
        subject: The session.
        key: What is watched.
        render: Renders it.
        may_go_on: Returns whether the person may still see it.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        *,
        streams: LiveStreams,
        fan_out: FanOut,
        subject: str,
        key: object,
        render: Render,
        may_go_on: Callable[[], Awaitable[bool]],
    ) -> None:
        # Without a body, so that no Content-Length is set.
        self.status_code = 200
        self.background = None
        # The second header keeps nginx from collecting messages before it passes them on.
        self.init_headers({"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._streams = streams
        self._fan_out = fan_out
        self._subject = subject
        self._key = key
        self._render = render
        self._may_go_on = may_go_on

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream."""
        with self._streams.enter(self._subject) as stream:
            if stream is None:
                refusal = Response("Too many live pages are open on this server.", 503, {"Retry-After": "30"})
                await refusal(scope, receive, send)
                return
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_watch_client, receive, stream)
                tasks.start_soon(_end_stalled, stream, tasks.cancel_scope)
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                async with self._fan_out.watching(self._key, self._render) as view:
                    await self._stream(send, stream, view)
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                tasks.cancel_scope.cancel()

    async def _stream(self, send: Send, stream: OpenStream, view: View) -> None:
        shown: dict[str, str] = {}
        sent_at = checked_at = anyio.current_time()
        while not stream.ended.is_set() and not view.failed:
            changed, now = view.changed, anyio.current_time()
            if now - checked_at >= CHECK_SECONDS:
                if not await self._may_go_on():
                    return
                checked_at = now
            if view.regions is not None:
                brought = brought_by(view.regions, shown, say_time=now - sent_at >= SIGN_OF_LIFE_SECONDS)
                if brought:
                    with anyio.move_on_after(STALLED_SECONDS) as sending:
                        await _send(send, message(brought))
                    if sending.cancelled_caught:
                        stream.ended.set()
                        return
                    shown.update(brought)
                    sent_at = now
            with anyio.move_on_after(CHECK_SECONDS):
                await _first(changed.wait, stream.ended.wait)
        if stream.why == "superseded":
            await _send(send, SUPERSEDED)


def brought_by(regions: Regions, shown: Mapping[str, str], *, say_time: bool = False) -> Mapping[str, str]:
    """Return the regions of the next message that brings a page up to date; none if nothing has changed.

    As many as a message has room for, and at least one; the next message has the others.

    Args:
        regions: The newest rendering.
        shown: What the page shows.
        say_time: Whether the time alone is worth a message.
    """
    changed = [name for name, html in regions.items() if name != AS_OF and shown.get(name) != html]
    if not changed and not say_time:
        return {}
    brought, size = dict[str, str](), 0
    for name in (*changed, *((AS_OF,) if AS_OF in regions else ())):
        size += len(_part(name, regions[name]))
        if brought and size > MAX_MESSAGE_BYTES:
            break
        brought[name] = regions[name]
    return brought


def message(regions: Mapping[str, str]) -> bytes:
    """Return the message that brings these regions to a page."""
    return b"data: " + b"".join(_part(name, html) for name, html in regions.items()) + b"\n\n"


def _part(name: str, html: str) -> bytes:
    text = " ".join(html.split("\n"))
    return f'<hx-partial hx-target="#{name}" hx-swap="outerMorph">{text}</hx-partial>'.encode()


async def _end_stalled(stream: OpenStream, scope: anyio.CancelScope) -> None:
    """End a stream that has been ended, and whose client takes nothing: nothing of it may stay open."""
    await stream.ended.wait()
    await anyio.sleep(CHECK_SECONDS)
    scope.cancel()


async def _watch_client(receive: Receive, stream: OpenStream) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    stream.ended.set()


async def _first(*waits: Callable[[], Awaitable[object]]) -> None:
    """Wait for the first of several things."""
    async with anyio.create_task_group() as tasks:

        async def wait(one: Callable[[], Awaitable[object]]) -> None:
            await one()
            tasks.cancel_scope.cancel()

        for one in waits:
            tasks.start_soon(wait, one)


async def _send(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})
