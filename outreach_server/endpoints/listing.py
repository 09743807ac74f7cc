"""What GET /sms-campaigns and GET /campaigns share."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from outreach import Workspace
from outreach.models import Channel
from outreach_server.bodies.query import read_list_query
from outreach_server.context import server_of
from outreach_server.replies import JSON


async def list_campaigns(request: Request, workspace: Workspace, *, channel: Channel | None) -> Response:
    """Return a page of campaigns, of one channel or of both.

    Raises:
        InvalidRequest: A query parameter is invalid.
    """
    query = read_list_query(request.scope["query_string"])
    found = await server_of(request).engine.http.list_campaigns(
        workspace.id,
        channel=channel,
        status=query.status,
        search=query.search,
        page=query.page,
        page_size=query.page_size,
    )
    body = b'{"data":%b,"pagination":{"page":%b,"page_size":%d,"total":%d}}' % (
        found.items,
        query.page_echo,
        found.page_size,
        found.total,
    )
    return Response(body, media_type=JSON)
