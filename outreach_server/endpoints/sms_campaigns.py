"""/sms-campaigns."""

from __future__ import annotations

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach_server.auth import authenticate_request
from outreach_server.endpoints.creating import create_campaign
from outreach_server.endpoints.listing import list_campaigns


class SmsCampaigns(HTTPEndpoint):
    """List and create SMS campaigns (docs/interface.md#4.2 and #4.3)."""

    @staticmethod
    async def list(request: Request) -> Response:
        """List SMS campaigns, newest first."""
        return await list_campaigns(request, await authenticate_request(request, "listSmsCampaigns"), channel="sms")

    async def get(self, request: Request) -> Response:
        """Return a page of the list."""
        return await self.list(request)

    async def post(self, request: Request) -> Response:
        """Create an SMS campaign with its contacts, without starting it."""
        workspace = await authenticate_request(request, "createSmsCampaign", sms_campaigns=True)
        return await create_campaign(request, workspace, operation="createSmsCampaign", channel_from_body=False)
