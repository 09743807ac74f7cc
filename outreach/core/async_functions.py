"""Whether functions that others give are async."""

from __future__ import annotations

import inspect


def async_problem(function: object, *, is_async: bool) -> str | None:
    """Return what is wrong with a function that must be async, or must not be; None if nothing is.

    A callable that is no function, such as a `functools.partial`, may return an awaitable: it can be either.
    """
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return None if is_async else "must be a function without async (def)"
    return "must be an async function (async def)" if is_async and inspect.isroutine(function) else None
