"""What GET /sms-campaigns and GET /campaigns share."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from outreach import Channel, Workspace, write_campaign
from outreach_server.context import server_of
from outreach_server.query import read_list_query
from outreach_server.replies import json_response


async def list_campaigns(request: Request, workspace: Workspace, *, channel: Channel | None) -> Response:
    """Answer with a page of campaigns, of one channel or of both.

    Raises:
        InvalidRequest: A query parameter is wrong.
    """
    engine = server_of(request).engine
    query = read_list_query(request)
    found = await engine.campaigns.list(
        workspace.id,
        channel=channel,
        status=query.status,
        search=query.search,
        page=query.page,
        page_size=query.page_size,
    )
    now = engine.now()
    return json_response(
        {
            "data": [write_campaign(campaign, now=now) for campaign in found.items],
            "pagination": {"page": query.page_echo, "page_size": found.page_size, "total": found.total},
        }
    )
