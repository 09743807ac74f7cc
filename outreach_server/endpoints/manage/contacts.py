"""/manage/contacts: everything with one number."""

from __future__ import annotations

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach.http import write_history_item
from outreach_server.auth import authenticate_request
from outreach_server.bodies.query import words
from outreach_server.context import server_of
from outreach_server.endpoints.manage.common import number_of_path, page_response, path_id, read_page


class ContactHistory(HTTPEndpoint):
    """Show everything with one number."""

    async def get(self, request: Request) -> Response:
        """Return a page of campaigns, messages, calls and opt-outs of a number, newest first."""
        workspace = await authenticate_request(request, "getContactHistory")
        query = read_page(request, after=words)
        phone = path_id(request, "number", "phone")
        with number_of_path("phone number", phone):
            found = await server_of(request).engine.contacts.list_history(workspace.id, phone, **query)
        return page_response(found, write_history_item)
