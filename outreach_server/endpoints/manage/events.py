"""/manage/events: what has happened, by the page or as a stream."""

from __future__ import annotations

from typing import Final

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach import InvalidRequest
from outreach.http import EVENT_TYPES, write_event
from outreach_server.auth import authenticate_request
from outreach_server.bodies.query import one_of, whole
from outreach_server.context import server_of
from outreach_server.endpoints.manage.common import read_page
from outreach_server.errors import json_response
from outreach_server.event_stream import EventStreamResponse, wants_stream

_LAST_EVENT_ID: Final = "Last-Event-ID"
_LAST: Final = 2**53 - 1
_number: Final = whole(0, _LAST)


class Events(HTTPEndpoint):
    """Tell what has happened in a workspace."""

    async def get(self, request: Request) -> Response:
        """Return the events after a number: a page, or a stream that goes on for as long as the client reads."""
        workspace = await authenticate_request(request, "listEvents")
        query = read_page(request, since=_number, type=one_of(*EVENT_TYPES))
        kinds = (EVENT_TYPES[query["type"]],) if "type" in query else ()
        engine = server_of(request).engine
        # A HEAD has an end.
        if request.method == "GET" and wants_stream(request):
            since = _last_event(request, query.get("since"))
            begin = await engine.events.page(*kinds, workspace_id=workspace.id, since=since, limit=1)
            # Checked by this page; the stream reads it again.
            position = begin.position if since is None else since
            return EventStreamResponse(request, "listEvents", workspace.id, kinds, position)
        page = await engine.events.page(
            *kinds, workspace_id=workspace.id, since=query.get("since", 0), limit=query["limit"]
        )
        return json_response(
            {"data": [write_event(event) for event in page.events], "position": page.position, "more": page.more}
        )


def _last_event(request: Request, since: int | None) -> int | None:
    """Return the number after which a stream continues: a reconnecting client's own takes precedence.

    Raises:
        InvalidRequest: The header is no number.
    """
    given = request.headers.getlist(_LAST_EVENT_ID)
    if not given:
        return since
    try:
        [text] = given
        return int(_number(text))
    except ValueError:
        raise InvalidRequest.at(_LAST_EVENT_ID, "must be the number of an event, in digits only, given once") from None
