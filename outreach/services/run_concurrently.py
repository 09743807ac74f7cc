"""Runs two functions at the same time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import anyio.lowlevel

A = TypeVar("A")
B = TypeVar("B")


async def run_concurrently(aside: Callable[[], Awaitable[A]], here: Callable[[], Awaitable[B]]) -> tuple[A, B]:
    """Run two functions at the same time; return both results.

    Args:
        aside: Runs in its own task, started first.
        here: Runs in the caller's task; it may block in a read, and Ctrl-C may interrupt it.

    Raises:
        Exception: The first error of either, unwrapped; the other function is cancelled.
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
