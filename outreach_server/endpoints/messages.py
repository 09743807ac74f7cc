"""/sms."""

from __future__ import annotations

from functools import partial

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach import Message
from outreach.http import StoredAnswer, read_new_message, write_message
from outreach_server.auth import authenticate_request
from outreach_server.body import read_small_body
from outreach_server.context import server_of
from outreach_server.idempotency import idempotency_key, keyed_request
from outreach_server.parsing import read_model
from outreach_server.replies import answer_of, created_response


class Messages(HTTPEndpoint):
    """Send single messages (docs/interface.md#post-sms)."""

    async def post(self, request: Request) -> Response:
        """Queue a message, which has no footer."""
        workspace = await authenticate_request(request, "sendSms")
        idempotency_key(request)
        body = await read_small_body(request)
        new = await read_model(body, partial(read_new_message, carriers=server_of(request).carriers))
        http = server_of(request).engine.http

        def render(message: Message) -> StoredAnswer:
            return answer_of(write_message(message))

        keyed = keyed_request(request, "sendSms", digest=body.digest)
        return created_response(await http.send_message(workspace.id, new, request=keyed, render=render))
