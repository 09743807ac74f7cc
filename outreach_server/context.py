"""The context that a server's parts share: the server itself, and the state of each request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import anyio
import attrs
from starlette.requests import HTTPConnection, Request
from starlette.types import Scope

from outreach import ConfigError, Outreach
from outreach.http import RateLimitState
from outreach.models import DEFAULT_SCOPES, ApiScope
from outreach_server.fair_semaphore import FairSemaphore
from outreach_server.streams import Streams

if TYPE_CHECKING:
    from outreach_server.monitoring.request_spans import RequestSpans
    from outreach_server.monitoring.server_metrics import ServerMetrics


@attrs.frozen(kw_only=True)
class Identity:
    """The sender of a request, for hosts with identities of their own.

    Attributes:
        workspace_id: The workspace that the request acts for.
        scopes: What it may do there, as of an API key: `send`, `manage`, `read`.
    """

    workspace_id: str
    scopes: Collection[ApiScope] = DEFAULT_SCOPES


Authenticate: TypeAlias = Callable[[Request], Awaitable[Identity | str | None]]
"""Returns the sender of a request, or only the identifier of the workspace that it acts for; None for a request that
is not signed in."""

_EXCHANGE: Final = "outreach_server.exchange"
_STOPS: Final = "outreach_server.stops"

MAX_LARGE_BODIES: Final = 8
"""Large bodies received or processed at a time; others wait before they are read."""

MAX_LARGE_CALLBACKS: Final = 8
"""The same for large callbacks, which are apart because they come without an API key."""

MAX_HELPERS: Final = 2
"""Helper processes at a time, each of another workspace."""

MAX_WORKBOOKS: Final = 4
"""Exports as XLSX made at a time, each of another workspace: each takes a thread, and much of the interpreter."""

MAX_LARGE_EACH: Final = 2
"""Turns of one workspace, or of one account's callbacks, so that others get theirs."""


@attrs.define(kw_only=True)
class Server:
    """One app with its resources.

    Attributes:
        open_engine: The engine while it is open.
        max_body_bytes: The largest body of a campaign.
        authenticate: Returns the sender of a request, instead of API keys; None for API keys.
        carriers: Carriers that bodies may name besides those of the interface.
        spool_root: The directory of large bodies; by default the system's temporary one.
        large_bodies: Turns for large bodies, by workspace.
        large_callbacks: Turns for large callbacks, by account.
        helper: The command of a helper process for large bodies; None to read them in a thread.
        helpers: Turns for helper processes, by workspace: few, because each may need much memory.
        workbooks: Turns for making exports as XLSX, by workspace.
        readers: Threads that read bodies: one, because they hold the interpreter lock.
        streams: The open streams of events.
        logs_client_addresses: Whether the log line of each request holds the client's address.
        metrics: Counts requests, if anything does.
        spans: Makes spans of requests, if anything does.
    """

    open_engine: Outreach | None = None
    max_body_bytes: int
    authenticate: Authenticate | None = None
    carriers: Sequence[str] = ()
    spool_root: Path | None = None
    large_bodies: FairSemaphore = attrs.field(factory=lambda: FairSemaphore(MAX_LARGE_BODIES, MAX_LARGE_EACH))
    large_callbacks: FairSemaphore = attrs.field(factory=lambda: FairSemaphore(MAX_LARGE_CALLBACKS, MAX_LARGE_EACH))
    helper: Sequence[str] | None = None
    helpers: FairSemaphore = attrs.field(factory=lambda: FairSemaphore(MAX_HELPERS, 1))
    workbooks: FairSemaphore = attrs.field(factory=lambda: FairSemaphore(MAX_WORKBOOKS, 1))
    readers: anyio.CapacityLimiter = attrs.field(factory=lambda: anyio.CapacityLimiter(1))
    streams: Streams = attrs.field(factory=Streams)
    logs_client_addresses: bool = False
    metrics: ServerMetrics | None = None
    spans: RequestSpans | None = None

    @property
    def engine(self) -> Outreach:
        """The open engine.

        Raises:
            ConfigError: It is not open, because the lifespan has not run.
        """
        if self.open_engine is None:
            raise ConfigError(
                "The engine is not open. A mounted app's lifespan does not run by itself: "
                "enter outreach_server.running(app) in the lifespan of the app around it, or pass an opened engine."
            )
        return self.open_engine


@attrs.define(kw_only=True)
class RequestState:
    """One request's state, for the layers around the endpoints.

    Attributes:
        server: The server that it came to.
        request_id: Its id in logs and responses.
        workspace_id: The workspace, once known.
        quota: The state of the request limit, once counted, if there is one.
        closes: Whether to close the connection, because the body was not read to its end.
    """

    server: Server
    request_id: str
    workspace_id: str | None = None
    quota: RateLimitState | None = None
    closes: bool = False


def set_request_state(scope: Scope, exchange: RequestState) -> None:
    """Store the request's state in a scope."""
    scope[_EXCHANGE] = exchange


def request_state_of(connection: HTTPConnection) -> RequestState:
    """Return the state of a request."""
    exchange: RequestState = connection.scope[_EXCHANGE]
    return exchange


def request_id_of(scope: Scope) -> str | None:
    """Return the id that a request has got from an app around it; None without one."""
    exchange = scope.get(_EXCHANGE)
    return exchange.request_id if isinstance(exchange, RequestState) else None


def server_of(connection: HTTPConnection) -> Server:
    """Return the server of a request."""
    return request_state_of(connection).server


def take_cancellation_for_stop(scope: Scope) -> None:
    """Have a request answered that is cancelled: by the server in which it runs, which stops."""
    scope[_STOPS] = True


def is_cancelled_by_stop(scope: Scope) -> bool:
    """Return whether only a server that stops cancels a request."""
    return _STOPS in scope
