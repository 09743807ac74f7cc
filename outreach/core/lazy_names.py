"""Packages whose names are imported when they are first used (PEP 562)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import FunctionType
from typing import Any


def imported_when_used(
    namespace: dict[str, Any], names: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a module that imports its names when they are first used.

    Public are these names, and the functions of the module. Type checkers read its imports under `TYPE_CHECKING`, whose
    `as` says that a name is public; tests/test_imports.py compares them.

    Args:
        namespace: The globals of the module.
        names: The names, parted by spaces, by the module of `outreach` that has them.
    """
    modules = {name: module for module, written in names.items() for name in written.split()}
    namespace["_MODULES"] = modules

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}")
        value = namespace[name] = getattr(import_module(f"outreach.{modules[name]}"), name)
        return value

    def listed() -> list[str]:
        return sorted({*namespace, *modules})

    own = [
        name
        for name, value in namespace.items()
        if isinstance(value, FunctionType) and value.__module__ == namespace["__name__"] and not name.startswith("_")
    ]
    return get, listed, sorted([*modules, *own])
