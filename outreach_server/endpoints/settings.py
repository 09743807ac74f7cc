"""/sms/settings."""

from __future__ import annotations

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach.http import read_sms_settings_update, write_sms_settings
from outreach_server.auth import authenticate_request
from outreach_server.bodies.body import read_model, read_small_body
from outreach_server.context import server_of
from outreach_server.replies import json_response


class SmsSettings(HTTPEndpoint):
    """Change the SMS settings (docs/interface.md#4.4)."""

    async def patch(self, request: Request) -> Response:
        """Change the given settings, and return all."""
        workspace = await authenticate_request(request, "updateSmsSettings")
        change = await read_model(await read_small_body(request), read_sms_settings_update)
        return json_response(
            write_sms_settings(await server_of(request).engine.sms_settings.update(workspace.id, change, actor="api"))
        )
