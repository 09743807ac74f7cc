"""Running the server inside a command: a socket bound beforehand, and signals that end it cleanly."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import os
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Final

import click
import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from outreach import OutreachError
from outreach_server.cli import interruptions
from outreach_server.cli.sigint import handling, stop_signals
from outreach_server.config import KEEP_ALIVE_SECONDS, ServerConfig, host_and_port, url_from_here
from outreach_server.context import take_cancellation_for_stop
from outreach_server.listening.connection import Connection, ListenerState
from outreach_server.listening.connection_limiter import ConnectionLimiter
from outreach_server.listening.descriptors import max_connections
from outreach_server.listening.listener import Listener
from outreach_server.listening.proxies import ForwardedMiddleware, TrustedProxies
from outreach_server.listening.tls import CertificateFiles
from outreach_server.streams import end_streams

DRAIN_SECONDS: Final = 1
"""How long open requests may take after a signal; the engine then has 7 s for requests in flight, and a moment to
record their outcomes: 10 s in all."""

_NEW_OBJECTS: Final = 100_000
"""How many containers are made, and not freed, before the youngest are looked at; Python's default is 700 to 2,000."""

END_SECONDS: Final = 9.5
"""When the process ends after a signal even if something hangs, such as a disk or other code."""

_LAST_LINE_SECONDS: Final = 0.25
"""How long the last line of the log may take."""

_log = logging.getLogger("outreach_server")

_IS_BESIDE: Final = ContextVar("_IS_BESIDE", default=False)
"""Whether the present task belongs to a server beside another one."""

BACKLOG: Final = 2048
_TICKS_A_SECOND: Final = 10
_PORTS: Final = 65536
_NEIGHBOURS: Final = 20


def bind(host: str, port: int, *, option: str = "--port") -> socket.socket:
    """Return a listening socket; port 0 is any free one, and messages name the option that chose the port.

    An IPv6 address may stand in brackets, as in a URL.

    Raises:
        click.ClickException: The host is not an address of this machine, or the port is taken or not allowed.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host.removeprefix("[").removesuffix("]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (socket.gaierror, UnicodeError) as error:
        raise click.ClickException(f"{host!r} is not an address of this machine: {error}.") from None
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise click.ClickException(_bind_problem(host, port, option, error)) from None
    return listener


def bind_metrics(config: ServerConfig) -> AbstractContextManager[socket.socket | None]:
    """Return the listening socket of the metrics, which its block closes; None where they are not asked for.

    Raises:
        click.ClickException: As `bind`.
    """
    return bind(*host_and_port(config.metrics), option="--metrics") if config.metrics else nullcontext()


def bind_near(host: str, port: int) -> socket.socket:
    """Return a socket listening on a port or, if it is taken, on the next free one."""
    for candidate in range(port, min(port + _NEIGHBOURS, _PORTS)):
        with suppress(click.ClickException):
            return bind(host, candidate)
    return bind(host, 0)


def url_of(listener: socket.socket, scheme: str = "http") -> str:
    """Return the URL at which a socket is reached from this machine; of a Unix socket, `unix:` and its path."""
    name = listener.getsockname()
    if not isinstance(name, tuple):
        return f"unix:{name}"
    return url_from_here(scheme, str(name[0]), name[1])


def run_fast(work: Callable[[], Awaitable[None]]) -> None:
    """Run a server command on uvloop where available (not on Windows), with the garbage collector looking rarely."""
    with _collecting_rarely():
        interruptions.run(work, fast=True)


@contextmanager
def _collecting_rarely() -> Iterator[None]:
    # Little of what the engine makes is cyclic, and a message makes many objects that live until it is recorded: by
    # default a sixth of all computing is looking at them (docs/performance.md).
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


class Server(uvicorn.Server):
    """A uvicorn server that reports its start, and leaves signals to the command.

    It accepts connections itself (`outreach_server.listening`): bounded, each with deadlines.

    Args:
        app: The application.
        listeners: The listening sockets.
        level: The log level.
        on_started: Called when requests are answered.
        on_second: Called once a second while they are.
        on_stopping: Called when the shutdown begins.
        root_path: The path that a proxy takes off each request.
        certificates: For TLS; None for plain HTTP.
        proxies: The proxies whose word about their clients is taken, if any.
        most_connections: The connection limit; by default from the process's descriptors.
        keep_alive_seconds: How long a connection stays open between a response and the next request.
    """

    def __init__(
        self,
        app: ASGIApp,
        *listeners: socket.socket,
        level: str,
        on_started: Callable[[], None],
        on_second: Callable[[], None] = lambda: None,
        on_stopping: Callable[[], None] = lambda: None,
        root_path: str | None = None,
        certificates: CertificateFiles | None = None,
        proxies: TrustedProxies | None = None,
        most_connections: int | None = None,
        keep_alive_seconds: int = KEEP_ALIVE_SECONDS,
    ) -> None:
        self._app = app
        self._guard = _Guard(app)
        super().__init__(
            uvicorn.Config(
                self._guard if proxies is None else ForwardedMiddleware(self._guard, proxies),
                proxy_headers=False,
                root_path=root_path or "",
                http="httptools",
                lifespan="on",
                ws="none",
                log_config=None,
                log_level=level,
                access_log=False,
                server_header=False,
                timeout_keep_alive=keep_alive_seconds,
                timeout_graceful_shutdown=DRAIN_SECONDS,
            )
        )
        self._listener_state = ListenerState(room=ConnectionLimiter(most_connections or max_connections()))
        self._listeners = [
            Listener(one, self._listener_state, self._connection, certificates=certificates, proxies=proxies)
            for one in listeners
        ]
        self._certificates = certificates
        self._on_started = on_started
        self._on_second = on_second
        self._on_stopping = on_stopping
        self._end_for_sure = EndForSure()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Open the application, then listen.

        Raises:
            OutreachError: The application could not be opened.
            OSError: The same.
        """
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            raise self._guard.error or SystemExit(1)
        self.servers = []
        for listener in self._listeners:
            listener.start()
        self.started = True
        self._on_started()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin the shutdown, with a deadline after which the process ends even if something hangs.

        Another signal does not skip closing the engine, which takes seconds at most.
        """
        self.should_exit = True
        self._end_for_sure.begin()

    async def on_tick(self, counter: int) -> bool:
        """Check the connections and the certificate once a second."""
        if counter % _TICKS_A_SECOND == 0:
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                if isinstance(connection, Connection):
                    connection.look(now)
            for listener in self._listeners:
                listener.look()
            if self._certificates is not None:
                self._certificates.look()
            self._on_second()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more connections, let open requests end, and close the application."""
        self._on_stopping()
        for listener in self._listeners:
            await listener.aclose()
        # They go on for as long as their clients read: without this each would be cut off.
        end_streams(self._app)
        await super().shutdown(sockets=sockets)

    def _connection(self, address: str | None) -> Connection:
        return Connection(
            self.config, self.server_state, self.lifespan.state, listener_state=self._listener_state, address=address
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle `stop_signals` without raising them again, because the command has to clean up."""
        self._end_for_sure.start()
        with handling(stop_signals(), self.handle_exit):
            try:
                yield
            finally:
                self._end_for_sure.cancel()


class SideServer(Server):
    """A server beside another one in the same process, which ends it, and says when the process starts and ends."""

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until `should_exit` is set."""
        _IS_BESIDE.set(True)
        lines = logging.getLogger("uvicorn.error")
        lines.addFilter(_is_worth_a_line)
        try:
            await super().serve(sockets)
        finally:
            lines.removeFilter(_is_worth_a_line)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the other one."""
        yield


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    """Leave out what uvicorn says of start and end, where it is about a server beside another one."""
    return record.levelno > logging.INFO or not _IS_BESIDE.get()


class EndForSure(threading.Thread):
    """Ends the process some time after a signal, unless it has ended cleanly before.

    It runs before the first signal: a handler that starts a thread or takes a lock can deadlock with the next signal.
    `SimpleQueue.put` is reentrant.
    """

    def __init__(self) -> None:
        super().__init__(name="outreach-end", daemon=True)
        self._begun: SimpleQueue[bool] = SimpleQueue()

    def begin(self) -> None:
        """Start the countdown once; safe in a signal handler."""
        self._begun.put(True)

    def cancel(self) -> None:
        """Stop the countdown."""
        self._begun.put(False)

    def run(self) -> None:
        """Wait for the first signal, then for a clean end, but not for long."""
        signalled = self._begun.get()
        deadline = time.monotonic() + END_SECONDS
        while signalled:
            try:
                signalled = self._begun.get(timeout=max(0.0, deadline - time.monotonic()))
            except Empty:
                _end_now()


def _end_now() -> None:
    # In its own thread: the log itself may hang, such as a pipe that no process reads.
    telling = threading.Thread(target=_log_the_end, name="outreach-last-line", daemon=True)
    telling.start()
    telling.join(_LAST_LINE_SECONDS)
    # Safe, as after a power cut: what is committed stays, and requests without an outcome become unknown.
    os._exit(1)


def _log_the_end() -> None:
    _log.error("shutdown hangs; ending the process now", extra={"action": "cut_short"})
    logging.shutdown()


class _Guard:
    """Hides two expected errors from the server, which would print tracebacks.

    They are the error of a failed lifespan, and the cancellation of a request that outlasts the drain.
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
        take_cancellation_for_stop(scope)
        # A response that has begun ends where it is.
        with suppress(asyncio.CancelledError):
            await self._app(scope, receive, send)


def _bind_problem(host: str, port: int, option: str, error: OSError) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return f"Port {port} on {host} is taken. Choose another with {option}, or 0 for any that is free."
        case errno.EACCES:
            return f"Port {port} requires privileges that this user lacks. Choose one from 1024 on."
        case _:
            return f"Cannot listen on {host} port {port}: {error.strerror or error}."
