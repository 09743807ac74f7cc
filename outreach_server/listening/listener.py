"""Accepts connections one at a time, and checks their deadlines."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Final

from outreach_server.listening.connection import Connection, ListenerState
from outreach_server.listening.connection_limiter import address_of
from outreach_server.listening.refusal_counter import RefusalCounter
from outreach_server.listening.refusals import refusal

_SHORT: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_PAUSE_SECONDS: Final = 0.25
"""The pause after a failed accept, to avoid a busy loop."""

_NO_PLACE: Final = "There are too many connections. Close some, or try again in a moment."

_log = logging.getLogger("outreach_server")


class Listener:
    """Accepts connections from a listening socket, one at a time, so that other work runs in between.

    Args:
        listening: The socket; its owner closes it.
        house: What the connections share.
        make: Creates the connection of an address.
    """

    def __init__(self, listening: socket.socket, house: ListenerState, make: Callable[[str], Connection]) -> None:
        self._socket = listening
        self._house = house
        self._make = make
        self._full = RefusalCounter(_log, "connections_full", "connection refused: the limit is reached")
        self._short = RefusalCounter(
            _log, "descriptors_short", "connection not accepted: the system has no descriptor left"
        )
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start accepting connections."""
        self._socket.setblocking(False)
        self._task = asyncio.create_task(self._take_all(), name="outreach listener")

    async def aclose(self) -> None:
        """Stop accepting connections."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def look(self) -> None:
        """Log the counts."""
        for tally in (self._full, self._short, *self._house.tallies):
            tally.look()

    async def _take_all(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                taken, peer = await loop.sock_accept(self._socket)
            except OSError as error:
                if error.errno in _SHORT:
                    self._short.add()
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            address = address_of(peer)
            if not self._house.room.admit(address):
                self._full.add()
                _turn_away(taken)
                continue
            try:
                await loop.connect_accepted_socket(lambda address=address: self._make(address), taken)  # type: ignore[misc]
            except OSError:
                # The client has gone already.
                taken.close()


def _turn_away(taken: socket.socket) -> None:
    answer = refusal(HTTPStatus.SERVICE_UNAVAILABLE, "internal_error", _NO_PLACE, headers=[(b"retry-after", b"1")])
    with taken, suppress(OSError):
        taken.setblocking(False)
        taken.send(answer)
