"""Accepts connections one at a time, and checks their deadlines."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Final

from outreach_server.listening.connection import CLOSING_SECONDS, HEAD_SECONDS, Connection, ListenerState
from outreach_server.listening.connection_limiter import address_of
from outreach_server.listening.proxies import TrustedProxies
from outreach_server.listening.refusal_counter import RefusalCounter
from outreach_server.listening.refusals import refusal
from outreach_server.listening.tls import CertificateFiles

_SHORT: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_PAUSE_SECONDS: Final = 0.25
"""The pause after a failed accept, to avoid a busy loop."""

_VANISHED_SECONDS: Final = 60
"""How long what is sent to a client may stay unacknowledged: one whose machine or network has gone keeps no stream of
events. The system's own limit is some 15 minutes."""

_NO_PLACE: Final = "There are too many connections. Close some, or try again in a moment."

_log = logging.getLogger("outreach_server")


class Listener:
    """Accepts connections from a listening socket, one at a time, so that other work runs in between.

    Args:
        listening: The socket; its owner closes it.
        listener_state: What the connections share.
        make: Creates the connection of an address.
        certificates: For TLS; None for plain HTTP.
        proxies: The trusted proxies, if any.
    """

    def __init__(
        self,
        listening: socket.socket,
        listener_state: ListenerState,
        make: Callable[[str | None], Connection],
        *,
        certificates: CertificateFiles | None = None,
        proxies: TrustedProxies | None = None,
    ) -> None:
        self._socket = listening
        self._listener_state = listener_state
        self._make = make
        self._full = RefusalCounter(_log, "connections_full", "connection refused: the limit is reached")
        self._short = RefusalCounter(
            _log, "descriptors_short", "connection not accepted: the system has no descriptor left"
        )
        self._unsecured = RefusalCounter(_log, "tls_failed", "connection closed: its TLS handshake failed")
        self._certificates = certificates
        self._proxies = proxies
        self._handshakes: set[asyncio.Task[None]] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start accepting connections."""
        self._socket.setblocking(False)
        self._task = asyncio.create_task(self._take_all(), name="outreach listener")

    async def aclose(self) -> None:
        """Stop accepting connections."""
        tasks = [*self._handshakes] if self._task is None else [self._task, *self._handshakes]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def look(self) -> None:
        """Log the counts."""
        for tally in (self._full, self._short, self._unsecured, *self._listener_state.tallies):
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
            _notice_vanishing(taken)
            trusted = self._proxies is not None and self._proxies.trusts(peer)
            address = None if trusted else address_of(peer)
            if not self._listener_state.room.admit(address):
                self._full.add()
                if self._certificates is None:
                    _refuse(taken)
                else:
                    # Before its handshake a client of TLS could not read the answer.
                    taken.close()
                continue
            if self._certificates is not None:
                self._secure(taken, address, self._certificates.context)
                continue
            try:
                await loop.connect_accepted_socket(lambda address=address: self._make(address), taken)  # type: ignore[misc]
            except OSError:
                # The client has gone already.
                taken.close()

    def _secure(self, taken: socket.socket, address: str | None, context: ssl.SSLContext) -> None:
        """Begin the handshake of a connection, beside the others; meanwhile it counts as one that is idle."""
        handshake = _Handshake(taken, self._listener_state)
        # Here and not in the task, which begins later: the loop might accept any number before.
        self._listener_state.room.enter(handshake, address)
        task = handshake.begin(lambda: self._make(address), context)
        self._handshakes.add(task)
        task.add_done_callback(lambda _: self._end_handshake(handshake))

    def _end_handshake(self, handshake: _Handshake) -> None:
        self._listener_state.room.exit(handshake)
        self._handshakes.discard(handshake.task)
        if handshake.close():
            self._unsecured.add()


class _Handshake:
    """A connection whose TLS handshake goes on."""

    task: asyncio.Task[None]

    def __init__(self, taken: socket.socket, listener_state: ListenerState) -> None:
        self._taken = taken
        self._listener_state = listener_state
        self._begun = False

    def begin(self, make: Callable[[], Connection], context: ssl.SSLContext) -> asyncio.Task[None]:
        """Return the task of the handshake."""
        self.task = asyncio.create_task(self._run(make, context), name="outreach handshake")
        return self.task

    def close(self) -> bool:
        """Close the socket where it was cancelled before it began, and return whether it failed by itself."""
        if not self._begun:
            self._taken.close()
        return not self.task.cancelled() and self.task.exception() is not None

    def leave(self) -> None:
        """Close at once, to make room."""
        self._listener_state.evicted.add()
        self.task.cancel()

    async def _run(self, make: Callable[[], Connection], context: ssl.SSLContext) -> None:
        self._begun = True
        await asyncio.get_running_loop().connect_accepted_socket(
            make, self._taken, ssl=context, ssl_handshake_timeout=HEAD_SECONDS, ssl_shutdown_timeout=CLOSING_SECONDS
        )


def _notice_vanishing(taken: socket.socket) -> None:
    """Have the system end a connection whose client acknowledges nothing any more, where it can do so."""
    option: int | None = getattr(socket, "TCP_USER_TIMEOUT", None)
    if option is not None and taken.family in {socket.AF_INET, socket.AF_INET6}:
        with suppress(OSError):
            taken.setsockopt(socket.IPPROTO_TCP, option, _VANISHED_SECONDS * 1000)


def _refuse(taken: socket.socket) -> None:
    answer = refusal(HTTPStatus.SERVICE_UNAVAILABLE, "internal_error", _NO_PLACE, headers=[(b"retry-after", b"1")])
    with taken, suppress(OSError):
        taken.setblocking(False)
        taken.send(answer)
