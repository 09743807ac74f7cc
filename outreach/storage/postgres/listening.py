"""Notifications of other processes' commits, by one connection that listens."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from selectors import EVENT_READ, DefaultSelector
from typing import Final

import psycopg

from outreach.storage.postgres.connect import SILENT_SECONDS, PostgresConnection, connect

CHANNEL: Final = "outreach"
"""The channel on which the schema's triggers name the topics that a transaction has changed."""

EVERYTHING: Final = "*"
"""Reported after a new connection, because notifications may have been missed."""

_FIRST_PAUSE_SECONDS: Final = 0.5
_MAX_PAUSE_SECONDS: Final = 15.0

_LOOK_SECONDS: Final = 30.0
"""A connection that has received nothing for this long is probed."""


class Listener:
    """A thread that listens, and reconnects when its connection is lost.

    Args:
        conninfo: How to connect.
        notify: Called on the event loop with each topic.
        loop: The event loop.

    Attributes:
        is_connected: Whether it listens now.
    """

    def __init__(self, conninfo: str, notify: Callable[[str], None], loop: asyncio.AbstractEventLoop) -> None:
        self.is_connected = False
        self._conninfo = conninfo
        self._wake = notify
        self._loop = loop
        self._closed, self._close = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="outreach-postgres-listener", daemon=True)
        self._thread.start()

    def close(self, *, seconds: float) -> None:
        """Stop listening; blocks for no longer than this."""
        with suppress(OSError):
            self._close.send(b"x")
        self._thread.join(seconds)

    def _run(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        try:
            while True:
                with suppress(psycopg.Error, OSError), connect(self._conninfo) as connection:
                    connection.longest_seconds = SILENT_SECONDS
                    connection.execute(f"LISTEN {CHANNEL}")
                    self.is_connected, pause = True, _FIRST_PAUSE_SECONDS
                    self._notify(EVERYTHING)
                    if not self._listen(connection):
                        return
                self.is_connected = False
                if self._is_closed_within(pause):
                    return
                pause = min(2 * pause, _MAX_PAUSE_SECONDS)
        finally:
            self.is_connected = False
            self._closed.close()
            self._close.close()

    def _is_closed_within(self, seconds: float) -> bool:
        """Return whether it is to end, after waiting for no longer than this."""
        try:
            return bool(_readable(seconds, self._closed))
        except OSError:
            # The process has no file left to wait with.
            time.sleep(seconds)
            return False

    def _listen(self, connection: PostgresConnection) -> bool:
        """Pass on what comes until the connection is lost, which raises; return False when it is to end."""
        while True:
            ready = _readable(_LOOK_SECONDS, self._closed, connection)
            if self._closed in ready:
                return False
            if not ready:
                connection.execute("SELECT 1")
                # The driver has taken what came with the answer.
                self._notify(EVERYTHING)
            connection.pgconn.consume_input()
            topics = set()
            while (notification := connection.pgconn.notifies()) is not None:
                topics.add(notification.extra.decode())
            for topic in sorted(topics):
                self._notify(topic)

    def _notify(self, topic: str) -> None:
        # The loop may have been closed by a host that did not close the engine.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._wake, topic)


def _readable(seconds: float, *files: socket.socket | PostgresConnection) -> set[socket.socket | PostgresConnection]:
    """Return which of these have something to read, after waiting for no longer than this."""
    with DefaultSelector() as selector:
        for file in files:
            selector.register(file, EVENT_READ, file)
        return {key.data for key, _ in selector.select(seconds)}
