"""/manage/sms, /manage/calls and /manage/inbound: single messages, calls, and what people wrote back."""

from __future__ import annotations

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach.http import write_call, write_inbound_message, write_sms
from outreach_server.auth import authenticate_request
from outreach_server.bodies.strict_query import flag, identifier, words
from outreach_server.context import server_of
from outreach_server.endpoints.manage.common import admit, page_response, path_id, read_page
from outreach_server.replies import json_response


class OneSms(HTTPEndpoint):
    """Show a single message."""

    async def get(self, request: Request) -> Response:
        """Return a message of `POST /sms`, or one of the engine's answers to a keyword."""
        workspace = await admit(request, "getSms")
        messages = server_of(request).engine.messages
        message = await messages.get(workspace.id, path_id(request, "message"))
        return json_response(write_sms(message, await messages.failure(message)))


class ManagedCalls(HTTPEndpoint):
    """List calls."""

    async def get(self, request: Request) -> Response:
        """Return a page of calls, newest first, of one campaign or of all."""
        workspace = await authenticate_request(request, "listCalls")
        query = read_page(request, campaign_id=identifier, after=words)
        found = await server_of(request).engine.calls.list(workspace.id, **query)
        return page_response(found, write_call)


class InboundMessages(HTTPEndpoint):
    """List what people wrote back."""

    async def get(self, request: Request) -> Response:
        """Return a page of inbound messages, newest first."""
        workspace = await authenticate_request(request, "listInbound")
        query = read_page(request, unclear=flag, after=words)
        found = await server_of(request).engine.messages.list_inbound(workspace.id, **query)
        return page_response(found, write_inbound_message)


class OneInboundMessage(HTTPEndpoint):
    """Show what somebody wrote back."""

    async def get(self, request: Request) -> Response:
        """Return an inbound message."""
        workspace = await admit(request, "getInbound")
        messages = server_of(request).engine.messages
        return json_response(
            write_inbound_message(await messages.get_inbound(workspace.id, path_id(request, "inbound message")))
        )
