"""Awaiting and calling the code of others, adapters and dispatchers: what it raises ends nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Aborted(Exception):
    """The code of others raised what would have ended more than what it was asked for."""


async def asked(answer: Awaitable[T]) -> T:
    """Return what the code of others answers.

    A cancellation that nobody has asked for is its error, such as that of a task which an adapter's requests share:
    a task group would take it for its own, and end the requests of all others. So is a `GeneratorExit`, which Python
    raises where a coroutine is closed: here, the one of the caller goes on.
    And a `SystemExit` would end the process, in which other workspaces are at work; `KeyboardInterrupt` is a person's.

    Raises:
        Aborted: It raised such a cancellation, or another error that is no `Exception`.
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


def called(function: Callable[..., T], *args: Any) -> T:
    """Return what a function of others returns.

    Raises:
        Aborted: It raised an error that is no `Exception`.
    """
    try:
        return function(*args)
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise _aborted(error) from error


def _aborted(error: BaseException) -> Aborted:
    return Aborted(f"It raised {type(error).__name__}, and nobody had asked it to end.")


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
