"""Awaiting the code of others, adapters and dispatchers: whatever it raises is its own error, and ends nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


class Aborted(Exception):
    """The code of others raised what would have ended more than what it was asked for."""


async def asked(answer: Awaitable[T]) -> T:
    """Return what the code of others answers.

    A cancellation that nobody has asked for is its error, such as that of a task which an adapter's requests share:
    a task group would take it for its own, and end the requests of all others.

    Raises:
        Aborted: It raised such a cancellation, or another error that is no `Exception`.
    """
    try:
        return await answer
    except (Exception, GeneratorExit, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        raise Aborted(f"It raised {type(error).__name__}, and nobody had asked it to end.") from error
