"""/manage/campaigns/{id}/now and progress: a campaign while it runs."""

from __future__ import annotations

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach.http import document_of
from outreach_server.auth import authenticate_request
from outreach_server.bodies.query import moment, read_query
from outreach_server.context import server_of
from outreach_server.endpoints.manage.common import admit, path_id
from outreach_server.errors import json_response


class CampaignNow(HTTPEndpoint):
    """Say what a campaign waits for."""

    async def get(self, request: Request) -> Response:
        """Return the rule that binds now, since and until when, for how many contacts, and a sentence."""
        workspace = await admit(request, "getCampaignNow")
        campaigns = server_of(request).engine.campaigns
        return json_response(document_of(await campaigns.now(workspace.id, path_id(request, "campaign"))))


class CampaignProgress(HTTPEndpoint):
    """Show a campaign's requests over time."""

    async def get(self, request: Request) -> Response:
        """Return the requests and their outcomes by the minute, or by longer steps."""
        workspace = await authenticate_request(request, "getCampaignProgress")
        query = read_query(request, since=moment)
        campaigns = server_of(request).engine.campaigns
        found = await campaigns.progress(workspace.id, path_id(request, "campaign"), since=query.get("since"))
        return json_response(document_of(found))
