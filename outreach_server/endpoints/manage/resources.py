"""/manage/agents, /manage/numbers and /manage/flows: what a workspace's owner sets up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

import attrs
from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from outreach import AgentUpdate, NewAgent, Outreach
from outreach.http import FLOW_BODIES, ResourceBodies, number_bodies, resource_bodies
from outreach_server.context import Server, server_of
from outreach_server.endpoints.manage.common import ACTOR, admit, list_response, path_id, read_body, refuse_body
from outreach_server.replies import answer_once, json_response


@attrs.frozen(kw_only=True)
class Managed:
    """A resource under /manage.

    Attributes:
        noun: What one of them is called in paths, operations and errors.
        service: Returns its service.
        bodies: Returns how its bodies are read and written.
        create: The word for `create` in the name of the operation.
        removable: Whether there is an operation that removes one.
    """

    noun: str
    service: Callable[[Outreach], Any]
    bodies: Callable[[Server], ResourceBodies[Any, Any]]
    create: str = "create"
    removable: bool = True

    def operation(self, verb: str, *, plural: bool = False) -> str:
        """Return the `operationId` of an operation, such as `listAgents`."""
        return f"{verb}{self.noun.capitalize()}{'s' if plural else ''}"

    def routes(self) -> Sequence[Route]:
        """Return the routes of the list and of one resource."""
        path, name = f"/manage/{self.noun}s", self.noun.capitalize()
        one = RemovableResource if self.removable else OneResource
        # Metrics know an operation by the name of its endpoint.
        return (
            Route(path, type(f"{name}s", (Resources,), {"managed": self})),
            Route(f"{path}/{{id}}", type(f"One{name}", (one,), {"managed": self})),
        )


class ResourceEndpoint(HTTPEndpoint):
    """A path of a resource."""

    managed: ClassVar[Managed]

    def service(self, request: Request) -> Any:
        """Return the resource's service."""
        return self.managed.service(server_of(request).engine)

    def bodies(self, request: Request) -> ResourceBodies[Any, Any]:
        """Return how the resource's bodies are read and written."""
        return self.managed.bodies(server_of(request))


class Resources(ResourceEndpoint):
    """List and create the resources of a kind."""

    async def get(self, request: Request) -> Response:
        """Return all of them, oldest first."""
        workspace = await admit(request, self.managed.operation("list", plural=True))
        return await list_response(self.service(request).iter_all(workspace.id), self.bodies(request).write)

    async def post(self, request: Request) -> Response:
        """Create one."""
        operation = self.managed.operation(self.managed.create)
        workspace = await admit(request, operation)
        service, bodies = self.service(request), self.bodies(request)
        new, body = await read_body(request, bodies.read_new)
        return await answer_once(
            body,
            operation,
            lambda key: service.create(workspace.id, new, idempotency_key=key, actor=ACTOR),
            bodies.write,
        )


class OneResource(ResourceEndpoint):
    """Show and change one resource."""

    async def get(self, request: Request) -> Response:
        """Return it."""
        workspace = await admit(request, self.managed.operation("get"))
        found = await self.service(request).get(workspace.id, path_id(request, self.managed.noun))
        return json_response(self.bodies(request).write(found))

    async def patch(self, request: Request) -> Response:
        """Change the given fields, and return it."""
        workspace = await admit(request, self.managed.operation("update"))
        identifier = path_id(request, self.managed.noun)
        change, _ = await read_body(request, self.bodies(request).read_update)
        changed = await self.service(request).update(workspace.id, identifier, change, actor=ACTOR)
        return json_response(self.bodies(request).write(changed))


class RemovableResource(OneResource):
    """Show, change and remove one resource."""

    async def delete(self, request: Request) -> Response:
        """Remove it unless it is in use, and return it."""
        workspace = await admit(request, self.managed.operation("remove"))
        await refuse_body(request)
        gone = await self.service(request).remove(workspace.id, path_id(request, self.managed.noun), actor=ACTOR)
        return json_response(self.bodies(request).write(gone))


_AGENT_BODIES: Final = resource_bodies(NewAgent, AgentUpdate, "an agent")

MANAGED: Final = (
    Managed(noun="agent", service=lambda engine: engine.agents, bodies=lambda _: _AGENT_BODIES, removable=False),
    Managed(
        noun="number",
        service=lambda engine: engine.numbers,
        bodies=lambda server: number_bodies(tuple(server.carriers)),
        create="add",
    ),
    Managed(noun="flow", service=lambda engine: engine.flows, bodies=lambda _: FLOW_BODIES),
)
"""The resources that have operations under /manage."""
