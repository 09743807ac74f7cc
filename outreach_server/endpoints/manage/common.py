"""Shared parts of the operations under /manage."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import attrs
from starlette.requests import Request
from starlette.responses import Response

from outreach import InvalidRequest, NotFound, Page, Workspace
from outreach_server.auth import authenticate_request
from outreach_server.bodies.body import Body, read_model, read_small_body
from outreach_server.bodies.query import DEFAULT_LIMIT, Rule, limit, read_query
from outreach_server.errors import json_response

ACTOR: Final = "api"

T = TypeVar("T")


async def admit(request: Request, operation: str) -> Workspace:
    """Return the workspace of a request that takes no query parameter.

    Raises:
        OutreachError: The request is refused.
    """
    workspace = await authenticate_request(request, operation)
    read_query(request)
    return workspace


def path_id(request: Request, kind: str, name: str = "id") -> str:
    """Return an identifier of the path.

    Raises:
        NotFound: It holds characters that no identifier has, and some databases refuse.
    """
    given: str = request.path_params[name]
    if not given.isprintable():
        raise NotFound(kind, given)
    # A UUID is case-insensitive.
    return given.lower()


@contextmanager
def number_of_path(kind: str, phone: str) -> Iterator[None]:
    """Answer a text in the path that is no phone number as what is not there.

    Raises:
        NotFound: It is no number.
    """
    try:
        yield
    except InvalidRequest as error:
        if error.details[0].path != "phone":
            raise
        raise NotFound(kind, phone) from None


async def read_body(request: Request, read: Callable[[Any], T]) -> tuple[T, Body]:
    """Return the model of a body, and the body.

    Raises:
        InvalidRequest: The body breaks a rule.
    """
    body = await _read_body(request)
    return await read_model(body, read), body


async def read_optional_body(request: Request, read: Callable[[Any], T], default: T) -> tuple[T, Body]:
    """Return the model of a body, or a default where there is none, and the body.

    Raises:
        InvalidRequest: The body breaks a rule.
    """
    body = await _read_body(request)
    return (default if not body.raw else await read_model(body, read)), body


async def refuse_body(request: Request) -> Body:
    """Return the empty body of an operation that takes none.

    Raises:
        InvalidRequest: There is one.
    """
    body = await _read_body(request)
    if body.raw:
        raise InvalidRequest.at("", "This operation takes no body.")
    return body


async def _read_body(request: Request) -> Body:
    """Return a body whose key counts for the path too."""
    return for_path(request, await read_small_body(request))


def for_path(request: Request, body: Body) -> Body:
    """Return a body whose key counts for the path too."""
    content = hashlib.sha256(f"{request.path_params}\n{body.digest}".encode()).hexdigest()
    return attrs.evolve(body, digest=content)


def read_page(request: Request, **rules: Rule) -> Mapping[str, Any]:
    """Return the parameters of a list by name, with how many items it may have as `limit`.

    Raises:
        InvalidRequest: A parameter is unknown, repeated or invalid.
    """
    return {"limit": DEFAULT_LIMIT, **read_query(request, limit=limit, **rules)}


def page_response(page: Page[T], write: Callable[[T], Any]) -> Response:
    """Return a page of a list; `write` returns an item's JSON."""
    return json_response({"data": [write(one) for one in page], "next": page.next})


async def list_response(items: AsyncIterator[T], write: Callable[[T], Any]) -> Response:
    """Return a whole list; `write` returns an item's JSON."""
    return json_response({"data": [write(one) async for one in items]})
