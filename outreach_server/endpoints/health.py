"""/healthz."""

from __future__ import annotations

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach_server.context import server_of
from outreach_server.replies import json_response


class Health(HTTPEndpoint):
    """Tell whether the server works; needs no key and tells nothing of any workspace."""

    async def get(self, request: Request) -> Response:
        """Answer 200 when the storage answers, with how dispatching is in this process.

        A server that does not dispatch, because another process does or because it was not asked to, is healthy.
        """
        engine = server_of(request).engine
        await engine.workspaces.audit(limit=1)
        health = engine.health()
        return json_response(
            {
                "status": "ok",
                "storage": "ok",
                "dispatcher": {
                    "dispatching": health.dispatching,
                    "refused": health.refused is not None,
                    "active_units": health.active_units,
                    "failures": health.failures,
                },
            }
        )
