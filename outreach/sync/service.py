"""The parts of services for synchronous code: functions that call an asynchronous service on the engine's loop."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from outreach.services.resource import EVERY_OPERATION, Resource
from outreach.sync.calls import Call
from outreach.sync.lifetime import Lifetime
from outreach.sync.streams import Items

S = TypeVar("S")
S_co = TypeVar("S_co", covariant=True)
T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")


class Service(Generic[S_co]):
    """A service for synchronous code.

    Args:
        lifetime: Whose engine it belongs to.
        service: The asynchronous service.
    """

    def __init__(self, lifetime: Lifetime, service: S_co) -> None:
        self._lifetime = lifetime
        self._service = service


def awaited(
    method: Callable[Concatenate[S, P], Awaitable[T]], *, drawn: str | None = None
) -> Callable[Concatenate[Service[S], P], T]:
    """Make a method that awaits a method of the asynchronous service.

    Args:
        method: The asynchronous method; its parameters and its docstring are those of the new one.
        drawn: The parameter that takes an iterable, whose items are drawn in the calling thread.
    """

    def function(self: Service[S], /, *args: P.args, **kwargs: P.kwargs) -> T:
        def use(call: Call[T]) -> Awaitable[T]:
            if drawn is None:
                return method(self._service, *args, **kwargs)
            given = inspect.signature(method).bind(self._service, *args, **kwargs)
            given.arguments[drawn] = call.each(given.arguments[drawn])
            return method(*given.args, **given.kwargs)

        return self._lifetime.run(use)

    return like(method)(function)


def iterated(
    method: Callable[Concatenate[S, P], AsyncIterator[T]],
) -> Callable[Concatenate[Service[S], P], Iterator[T]]:
    """Make a method that iterates over what a method of the asynchronous service yields."""

    def function(self: Service[S], /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return Items(self._lifetime.running(), method(self._service, *args, **kwargs))

    return like(method)(function)


def plain(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[Service[S], P], T]:
    """Make a method that calls, on the loop as its service expects, a method that awaits nothing."""

    def function(self: Service[S], /, *args: P.args, **kwargs: P.kwargs) -> T:
        async def use(_: Call[T]) -> T:
            return method(self._service, *args, **kwargs)

        return self._lifetime.run(use)

    return like(method)(function)


def like(method: Callable[..., Any]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function for synchronous code: `help` shows for it what stands at the asynchronous method."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        described = wraps(method)(function)
        signature = inspect.signature(method)
        returned = str(signature.return_annotation).replace("AsyncIterator", "Iterator")
        described.__signature__ = signature.replace(return_annotation=returned)  # type: ignore[attr-defined]
        described.__doc__ = (method.__doc__ or "").replace("async with", "with").replace("async for", "for")
        return described

    return decorate


def same_parameters(
    method: Callable[P, Any],
) -> Callable[[Callable[..., R]], Callable[Concatenate[Any, P], R]]:
    """Give a constructor the parameters of another one, for type checkers and `help`."""

    def decorate(function: Callable[..., R]) -> Callable[Concatenate[Any, P], R]:
        first, *_ = inspect.signature(function).parameters.values()
        signature = inspect.signature(method)
        function.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[first, *signature.parameters.values()],
            return_annotation=inspect.signature(function).return_annotation,
        )
        return function

    return decorate


def sync_resource(kind: type[Resource[Any, Any, Any]]) -> type[Service[Any]]:
    """Return the class of a resource for synchronous code, which `services.resource.SyncResource` describes."""
    members: dict[str, Any] = {name: awaited(getattr(kind, name)) for name in EVERY_OPERATION}
    members |= {"__doc__": kind.__doc__, "iter_all": iterated(kind.iter_all)}
    return type(kind.__name__, (Service,), members)
