"""What a worker answers: its metrics, and whether it lives and can do its work."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route

from outreach import Outreach
from outreach_server.context import Server
from outreach_server.endpoints.health import Health, Ready
from outreach_server.monitoring.server_metrics import ServerMetrics
from outreach_server.request_id import RequestStateMiddleware


def worker_app(engine: Outreach, metrics: ServerMetrics) -> Starlette:
    """Return an app that answers `/metrics`, `/healthz` and `/readyz` for an open engine."""
    return Starlette(
        routes=[*metrics.app().routes, Route("/healthz", Health), Route("/readyz", Ready)],
        # Nothing here has a body.
        middleware=[Middleware(RequestStateMiddleware, server=Server(open_engine=engine, max_body_bytes=1))],
    )
