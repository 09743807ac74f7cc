"""/healthz and /readyz."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach import __version__
from outreach.protocols import DispatcherHealth
from outreach_server.context import server_of
from outreach_server.errors import json_response


class Health(HTTPEndpoint):
    """Liveness: needs no key, and uses nothing that could hang."""

    async def get(self, request: Request) -> Response:
        """Return 200; a restart would fix nothing that `/readyz` reports."""
        return json_response({"status": "ok", "version": __version__})


class Ready(HTTPEndpoint):
    """Readiness: needs no key, and reveals nothing about workspaces."""

    async def get(self, request: Request) -> Response:
        """Return 200 if a small write was committed in time and dispatch is not disabled, else 503.

        A server that does not dispatch because another process does, or because it was not asked to, is ready.
        """
        found = await server_of(request).engine.readiness()
        return json_response(
            {
                "status": "ready" if found.ready else "not_ready",
                "reasons": list(found.reasons),
                "storage": {"write_seconds": _rounded(found.write_seconds), "write_error": found.write_error},
                "dispatcher": _dispatcher(found.dispatcher),
                # By name: the words of the log name files.
                "unusable_adapters": [problem.path for problem in found.adapter_problems],
            },
            status=HTTPStatus.OK if found.ready else HTTPStatus.SERVICE_UNAVAILABLE,
        )


def _dispatcher(health: DispatcherHealth) -> dict[str, Any]:
    return {
        "state": health.state,
        "dispatching": health.dispatching,
        # One word, because the log's text names files.
        "refused": health.refused_reason,
        "epoch": health.epoch,
        "lease_seconds_left": _rounded(health.lease_seconds_left),
        "heartbeat_seconds_ago": _rounded(health.heartbeat_seconds_ago),
        "active_units": health.active_units,
        "failures": health.failures,
        "last_error": health.last_error,
    }


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
