"""One connection: uvicorn's, with deadlines and limits, and the error envelope for malformed requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

import attrs
import httptools
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from outreach_server.listening.connection_limiter import ConnectionLimiter
from outreach_server.listening.refusal_counter import RefusalCounter
from outreach_server.listening.refusals import refusal
from outreach_server.request_id import choose_request_id

HEAD_SECONDS: Final = 10.0
"""How long the head of a request may take: the first since the connection, each further one since its first byte."""

MAX_HEAD_BYTES: Final = 64 * 1024
"""The largest head of a request; also the limit between parts of its body, and after it."""

STUCK_SECONDS: Final = 30.0
"""How long a client may leave a response unread."""

CLOSING_SECONDS: Final = 10.0
"""The same for a connection that is to be closed."""

_VERSIONS: Final = frozenset({"1.0", "1.1"})

_log = logging.getLogger("outreach_server")


@attrs.frozen(kw_only=True)
class ListenerState:
    """The state that all connections share.

    Attributes:
        room: The open connections.
        malformed: Counts malformed requests.
        late: Counts incomplete heads of requests.
        evicted: Counts connections closed to make room.
    """

    room: ConnectionLimiter
    malformed: RefusalCounter = attrs.field(
        factory=lambda: RefusalCounter(_log, "request_malformed", "malformed request refused")
    )
    late: RefusalCounter = attrs.field(
        factory=lambda: RefusalCounter(_log, "request_late", "connection closed: its request was incomplete")
    )

    evicted: RefusalCounter = attrs.field(
        factory=lambda: RefusalCounter(
            _log,
            "connection_let_go",
            "idle connection closed to make room: too many are open, in all or from one address",
        )
    )

    @property
    def tallies(self) -> Sequence[RefusalCounter]:
        """All counters."""
        return self.malformed, self.late, self.evicted


class _Malformed(Exception):
    """A problem found in a parser callback."""


class Connection(HttpToolsProtocol):
    """An HTTP/1 connection.

    Args:
        config: uvicorn's.
        server_state: uvicorn's.
        app_state: The state of the application's lifespan.
        listener_state: The state that it shares with the others.
        address: Its client, as in the room; None for a trusted proxy.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        *,
        listener_state: ListenerState,
        address: str | None,
    ) -> None:
        super().__init__(config=config, server_state=server_state, app_state=app_state)
        self._listener_state = listener_state
        self._address = address
        self._waiting_since: float | None = None
        self._stuck_since: float | None = None
        self._closing_since: float | None = None
        self._in_head = False
        self._unclaimed = 0
        self._refused = False
        self._problem = ""
        self._upgrade_head = b""

    # ---------------------------------------------------------------- called by the event loop

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start waiting for a request."""
        super().connection_made(transport)
        self._listener_state.room.enter(self, self._address)
        self._waiting_since = self.loop.time()

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave the room."""
        self._listener_state.room.exit(self)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Note when the client stopped reading."""
        super().pause_writing()
        self._stuck_since = self.loop.time()

    def resume_writing(self) -> None:
        """Note that the client reads again."""
        super().resume_writing()
        self._stuck_since = None

    def data_received(self, data: bytes) -> None:
        """Parse data; answer malformed requests with the envelope."""
        if self._refused:
            return
        self._unset_keepalive_if_required()
        cycle: RequestResponseCycle | None = self.cycle
        if self._waiting_since is None and cycle is not None and cycle.response_complete:
            self._waiting_since = self.loop.time()
        self._unclaimed += len(data)
        try:
            self._feed(data)
        except httptools.HttpParserUpgrade:
            # A CONNECT: it is answered, and the rest is unreadable.
            self._end_after_answer()
        except httptools.HttpParserError as error:
            self._listener_state.malformed.add()
            self._refuse(f"The request is malformed: {self._words(error)}.")
        else:
            if self._unclaimed > MAX_HEAD_BYTES:
                self._listener_state.malformed.add()
                self._refuse(f"The request's headers are larger than {MAX_HEAD_BYTES} bytes.")

    def _feed(self, data: bytes) -> None:
        """Parse data; a request that offers another protocol goes on as if it did not.

        The parser takes what follows such a head for that protocol, and the body would be lost. Clients in Java offer
        HTTP/2 in each request.
        """
        rest = memoryview(data)
        while True:
            try:
                self.parser.feed_data(rest)
                return
            except httptools.HttpParserUpgrade as upgrade:
                head, self._upgrade_head = self._upgrade_head, b""
                if not head:
                    raise
                rest = rest[upgrade.args[0] :]
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            self.parser.feed_data(head)

    # ---------------------------------------------------------------- called by the parser

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._in_head = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header, but not a trailer, which must not pass for one."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start serving the request, if its head is valid."""
        problem = self._problem_of_head()
        if problem is not None:
            self._problem = problem
            raise _Malformed(problem)
        if self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT":
            self._upgrade_head = self._head_without_upgrade()
            return
        self._in_head = False
        self._unclaimed = 0
        super().on_headers_complete()
        self._waiting_since = None
        self._listener_state.room.serve(self)

    def on_body(self, body: bytes) -> None:
        """Pass on a part of the body."""
        self._unclaimed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Pass on the end of the body."""
        if self._upgrade_head:
            return
        self._unclaimed = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, for as long as uvicorn keeps connections, unless it has come already."""
        queued = bool(self.pipeline)
        super().on_response_complete()
        if not queued and not self.transport.is_closing():
            self._listener_state.room.wait(self)

    def _unsupported_upgrade_warning(self) -> None:
        """Do not warn: any client may request an upgrade."""

    # ---------------------------------------------------------------- called by the listener

    def leave(self) -> None:
        """Close at once, to make room."""
        self._listener_state.evicted.add()
        self.transport.abort()

    def look(self, now: float) -> None:
        """Close it if a deadline has passed; `now` is the loop's time."""
        if self.transport.is_closing():
            if self._closing_since is None:
                self._closing_since = now
            elif now - self._closing_since > CLOSING_SECONDS:
                self.transport.abort()
        elif self._stuck_since is not None and now - self._stuck_since > STUCK_SECONDS:
            self._listener_state.late.add()
            self.transport.abort()
        elif self._waiting_since is not None and now - self._waiting_since > HEAD_SECONDS:
            self._listener_state.late.add()
            if self._in_head:
                self._refuse(f"The request's headers had not arrived after {HEAD_SECONDS:.0f} s.")
            else:
                self.transport.close()

    # ---------------------------------------------------------------- refusing

    def _problem_of_head(self) -> str | None:
        version = self.parser.get_http_version()
        if version not in _VERSIONS:
            return "this server speaks HTTP/1.1"
        # A head that arrives in one read is not checked elsewhere.
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > MAX_HEAD_BYTES:
            return f"its headers are larger than {MAX_HEAD_BYTES} bytes"
        names = [name for name, _ in self.headers]
        if version == "1.1" and names.count(b"host") != 1:
            return "it needs exactly one Host header"
        codings = [value.strip().lower() for name, value in self.headers if name == b"transfer-encoding"]
        if codings and (codings != [b"chunked"] or version != "1.1"):
            return "the only Transfer-Encoding that is taken is chunked"
        return None

    def _head_without_upgrade(self) -> bytes:
        headers = []
        for name, value in self.headers:
            if name == b"connection":
                options = (one.strip() for one in value.split(b","))
                value = b", ".join(one for one in options if one.lower() not in {b"upgrade", b"http2-settings"})
            if name not in {b"upgrade", b"http2-settings"}:
                headers.append(name + b": " + value)
        start = b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        return b"\r\n".join([start, *headers, b"", b""])

    def _words(self, error: httptools.HttpParserError) -> str:
        match error:
            case httptools.HttpParserInvalidMethodError():
                return "its method is unknown"
            case httptools.HttpParserInvalidURLError():
                return "its target is no path"
            case httptools.HttpParserCallbackError():
                return self._problem or "its target is no path"
        # The parser's own words contain nothing of the request.
        return str(error).rstrip(".")

    def _refuse(self, message: str) -> None:
        """Answer a malformed request and close, after the response in progress."""
        self._refused = True
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete:
            if self.pipeline or not cycle.more_body or cycle.response_started:
                self._end_after_answer()
                return
            # Its body ends here: the app sees a disconnected client.
            cycle.disconnected = True
            cycle.message_event.set()
        given = choose_request_id(self.headers or ())
        headers = self.server_state.default_headers
        answer = refusal(HTTPStatus.BAD_REQUEST, "invalid_request", message, request_id=given, headers=headers)
        self.transport.write(answer)
        self.transport.close()

    def _end_after_answer(self) -> None:
        """Read nothing more, and close after the current response."""
        self._refused = True
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or cycle.response_complete:
            self.transport.close()
            return
        cycle.keep_alive = False
        self.flow.pause_reading()
