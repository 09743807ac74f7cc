"""Doing two things at the same time, of which neither goes on without the other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import anyio.lowlevel

A = TypeVar("A")
B = TypeVar("B")


async def run_concurrently(aside: Callable[[], Awaitable[A]], here: Callable[[], Awaitable[B]]) -> tuple[A, B]:
    """Run two functions at the same time; return what both return.

    Args:
        aside: Runs in a task of its own.
        here: Runs in the caller's task, so that it may go on with what has to stay in one. The other has begun
            then: this one may stand still in a read, and a Ctrl-C may break into it.

    Raises:
        Exception: What the first of them that fails raises, as it is; the other is cancelled.
        KeyboardInterrupt: The same.
    """
    done: list[A] = []
    found: list[B] = []
    failed: list[BaseException] = []

    async def run() -> None:
        try:
            done.append(await aside())
        except Exception as error:
            failed.append(error)
            group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        try:
            await anyio.lowlevel.checkpoint()
            found.append(await here())
        except (Exception, KeyboardInterrupt) as error:
            failed.append(error)
            group.cancel_scope.cancel()
    if failed:
        raise failed[0]
    return done[0], found[0]
