"""/manage/simulate: replies, receipts and the ends of calls in a sandbox."""

from __future__ import annotations

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach.http import read_new_simulation, to_json
from outreach_server.context import server_of
from outreach_server.endpoints.manage.common import admit, read_body
from outreach_server.errors import json_response


class Simulate(HTTPEndpoint):
    """Simulate what a contact or a provider does."""

    async def post(self, request: Request) -> Response:
        """Take an event as if a provider had called back."""
        workspace = await admit(request, "simulateEvent")
        event, _ = await read_body(request, read_new_simulation)
        return json_response(to_json(await server_of(request).engine.simulate(workspace.id, event)))
