"""/sms."""

from __future__ import annotations

from functools import partial

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach.http import read_new_message, write_message
from outreach_server.auth import authenticate_request
from outreach_server.bodies.body import read_model, read_small_body
from outreach_server.context import server_of
from outreach_server.replies import answer_once


class Messages(HTTPEndpoint):
    """Send single messages (docs/interface.md#post-sms)."""

    async def post(self, request: Request) -> Response:
        """Queue a message, which has no footer."""
        workspace = await authenticate_request(request, "sendSms")
        body = await read_small_body(request)
        new = await read_model(body, partial(read_new_message, carriers=server_of(request).carriers))
        messages = server_of(request).engine.messages
        return await answer_once(
            body, "sendSms", lambda key: messages.send(workspace.id, new, idempotency_key=key), write_message
        )
