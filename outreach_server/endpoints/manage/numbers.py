"""/manage/numbers."""

from __future__ import annotations

from functools import partial

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach.http import read_new_number, read_number_update, write_number
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


class Numbers(HTTPEndpoint):
    """List and add numbers."""

    async def get(self, request: Request) -> Response:
        """Return all numbers, oldest first."""
        workspace = await admit(request, "listNumbers")
        return await list_response(server_of(request).engine.numbers.iter_all(workspace.id), write_number)

    async def post(self, request: Request) -> Response:
        """Add a number."""
        workspace = await admit(request, "addNumber")
        server = server_of(request)
        new, body = await read_body(request, partial(read_new_number, carriers=server.carriers))
        numbers = server.engine.numbers
        return await answer_once(
            body,
            "addNumber",
            lambda key: numbers.create(workspace.id, new, idempotency_key=key, actor=ACTOR),
            write_number,
        )


class OneNumber(HTTPEndpoint):
    """Show, change and remove a number."""

    async def get(self, request: Request) -> Response:
        """Return a number."""
        workspace = await admit(request, "getNumber")
        number = await server_of(request).engine.numbers.get(workspace.id, path_id(request, "number"))
        return json_response(write_number(number))

    async def patch(self, request: Request) -> Response:
        """Change the given fields of a number."""
        workspace = await admit(request, "updateNumber")
        server = server_of(request)
        number_id = path_id(request, "number")
        change, _ = await read_body(request, partial(read_number_update, carriers=server.carriers))
        number = await server.engine.numbers.update(workspace.id, number_id, change, actor=ACTOR)
        return json_response(write_number(number))

    async def delete(self, request: Request) -> Response:
        """Remove a number that nothing uses, and return it."""
        workspace = await admit(request, "removeNumber")
        await refuse_body(request)
        numbers = server_of(request).engine.numbers
        return json_response(write_number(await numbers.remove(workspace.id, path_id(request, "number"), actor=ACTOR)))
