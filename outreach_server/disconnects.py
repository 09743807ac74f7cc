"""Work that ends when its client goes."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

import anyio
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive

T = TypeVar("T")


async def cancel_without_client(receive: Receive, scope: anyio.CancelScope) -> None:
    """Wait until a client has gone, and cancel a scope; the body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def while_client_waits(request: Request, work: Awaitable[T]) -> T:
    """Return the result of work that changes nothing, and is cancelled when the client goes.

    Raises:
        ClientDisconnect: It has gone.
    """
    result: list[T] = []
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cancel_without_client, request.receive, tasks.cancel_scope)
        try:
            result.append(await work)
        except Exception as error:
            # Raised below, as it is: the group would wrap it.
            failure = error
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
    if not result:
        raise ClientDisconnect
    return result[0]
