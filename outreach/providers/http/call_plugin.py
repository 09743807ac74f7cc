"""Calls the code of plug-ins, such as adapters and dispatchers, so that their errors end only that call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Aborted(Exception):
    """A plug-in raised an error that would have ended more than its own call."""


async def call_plugin(answer: Awaitable[T]) -> T:
    """Await a plug-in's coroutine and return its result.

    An error that is no `Exception` becomes `Aborted`:

    - a cancellation that the engine did not request, such as that of a task which an adapter's requests share. A task
      group would take it for its own, and cancel the requests of other workspaces;
    - a `GeneratorExit` of the plug-in's own coroutine, while the caller's goes on;
    - a `SystemExit`, which would end the process for all workspaces.

    `KeyboardInterrupt` is raised unchanged, because a person pressed Ctrl-C.

    Raises:
        Aborted: The plug-in raised an error that is no `Exception`.
    """
    task = asyncio.current_task()
    try:
        return await answer
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        if isinstance(error, GeneratorExit) and _current_task() is not task:
            # This coroutine itself is closed: its task is gone.
            raise
        raise _aborted(error) from error


def call_plugin_function(function: Callable[..., T], *args: Any) -> T:
    """Call a plug-in's function and return its result.

    Raises:
        Aborted: The function raised an error that is no `Exception`.
    """
    try:
        return function(*args)
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise _aborted(error) from error


def _aborted(error: BaseException) -> Aborted:
    return Aborted(f"It raised {type(error).__name__}, although it had not been cancelled.")


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
