"""/campaigns."""

from __future__ import annotations

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach_server.auth import authenticate_request
from outreach_server.endpoints.creating import create_campaign
from outreach_server.endpoints.listing import list_campaigns


class Campaigns(HTTPEndpoint):
    """List and create campaigns of both channels (docs/interface.md#campaigns)."""

    @staticmethod
    async def list(request: Request) -> Response:
        """List campaigns of both channels, newest first."""
        return await list_campaigns(request, await authenticate_request(request, "listCampaigns"), channel=None)

    async def get(self, request: Request) -> Response:
        """Return a page of the list."""
        return await self.list(request)

    async def post(self, request: Request) -> Response:
        """Create a campaign of the body's channel, without starting it."""
        workspace = await authenticate_request(request, "createCampaign")
        return await create_campaign(request, workspace, operation="createCampaign", channel_from_body=True)
