"""/manage/unsubscribes, the register of numbers that must not be contacted, unreachable numbers, and erasures."""

from __future__ import annotations

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import Response

from outreach import InvalidRequest, NotFound
from outreach.http import (
    document_of,
    read_decision,
    read_erasure,
    read_new_unsubscribes,
    to_json,
    write_unsubscribe,
)
from outreach_server.auth import authenticate_request
from outreach_server.bodies.query import read_query, words
from outreach_server.context import server_of
from outreach_server.endpoints.manage.common import (
    ACTOR,
    admit,
    number_of_path,
    page_response,
    path_id,
    read_body,
    read_page,
    refuse_body,
)
from outreach_server.errors import answer_once, json_response


class Unsubscribes(HTTPEndpoint):
    """List the register and add to it."""

    async def get(self, request: Request) -> Response:
        """Return a page of the register, by number."""
        workspace = await authenticate_request(request, "listUnsubscribes")
        found = await server_of(request).engine.unsubscribes.list(workspace.id, **read_page(request, after=words))
        return page_response(found, write_unsubscribe)

    async def post(self, request: Request) -> Response:
        """Unsubscribe numbers, with immediate effect."""
        workspace = await admit(request, "addUnsubscribes")
        new, body = await read_body(request, read_new_unsubscribes)
        unsubscribes = server_of(request).engine.unsubscribes
        return await answer_once(
            body,
            "addUnsubscribes",
            lambda key: unsubscribes.add(
                workspace.id,
                *new.phone_numbers,
                scope=new.scope,
                evidence=new.evidence,
                idempotency_key=key,
                actor=ACTOR,
            ),
            lambda entries: {"data": [write_unsubscribe(one) for one in entries]},
        )


class OneUnsubscribe(HTTPEndpoint):
    """Look a number up, and take it off the register."""

    async def get(self, request: Request) -> Response:
        """Return the entry of a number."""
        workspace = await admit(request, "getUnsubscribe")
        unsubscribes = server_of(request).engine.unsubscribes
        return json_response(write_unsubscribe(await unsubscribes.get(workspace.id, _phone(request))))

    async def delete(self, request: Request) -> Response:
        """Take a number off the register, and return the entry that it had."""
        workspace = await authenticate_request(request, "removeUnsubscribe")
        # The engine has the rule of its length.
        evidence = read_query(request, evidence=str).get("evidence")
        await refuse_body(request)
        unsubscribes = server_of(request).engine.unsubscribes
        entry = await unsubscribes.get(workspace.id, _phone(request))
        if not await unsubscribes.remove(workspace.id, entry.phone, evidence=evidence, actor=ACTOR):
            # Another request was faster.
            raise NotFound("number on the register", entry.phone)
        return json_response(write_unsubscribe(entry))


class ResolveUnsubscribe(HTTPEndpoint):
    """Decide on a held number."""

    async def post(self, request: Request) -> Response:
        """Decide whether the message of a held number was an opt-out."""
        workspace = await admit(request, "resolveUnsubscribe")
        opted_out, body = await read_body(request, read_decision)
        unsubscribes, phone = server_of(request).engine.unsubscribes, _phone(request)
        return await answer_once(
            body,
            "resolveUnsubscribe",
            lambda key: unsubscribes.resolve(
                workspace.id, phone, opted_out=opted_out, idempotency_key=key, actor=ACTOR
            ),
            write_unsubscribe,
            status=200,
        )


class UnreachableNumbers(HTTPEndpoint):
    """List the numbers that providers have reported as unreachable."""

    async def get(self, request: Request) -> Response:
        """Return a page of them, by number."""
        workspace = await authenticate_request(request, "listUnreachableNumbers")
        numbers = server_of(request).engine.unreachable_numbers
        found = await numbers.list(workspace.id, **read_page(request, after=words))
        return page_response(found, lambda one: document_of(one, "workspace_id"))


class OneUnreachableNumber(HTTPEndpoint):
    """Take a number off the unreachable ones."""

    async def delete(self, request: Request) -> Response:
        """Take a number off, so that later campaigns contact it."""
        workspace = await admit(request, "removeUnreachableNumber")
        await refuse_body(request)
        phone = path_id(request, "unreachable number", "phone")
        with number_of_path("unreachable number", phone):
            removed = await server_of(request).engine.unreachable_numbers.remove(workspace.id, phone, actor=ACTOR)
        if not removed:
            raise NotFound("unreachable number", phone)
        return json_response({"phone": phone})


class Erasures(HTTPEndpoint):
    """Erase people."""

    async def put(self, request: Request) -> Response:
        """Erase one person from the workspace, and return what was found."""
        workspace = await admit(request, "erasePerson")
        # No POST: an idempotency key would keep a hash of the number, and a repetition finds nothing.
        phone, _ = await read_body(request, read_erasure)
        try:
            erased = await server_of(request).engine.erasure.purge(workspace.id, phone, actor=ACTOR)
        except InvalidRequest as error:
            raise InvalidRequest.at("phone_number", error.details[0].message) from None
        return json_response(to_json(erased))


def _phone(request: Request) -> str:
    return path_id(request, "number on the register", "phone")
