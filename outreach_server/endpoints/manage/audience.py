"""/manage/audience: how a list overlaps with other campaigns, before its campaign exists."""

from __future__ import annotations

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach.http import document_of
from outreach_server.bodies.body import parsed_audience, receive_body
from outreach_server.context import server_of
from outreach_server.endpoints.manage.common import admit
from outreach_server.errors import json_response


class Audience(HTTPEndpoint):
    """Count how a list overlaps with other campaigns."""

    async def post(self, request: Request) -> Response:
        """Return how many of the contacts are in which other campaigns, and how many are left out."""
        workspace = await admit(request, "countAudience")
        server = server_of(request)
        async with (
            receive_body(request) as body,
            parsed_audience(server, body, workspace) as (leave_out, chunks),
        ):
            counts = await server.engine.campaigns.count_audience(workspace.id, chunks, leave_out=leave_out)
        return json_response(document_of(counts))
