"""The metrics of a server: those of its engine, its requests and its process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import anyio.lowlevel
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Scope

from outreach.integrations.prometheus import Counts, EngineMetrics, Family, Histograms, TallyCollector
from outreach_server.monitoring.exposition import Exposition

REQUESTS: Final = Family(
    "outreach_http_requests_total",
    "counter",
    "Requests that were answered, by operation and status.",
    ("operation", "status"),
)
SECONDS: Final = Family(
    "outreach_http_request_duration_seconds",
    "histogram",
    "How long requests took, by operation.",
    ("operation",),
    (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)
SERVER_FAMILIES: Final = (REQUESTS, SECONDS)

OTHER: Final = "other"
"""The operation of a request whose path is none, or does not know the method."""

ERRORS: Final = ("500", "503")
"""Statuses that begin with a zero, so that alerts see the first one."""

_NO_ANSWER: Final = "none"
"""The status of a request whose client went away."""


def operations_of(routes: Iterable[Route]) -> Mapping[tuple[str, str], str]:
    """Return the operations of routes by method and endpoint."""
    return {
        (method, route.endpoint.__name__): f"{method} {route.path}"
        for route in routes
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE")
        if hasattr(route.endpoint, method.lower())
    }


class ServerMetrics:
    """Collects the metrics of one app: `create_app(metrics=ServerMetrics())`.

    An app that gets an engine from its host shows the engine's metrics only if the host has opened it with
    `instrumentation=[metrics.engine]`.

    Args:
        by_workspace: Whether dispatches and reports have the workspace's id as a label.
        database: The SQLite file whose size is shown, if any.

    Attributes:
        engine: The metrics of the engine.
        registry: Everything that is shown.
    """

    def __init__(self, *, by_workspace: bool = False, database: Path | None = None) -> None:
        self.engine = EngineMetrics(by_workspace=by_workspace, database=database)
        # Where they are not installed, the import of `outreach.integrations.prometheus` has said so in words.
        from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

        self.registry = CollectorRegistry()
        self._requests = Counts(REQUESTS)
        self._seconds = Histograms(SECONDS)
        self.registry.register(self.engine)
        self.registry.register(TallyCollector([self._requests, self._seconds]))
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self._exposition = Exposition(self.registry)
        self._operations: Mapping[tuple[str, str], str] = {}

    def start_requests(self, routes: Iterable[Route]) -> None:
        """Show zeros for the errors of every operation of an app's routes; an app does so when it is created."""
        self._operations = operations_of(routes)
        for operation in (*self._operations.values(), OTHER):
            for error in ERRORS:
                self._requests.start(operation, error)

    def request_ended(self, scope: Scope, status: int, seconds: float) -> None:
        """Count a request.

        Args:
            scope: Its scope, with the endpoint that answered it.
            status: The status of the response; 0 if there was none.
            seconds: How long it took.
        """
        # A HEAD is answered as a GET whose body is left out.
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        operation = self._operations.get((method, getattr(scope.get("endpoint"), "__name__", "")), OTHER)
        self._requests.add(operation, str(status) if status else _NO_ANSWER)
        self._seconds.observe(seconds, operation)

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """Return everything as Prometheus reads it, and its content type.

        Args:
            accept: The header `Accept` of the request.
        """
        parts, content_type = self._exposition.parts(accept)
        return b"".join(parts), content_type

    async def text_in_parts(self, accept: str = "") -> tuple[bytes, str]:
        """Return the same as `text`, and let other tasks run between its parts."""
        parts, content_type = self._exposition.parts(accept)
        written = [next(parts)]
        for part in parts:
            await anyio.lowlevel.checkpoint()
            written.append(part)
        return b"".join(written), content_type

    def app(self) -> Starlette:
        """Return an app that answers `GET /metrics`, for an address of its own."""

        async def metrics(request: Request) -> Response:
            content, content_type = await self.text_in_parts(request.headers.get("accept", ""))
            return Response(content, headers={"content-type": content_type, "cache-control": "no-store"})

        return Starlette(routes=[Route("/metrics", metrics, methods=["GET"])])
