"""/manage/agents."""

from __future__ import annotations

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach.http import read_agent_update, read_new_agent, write_agent
from outreach_server.context import server_of
from outreach_server.endpoints.manage.common import ACTOR, admit, list_response, path_id, read_body
from outreach_server.replies import answer_once, json_response


class Agents(HTTPEndpoint):
    """List and create agents."""

    async def get(self, request: Request) -> Response:
        """Return all agents, oldest first."""
        workspace = await admit(request, "listAgents")
        return await list_response(server_of(request).engine.agents.iter_all(workspace.id), write_agent)

    async def post(self, request: Request) -> Response:
        """Create an agent."""
        workspace = await admit(request, "createAgent")
        new, body = await read_body(request, read_new_agent)
        agents = server_of(request).engine.agents
        return await answer_once(
            body,
            "createAgent",
            lambda key: agents.create(workspace.id, new, idempotency_key=key, actor=ACTOR),
            write_agent,
        )


class OneAgent(HTTPEndpoint):
    """Show and change an agent."""

    async def get(self, request: Request) -> Response:
        """Return an agent."""
        workspace = await admit(request, "getAgent")
        agent = await server_of(request).engine.agents.get(workspace.id, path_id(request, "agent"))
        return json_response(write_agent(agent))

    async def patch(self, request: Request) -> Response:
        """Change the given fields of an agent."""
        workspace = await admit(request, "updateAgent")
        agent_id = path_id(request, "agent")
        change, _ = await read_body(request, read_agent_update)
        agent = await server_of(request).engine.agents.update(workspace.id, agent_id, change, actor=ACTOR)
        return json_response(write_agent(agent))
