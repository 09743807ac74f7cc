"""A service that is composed of parts: callers see one object, and each part is a class of its own."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")


def method_of(part: str, method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Make a method that calls a part's; its parameters and its docstring are those of the part's.

    Args:
        part: The attribute that holds the part.
        method: The method of the part's class.
    """
    if not inspect.iscoroutinefunction(method):

        @wraps(method)
        def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
            return method(getattr(self, part), *args, **kwargs)

        return call

    @wraps(method)
    async def wait(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> Any:
        return await method(getattr(self, part), *args, **kwargs)

    return cast("Callable[Concatenate[Any, P], R]", wait)
