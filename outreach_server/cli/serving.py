"""Running the server inside a command: a socket that is known beforehand, and signals that end it cleanly."""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

import click
import uvicorn
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from outreach import OutreachError
from outreach_server.errors import error_response

DRAIN_SECONDS: Final = 1
"""How long open requests may take after a signal; the engine then has 8 s for what is on its way: 10 s in all."""

LOG_LEVELS: Final = ("debug", "info", "warning", "error", "critical")

_STOPPING: Final = (
    "The server is being stopped before it has an answer. With an Idempotency-Key it is safe to send this again."
)
_BACKLOG: Final = 2048
_PORTS: Final = 65536
_NEIGHBOURS: Final = 20


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 is any that is free.

    Raises:
        click.ClickException: The host is none of this machine, or the port is taken or not allowed.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (socket.gaierror, UnicodeError) as error:
        raise click.ClickException(f"{host!r} is no address of this machine: {error}.") from None
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise click.ClickException(_bind_problem(host, port, error)) from None
    return listener


def bind_near(host: str, port: int) -> socket.socket:
    """Return a socket listening on a port or, where it is taken, on the next one that is free."""
    for candidate in range(port, min(port + _NEIGHBOURS, _PORTS)):
        with suppress(click.ClickException):
            return bind(host, candidate)
    return bind(host, 0)


def url_of(listener: socket.socket) -> str:
    """Return the URL at which a listening socket is reached from this machine."""
    host, port = listener.getsockname()[:2]
    # Listening everywhere is an address to listen on, not one to open.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def log_to_stderr(level: str) -> None:
    """Set logging up for a server: on stderr, without access lines, which hold what clients search for."""
    logging.basicConfig(
        stream=sys.stderr, level=level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("httpx").setLevel(logging.WARNING)


@contextmanager
def ending_on_sigterm() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does, so that what it made is cleaned up."""

    def as_ctrl_c(number: int, frame: FrameType | None) -> None:
        handler = signal.getsignal(signal.SIGINT)
        if callable(handler):
            handler(number, frame)

    before = signal.signal(signal.SIGTERM, as_ctrl_c)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class Server(uvicorn.Server):
    """A server that says when it is up, and leaves the process to the command when it ends.

    Args:
        app: The application.
        level: The least severe level that is logged.
        on_started: Called once it answers requests.
    """

    def __init__(self, app: ASGIApp, *, level: str, on_started: Callable[[], None]) -> None:
        self._guard = _Guard(app)
        super().__init__(
            uvicorn.Config(
                self._guard,
                loop="asyncio",
                lifespan="on",
                ws="none",
                log_config=None,
                log_level=level,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=DRAIN_SECONDS,
            )
        )
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Open the application, then listen.

        Raises:
            OutreachError: The application could not be opened.
            OSError: The same.
        """
        try:
            await super().startup(sockets=sockets)
        except SystemExit:
            if self._guard.error is not None:
                raise self._guard.error from None
            raise
        self._on_started()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin the end; another signal does not make it forget to close the engine, which takes seconds at most."""
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End at SIGINT and SIGTERM; do not raise them again, for the command has to clean up after it."""
        signals = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self.handle_exit) for number in signals}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class _Guard:
    """Keeps from the server what it would print as a traceback, and what is none.

    That is the error with which the application's lifespan fails, and the end of a request that is cancelled
    because it outlasts the drain.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.error: OutreachError | OSError | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await self._handle(scope, receive, send)
            return

        async def quietly(message: Message) -> None:
            failed = message["type"] == "lifespan.startup.failed"
            await send({"type": message["type"]} if failed else message)

        try:
            await self._app(scope, receive, quietly)
        except (OutreachError, OSError) as error:
            self.error = error

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def send_watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, send_watched)
        except asyncio.CancelledError:
            # Nobody else cancels a request: the server is stopping, and its client is told to try again.
            if not started:
                headers = {"Connection": "close", "Retry-After": "1"}
                answer = error_response(Request(scope), 503, "internal_error", _STOPPING, headers=headers)
                await answer(scope, receive, send)


def _bind_problem(host: str, port: int, error: OSError) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return f"Port {port} on {host} is taken. Choose another with --port, or --port 0 for any that is free."
        case errno.EACCES:
            return f"Port {port} needs rights that this user lacks. Choose one from 1024 on."
        case _:
            return f"Cannot listen on {host} port {port}: {error.strerror or error}."
