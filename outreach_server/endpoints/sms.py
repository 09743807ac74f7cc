"""/sms and /sms/settings."""

from __future__ import annotations

from functools import partial

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach.http import read_new_message, read_sms_settings_update, write_message, write_sms_settings
from outreach_server.auth import authenticate_request
from outreach_server.bodies.body import read_model, read_small_body
from outreach_server.context import server_of
from outreach_server.errors import answer_once, json_response


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


class SmsSettings(HTTPEndpoint):
    """Change the SMS settings (docs/interface.md#4.4)."""

    async def patch(self, request: Request) -> Response:
        """Change the given settings, and return all."""
        workspace = await authenticate_request(request, "updateSmsSettings")
        change = await read_model(await read_small_body(request), read_sms_settings_update)
        return json_response(
            write_sms_settings(await server_of(request).engine.sms_settings.update(workspace.id, change, actor="api"))
        )
