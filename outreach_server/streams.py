"""The open streams of events of a server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import anyio

HEARTBEAT_SECONDS: Final = 15.0
"""The longest silence: clients and proxies give up silent connections, after 30 seconds and more."""

MAX_STREAMS: Final = 100
MAX_STREAMS_EACH: Final = 10
"""Open streams of a server, and of one workspace."""


class Streams:
    """The open streams of a server.

    Attributes:
        heartbeat_seconds: The longest silence of a stream.
    """

    def __init__(self, *, heartbeat_seconds: float = HEARTBEAT_SECONDS) -> None:
        self.heartbeat_seconds = heartbeat_seconds
        self._open: Counter[str] = Counter()
        self._ends: set[anyio.Event] = set()
        self._ending = False

    @property
    def open(self) -> int:
        """How many streams are open."""
        return self._open.total()

    @contextmanager
    def enter(self, workspace_id: str) -> Iterator[anyio.Event | None]:
        """Count a stream; yield the event that ends it, or None where too many are open."""
        if self._open.total() >= MAX_STREAMS or self._open[workspace_id] >= MAX_STREAMS_EACH:
            yield None
            return
        ended = anyio.Event()
        if self._ending:
            # Its request was under way when the others were closed; its client reconnects with its position.
            ended.set()
        self._open[workspace_id] += 1
        self._ends.add(ended)
        try:
            yield ended
        finally:
            self._ends.discard(ended)
            self._open[workspace_id] -= 1
            if not self._open[workspace_id]:
                del self._open[workspace_id]

    def begin(self) -> None:
        """Let streams go on, because the server starts."""
        self._ending = False

    def end(self) -> None:
        """End all streams, and those that begin from now on, because the server stops."""
        self._ending = True
        for ended in self._ends:
            ended.set()


def end_streams(app: object) -> None:
    """End all streams of an app that `create_app` has returned, and of those in it; do nothing for another one."""
    streams = getattr(getattr(app, "state", None), "streams", None)
    if not isinstance(streams, Streams):
        return
    streams.end()
    for route in getattr(app, "routes", ()):
        mounted = getattr(getattr(route, "app", None), "state", None)
        if mounted is not None:
            mounted.streams.end()
