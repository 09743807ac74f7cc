"""What a server's parts share, typed: the server itself, and one exchange of a request and its answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import anyio
import attrs
from starlette.requests import HTTPConnection, Request
from starlette.types import Scope

from outreach import ConfigError, Outreach
from outreach.http import RateLimitState
from outreach_server.fair_semaphore import FairSemaphore

Authenticate: TypeAlias = Callable[[Request], Awaitable[str | None]]
"""Returns the identifier of the workspace that a request acts for; None where nobody is signed in with it."""

_SERVER: Final = "outreach_server.server"
_EXCHANGE: Final = "outreach_server.exchange"

MAX_LARGE_BODIES: Final = 8
"""Large bodies that are received or worked on at a time; the others wait before they are read."""

MAX_LARGE_CALLBACKS: Final = 8
"""The same for large callbacks: whoever calls back shows no key, and is not to keep the turns of those who do."""

MAX_HELPERS: Final = 2
"""Helper processes at a time, each of another workspace."""

MAX_LARGE_EACH: Final = 2
"""How many of these turns one workspace, or one account that is called back, may have: the others are for others."""


@attrs.define(kw_only=True)
class Server:
    """One app and what belongs to it.

    Attributes:
        open_engine: The engine while it is open.
        max_body_bytes: The largest body of a campaign.
        authenticate: Tells which workspace a request acts for, in the place of API keys; None for API keys.
        carriers: Carriers that bodies may name beside those of the interface.
        spool_root: Where large bodies are kept while they are worked on; the system's place by default.
        large_bodies: FairSemaphore for large bodies, shared by workspace.
        large_callbacks: FairSemaphore for large bodies of callbacks, shared by account.
        helper: The command that starts a helper process for large bodies; None to read them in a thread.
        helpers: FairSemaphore for helper processes, shared by workspace: few, since each may need much memory.
        readers: Threads that read bodies: one, because they compute, and whatever else the server does waits for them.
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
    readers: anyio.CapacityLimiter = attrs.field(factory=lambda: anyio.CapacityLimiter(1))

    @property
    def engine(self) -> Outreach:
        """The open engine.

        Raises:
            ConfigError: It is not open: the lifespan has not been run.
        """
        if self.open_engine is None:
            raise ConfigError(
                "The engine is not open. A mounted app's lifespan does not run by itself: "
                "enter outreach_server.running(app) in the lifespan of the app around it, or pass an opened engine."
            )
        return self.open_engine


@attrs.define(kw_only=True)
class RequestState:
    """One request and its answer, as the layers around the endpoints see it.

    Attributes:
        request_id: Identifies it in logs and answers.
        workspace_id: Whose it is, once that is known.
        quota: What is left of the request limit, once it was counted and where there is one.
        closes: Whether the connection cannot be used again, because the body was not read to its end.
    """

    request_id: str
    workspace_id: str | None = None
    quota: RateLimitState | None = None
    closes: bool = False


def set_server(scope: Scope, server: Server) -> None:
    """Let everything that handles this scope find the server."""
    scope[_SERVER] = server


def set_request_state(scope: Scope, exchange: RequestState) -> None:
    """Let everything that handles this scope find the exchange."""
    scope[_EXCHANGE] = exchange


def server_of(connection: HTTPConnection) -> Server:
    """Return the server that handles a request."""
    server = connection.scope[_SERVER]
    assert isinstance(server, Server)  # noqa: S101 - tells the type checker what the middleware put there
    return server


def request_state_of(connection: HTTPConnection) -> RequestState:
    """Return the exchange that a request is part of."""
    exchange = connection.scope[_EXCHANGE]
    assert isinstance(exchange, RequestState)  # noqa: S101 - tells the type checker what the middleware put there
    return exchange
