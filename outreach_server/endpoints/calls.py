"""/calls and /calls/{id}."""

from __future__ import annotations

from urllib.parse import quote

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach import NotFound
from outreach.http import read_new_call, write_call, write_call_created
from outreach_server.auth import authenticate_request
from outreach_server.bodies.body import read_model, read_small_body
from outreach_server.context import server_of
from outreach_server.errors import answer_once, json_response


class Calls(HTTPEndpoint):
    """Place calls (docs/interface.md#4.1)."""

    async def post(self, request: Request) -> Response:
        """Queue a call, and wait briefly for the provider to accept it."""
        workspace = await authenticate_request(request, "createCall")
        body = await read_small_body(request)
        new = await read_model(body, read_new_call)
        calls = server_of(request).engine.calls
        # Any text where a host mounts it under a part of the path that its clients choose.
        mounted_at = quote(request.scope.get("root_path", ""))
        return await answer_once(
            body,
            "createCall",
            lambda key: calls.create(workspace.id, new, idempotency_key=key),
            write_call_created,
            location=lambda call: f"{mounted_at}/calls/{call.id}",
        )


class OneCall(HTTPEndpoint):
    """Show a call."""

    async def get(self, request: Request) -> Response:
        """Return a call record, by our id or by the provider's."""
        workspace = await authenticate_request(request, "getCall")
        identifier: str = request.path_params["id"]
        if not identifier.isprintable():
            # No id has such characters, and some databases refuse them.
            raise NotFound("call", identifier)
        return json_response(write_call(await server_of(request).engine.calls.get(workspace.id, identifier)))
