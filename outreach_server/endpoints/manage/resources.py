"""/manage/agents, /manage/numbers and others: the resources whose definitions say that they are managed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, Final

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from outreach.http import (
    FLOW_BODIES,
    SCHEDULE_BODIES,
    WEBHOOK_BODIES,
    ResourceBodies,
    number_bodies,
    resource_bodies,
    to_json,
)
from outreach.server_support import RESOURCE_SERVICES
from outreach_server.context import Server, server_of
from outreach_server.endpoints.manage.common import ACTOR, admit, list_response, path_id, read_body, refuse_body
from outreach_server.errors import answer_once, json_response

_BODIES: Final[Mapping[str, Callable[[Server], ResourceBodies[Any, Any]]]] = {
    "numbers": lambda server: number_bodies(tuple(server.carriers)),
    "flows": lambda _: FLOW_BODIES,
    "schedules": lambda _: SCHEDULE_BODIES,
    "webhooks": lambda _: WEBHOOK_BODIES,
}
"""The bodies that hold more than the fields of the models."""


def resource_operation(definition: Any, method: str) -> str:
    """Return the `operationId` of a method of a resource, such as `listAgents`."""
    verb = definition.created if method == "create" else method
    return f"{verb}{definition.kind.noun.capitalize()}{'s' if method == 'list' else ''}"


@cache
def _plain_bodies(name: str) -> ResourceBodies[Any, Any]:
    definition = RESOURCE_SERVICES[name]
    return resource_bodies(definition.new, definition.change, definition.called)


class ResourceEndpoint(HTTPEndpoint):
    """A path of a resource.

    Attributes:
        name: The engine's attribute, and the path under /manage.
    """

    name: ClassVar[str]

    def operation(self, method: str) -> str:
        """Return the `operationId` of a method."""
        return resource_operation(RESOURCE_SERVICES[self.name], method)

    def service(self, request: Request) -> Any:
        """Return the resource's service."""
        return getattr(server_of(request).engine, self.name)

    def bodies(self, request: Request) -> ResourceBodies[Any, Any]:
        """Return how the resource's bodies are read and written."""
        return _BODIES[self.name](server_of(request)) if self.name in _BODIES else _plain_bodies(self.name)

    def id(self, request: Request) -> str:
        """Return the identifier in the path."""
        return path_id(request, RESOURCE_SERVICES[self.name].kind.noun)


async def _list(self: ResourceEndpoint, request: Request) -> Response:
    workspace = await admit(request, self.operation("list"))
    return await list_response(self.service(request).iter_all(workspace.id), self.bodies(request).write)


async def _create(self: ResourceEndpoint, request: Request) -> Response:
    operation = self.operation("create")
    workspace = await admit(request, operation)
    service, bodies = self.service(request), self.bodies(request)
    new, body = await read_body(request, bodies.read_new)
    return await answer_once(
        body,
        operation,
        lambda key: service.create(workspace.id, new, idempotency_key=key, actor=ACTOR),
        bodies.write,
        kept=bodies.repeated,
    )


async def _get(self: ResourceEndpoint, request: Request) -> Response:
    workspace = await admit(request, self.operation("get"))
    found = await self.service(request).get(workspace.id, self.id(request))
    return json_response(self.bodies(request).write(found))


async def _update(self: ResourceEndpoint, request: Request) -> Response:
    workspace = await admit(request, self.operation("update"))
    identifier = self.id(request)
    change, _ = await read_body(request, self.bodies(request).read_update)
    changed = await self.service(request).update(workspace.id, identifier, change, actor=ACTOR)
    return json_response(self.bodies(request).write(changed))


async def _remove(self: ResourceEndpoint, request: Request) -> Response:
    workspace = await admit(request, self.operation("remove"))
    await refuse_body(request)
    gone = await self.service(request).remove(workspace.id, self.id(request), actor=ACTOR)
    return json_response(self.bodies(request).write(gone))


class FlowContacts(HTTPEndpoint):
    """Count the contacts at the steps of a flow."""

    async def get(self, request: Request) -> Response:
        """Return how many contacts of campaigns that have not ended are at each step."""
        workspace = await admit(request, "countFlowContacts")
        counts = await server_of(request).engine.flows.count_contacts(workspace.id, path_id(request, "flow"))
        return json_response({"data": [to_json(one) for one in counts]})


Handler = Callable[[ResourceEndpoint, Request], Awaitable[Response]]

_OF_ALL: Final[Mapping[str, tuple[str, Handler]]] = {"list": ("get", _list), "create": ("post", _create)}
_OF_ONE: Final[Mapping[str, tuple[str, Handler]]] = {
    "get": ("get", _get),
    "update": ("patch", _update),
    "remove": ("delete", _remove),
}
"""The HTTP method of each method of the service."""


def resource_routes() -> Sequence[Route]:
    """Return the routes of all resources that are managed."""
    found = []
    for name, definition in RESOURCE_SERVICES.items():
        # Metrics know an operation by the name of its endpoint.
        noun = definition.kind.noun.capitalize()
        for path, endpoint, handlers in (
            (f"/manage/{name}", f"{noun}s", _OF_ALL),
            (f"/manage/{name}/{{id}}", f"One{noun}", _OF_ONE),
        ):
            methods = dict(handlers[method] for method in definition.managed if method in handlers)
            if methods:
                found.append(Route(path, type(endpoint, (ResourceEndpoint,), {"name": name, **methods})))
    return found
