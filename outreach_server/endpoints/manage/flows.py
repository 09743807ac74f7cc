"""/manage/flows."""

from __future__ import annotations

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach.http import read_flow_update, read_new_flow, write_flow
from outreach_server.context import server_of
from outreach_server.endpoints.manage.common import (
    ACTOR,
    admit,
    list_response,
    path_id,
    read_body,
    refuse_body,
)
from outreach_server.replies import answer_once, json_response


class Flows(HTTPEndpoint):
    """List and create flows."""

    async def get(self, request: Request) -> Response:
        """Return all flows, oldest first."""
        workspace = await admit(request, "listFlows")
        return await list_response(server_of(request).engine.flows.iter_all(workspace.id), write_flow)

    async def post(self, request: Request) -> Response:
        """Create a flow."""
        workspace = await admit(request, "createFlow")
        new, body = await read_body(request, read_new_flow)
        flows = server_of(request).engine.flows
        return await answer_once(
            body,
            "createFlow",
            lambda key: flows.create(workspace.id, new, idempotency_key=key, actor=ACTOR),
            write_flow,
        )


class OneFlow(HTTPEndpoint):
    """Show, change and remove a flow."""

    async def get(self, request: Request) -> Response:
        """Return a flow."""
        workspace = await admit(request, "getFlow")
        flow = await server_of(request).engine.flows.get(workspace.id, path_id(request, "flow"))
        return json_response(write_flow(flow))

    async def patch(self, request: Request) -> Response:
        """Change the given fields of a flow."""
        workspace = await admit(request, "updateFlow")
        flow_id = path_id(request, "flow")
        change, _ = await read_body(request, read_flow_update)
        flow = await server_of(request).engine.flows.update(workspace.id, flow_id, change, actor=ACTOR)
        return json_response(write_flow(flow))

    async def delete(self, request: Request) -> Response:
        """Remove a flow that no campaign will run, and return it."""
        workspace = await admit(request, "removeFlow")
        await refuse_body(request)
        flows = server_of(request).engine.flows
        return json_response(write_flow(await flows.remove(workspace.id, path_id(request, "flow"), actor=ACTOR)))
