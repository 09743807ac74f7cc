"""/manage/schedules/{id}/… and /manage/schedule-previews: the runs of schedules, and what is done with them."""

from __future__ import annotations

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach.http import SCHEDULE_BODIES, document_of, write_occurrence
from outreach_server.auth import authenticate_request
from outreach_server.bodies.query import words
from outreach_server.context import server_of
from outreach_server.endpoints.manage.common import (
    admit,
    page_response,
    path_id,
    read_body,
    read_page,
)
from outreach_server.errors import json_response


class NextRuns(HTTPEndpoint):
    """The coming runs of a schedule."""

    async def get(self, request: Request) -> Response:
        """Return the next five."""
        workspace = await admit(request, "listNextRuns")
        runs = await server_of(request).engine.schedules.next_runs(workspace.id, path_id(request, "schedule"))
        return json_response({"data": [document_of(one) for one in runs]})


class Occurrences(HTTPEndpoint):
    """The runs of a schedule, with their results."""

    async def get(self, request: Request) -> Response:
        """Return a page, the latest first."""
        workspace = await authenticate_request(request, "listOccurrences")
        schedules, schedule_id = server_of(request).engine.schedules, path_id(request, "schedule")
        page = await schedules.list_occurrences(workspace.id, schedule_id, **read_page(request, after=words))
        return page_response(page, write_occurrence)


class SchedulePreviews(HTTPEndpoint):
    """The first runs that a schedule would have."""

    async def post(self, request: Request) -> Response:
        """Return the first five; nothing is created."""
        workspace = await admit(request, "previewSchedule")
        new, _ = await read_body(request, SCHEDULE_BODIES.read_new)
        runs = await server_of(request).engine.schedules.preview(workspace.id, new)
        return json_response({"data": [document_of(one) for one in runs]})
