"""A service that is composed of parts: callers see one object, and each part is a class of its own."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property, wraps
from importlib import import_module
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")


class Later:
    """Stands for a part's class, which is imported when it is called, or when one of its methods is.

    Args:
        module: Its module.
        name: Its name.
    """

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Make a part."""
        return self._imported()(*args, **kwargs)

    def __getattr__(self, name: str) -> Callable[[], Callable[..., Any]]:
        """Return a function that imports the class and returns its method of this name."""
        return lambda: cast("Callable[..., Any]", getattr(self._imported(), name))

    def _imported(self) -> Any:
        return getattr(import_module(self._module), self._name)


class _MethodOfPart:
    """A method that calls a part's."""

    def __init__(self, part: str, find: Callable[[], Callable[..., Any]]) -> None:
        self._part = part
        self._find = find
        self._name = ""

    def __set_name__(self, owner: type[Any], name: str) -> None:
        """Keep its name."""
        self._name = name

    def __get__(self, service: object, owner: type[Any]) -> Any:
        """Return the method of the service's part; of the class, a function that takes the service."""
        return self.__wrapped__ if service is None else getattr(getattr(service, self._part), self._name)

    @cached_property
    def __wrapped__(self) -> Callable[..., Any]:
        """A function that takes the service; its parameters and its docstring are those of the part's method."""
        method = self._find()
        if not inspect.iscoroutinefunction(method):

            @wraps(method)
            def call(service: object, /, *args: Any, **kwargs: Any) -> Any:
                return method(getattr(service, self._part), *args, **kwargs)

            return call

        @wraps(method)
        async def wait(service: object, /, *args: Any, **kwargs: Any) -> Any:
            return await method(getattr(service, self._part), *args, **kwargs)

        return wait


def method_of(part: str, method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Make a method that calls a part's method of the same name.

    Args:
        part: The attribute that holds the part.
        method: The method of the part's class, which at run time is `Later`.
    """
    return cast("Callable[Concatenate[Any, P], R]", _MethodOfPart(part, cast("Any", method)))
