"""An order for what is kept in sets: asyncio and anyio tell who is cancelled together in the order of a set.

Without it that order goes by where an object lies in memory, which differs with all that the process has done before; a
seed would not always have one course.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from anyio._backends import _asyncio as backend


class NumberedTask(asyncio.Task[Any]):
    """A task whose place in a set goes by the number that it was made with."""

    def __init__(self, number: int, coro: Coroutine[Any, Any, Any], **given: Any) -> None:
        self._number = number
        super().__init__(coro, **given)

    def __hash__(self) -> int:
        return self._number


@contextmanager
def scopes_in_order() -> Iterator[None]:
    """Have anyio's cancel scopes numbered too, for the time of a simulation.

    Nothing that anyio publishes says in which order they are told, so that it has to be reached for inside of it.
    """
    numbers = itertools.count()
    made = backend.CancelScope

    class NumberedScope(backend.CancelScope):
        __slots__ = ("_number",)

        def __init__(self, *given: Any, **named: Any) -> None:
            self._number = next(numbers)
            super().__init__(*given, **named)

        def __hash__(self) -> int:
            return self._number

    backend.CancelScope = NumberedScope  # type: ignore[misc]
    try:
        yield
    finally:
        backend.CancelScope = made  # type: ignore[misc]
