"""The HTTP app of a worker: its metrics, its liveness and its readiness."""

from __future__ import annotations

from http import HTTPStatus

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from outreach import Outreach, OutreachError
from outreach_server.context import Server
from outreach_server.endpoints.health import Health, Ready
from outreach_server.errors import FaultMiddleware, answer_outreach_error, error_response
from outreach_server.monitoring.server_metrics import ServerMetrics
from outreach_server.request_id import RequestStateMiddleware


def worker_app(engine: Outreach, metrics: ServerMetrics) -> Starlette:
    """Return an app that answers `/metrics`, `/healthz` and `/readyz` for an open engine."""
    app = Starlette(
        routes=[*metrics.app().routes, Route("/healthz", Health), Route("/readyz", Ready)],
        middleware=[
            # Nothing here has a body.
            Middleware(RequestStateMiddleware, server=Server(open_engine=engine, max_body_bytes=1)),
            Middleware(FaultMiddleware),
        ],
        exception_handlers={OutreachError: answer_outreach_error, HTTPException: _answer_unknown},
    )
    app.router.redirect_slashes = False
    return app


async def _answer_unknown(request: Request, error: Exception) -> Response:
    """Return the response to another path or method."""
    assert isinstance(error, HTTPException)  # noqa: S101 - the handler's registered type
    code = "not_found" if error.status_code == HTTPStatus.NOT_FOUND else "method_not_allowed"
    message = "A worker answers GET /metrics, /healthz and /readyz alone."
    return error_response(request, error.status_code, code, message, headers=error.headers)
