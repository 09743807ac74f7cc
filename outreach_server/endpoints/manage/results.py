"""/manage/campaigns/{id}/report and export: what became of a campaign, and of each of its contacts."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Final, cast

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from outreach.http import EXPORT_CONTENT_TYPES, write_campaign_report
from outreach.integrations.report_page import render_report_page
from outreach_server.auth import authenticate_request
from outreach_server.bodies.query import one_of, read_query
from outreach_server.context import server_of
from outreach_server.download import DownloadResponse, made_in_turn, prefers
from outreach_server.endpoints.manage.common import ACTOR, path_id
from outreach_server.errors import json_response

_HTML: Final = "text/html"
_PAGE_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
"""The page has styles of its own, loads nothing and runs nothing."""


class CampaignReport(HTTPEndpoint):
    """Report on a campaign."""

    async def get(self, request: Request) -> Response:
        """Return the report as JSON, or as a page for a client that prefers one or asks for it."""
        workspace = await authenticate_request(request, "reportCampaign")
        query = read_query(request, format=one_of("json", "html"))
        made = await server_of(request).engine.campaigns.report(workspace.id, path_id(request, "campaign"))
        if query.get("format", "html" if prefers(request, _HTML) else "json") == "html":
            return HTMLResponse(render_report_page(made), headers={**_PAGE_HEADERS, "Vary": "Accept"})
        return json_response(write_campaign_report(made), headers={"Vary": "Accept"})


class CampaignExport(HTTPEndpoint):
    """Export a campaign's contacts."""

    async def get(self, request: Request) -> Response:
        """Stream a file with a row a contact."""
        workspace = await authenticate_request(request, "exportCampaign")
        query = read_query(request, format=one_of(*EXPORT_CONTENT_TYPES))
        kind: Any = query.get("format", "csv")
        server = server_of(request)
        campaigns = server.engine.campaigns
        campaign = await campaigns.get(workspace.id, path_id(request, "campaign"))
        # It is a generator, which the service does not promise; closing it closes its file.
        parts = cast("AsyncGenerator[bytes]", campaigns.export(workspace.id, campaign.id, kind, actor=ACTOR))
        return DownloadResponse(
            made_in_turn(parts, server.workbooks, workspace.id) if kind == "xlsx" else parts,
            name=f"campaign-{campaign.id}.{kind}",
            content_type=EXPORT_CONTENT_TYPES[kind],
            only_headers=request.method == "HEAD",
        )
