"""The public surface of the library, a name a line: `python -m tests.surface` writes it to `tests/surface.txt`."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Final

import attrs

from outreach import Outreach, testing
from tests.engine_services import services_of

PATH: Final = Path(__file__).with_name("surface.txt")

MODULES: Final = (
    "outreach",
    "outreach.models",
    "outreach.errors",
    "outreach.events",
    "outreach.protocols",
    "outreach.http",
    "outreach.reasons",
    "outreach.database",
    "outreach.adapters",
    "outreach.backends",
    "outreach.integrations.archives",
    "outreach.integrations.report_page",
    "outreach.integrations.prometheus",
    "outreach.integrations.opentelemetry",
    "outreach.sync",
)

SERVER: Final = "outreach_server"
"""Comes last, with its console: its import reads the types of models, and they would be written otherwise."""


def surface() -> str:
    """Return every public name with its signature, as it is now."""
    lines = _engine()
    for name in names_of_testing():
        lines += [f"# {name}", *_names_of(import_module(name)), ""]
    for name in (SERVER, f"{SERVER}.console"):
        lines += [f"# {name}", *_names_of(import_module(name)), ""]
    return "\n".join(lines)


def _engine() -> list[str]:
    lines: list[str] = []
    for name in MODULES:
        lines += [f"# {name}", *_names_of(import_module(name)), ""]
    return [*lines, "# The services of an engine", *_services(), ""]


def names_of_testing() -> Mapping[str, Sequence[str]]:
    """Return the public names of `outreach.testing` by module: what each `__all__` has."""
    names = [f"outreach.testing.{one.name}" for one in iter_modules(testing.__path__)]
    return {name: module.__all__ for name in names if hasattr(module := import_module(name), "__all__")}


def hidden_types() -> set[str]:
    """Return the types of this package that public signatures name and no public module has."""
    public = {name for module in MODULES for name in _public_names(import_module(module))}
    named = set(re.findall(r"\b[A-Z]\w+\b", "\n".join(_engine())))
    own = {
        name
        for key, module in list(sys.modules.items())
        if key.split(".")[0] == "outreach"
        for name, value in vars(module).items()
        # A name for a union or a literal has no module.
        if str(getattr(value, "__module__", "outreach")).split(".")[0] == "outreach"
    }
    return (named & own) - public


def _public_names(module: Any) -> list[str]:
    return getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]


def _names_of(module: Any) -> Iterator[str]:
    names = getattr(module, "__all__", None) or [
        name for name, value in vars(module).items() if inspect.isclass(value) and value.__module__ == module.__name__
    ]
    shown_elsewhere = {
        other
        for one in ("outreach.models", "outreach.errors", "outreach.protocols")
        if module.__name__ == "outreach"
        for other in _public_names(import_module(one))
    }
    for name in sorted(names):
        yield from [name] if name in shown_elsewhere else _lines(name, getattr(module, name))


def _lines(name: str, value: Any) -> Iterator[str]:
    if inspect.isclass(value) and value.__module__ == "builtins":
        yield f"{name} = {value.__name__}"
    elif inspect.isclass(value):
        yield f"class {name}({', '.join(base.__name__ for base in value.__bases__ if base is not object)})"
        yield from _fields(value)
        yield from _methods(value, indent="    ")
    elif inspect.isfunction(function := inspect.unwrap(value)):
        yield f"{name}{_signature(function)}"
    else:
        yield f"{name} = {_constant(value)}"


def _constant(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(sorted(str(getattr(key, 'value', key)) for key in value))}}}"
    if isinstance(value, tuple) and value and attrs.has(type(value[0])):
        return f"<{len(value)} of {type(value[0]).__name__}>"
    return f"<{type(value).__name__}>" if type(value).__module__.startswith("outreach") else str(value)


def _fields(value: type[Any]) -> Iterator[str]:
    if not attrs.has(value):
        if issubclass(value, str):
            yield f"    {', '.join(member.value for member in value)}"  # type: ignore[attr-defined]
        return
    for field in attrs.fields(value):
        default = "" if field.default is attrs.NOTHING else " = ..."
        # Whether the type is still written as a text depends on what was used before.
        kind = field.type.__name__ if inspect.isclass(field.type) else field.type
        yield f"    {field.name}: {kind}{default}"


def _methods(value: type[Any], *, indent: str) -> Iterator[str]:
    for name, member in sorted(_members(value).items()):
        if isinstance(member, property) and not name.startswith("_"):
            yield f"{indent}{name}: property"
        function = inspect.unwrap(getattr(member, "__func__", member)) if not isinstance(member, property) else None
        wanted = name == "__init__" and not attrs.has(value) and not issubclass(value, str)
        # A suite's tests are no calls that anybody makes.
        shown = wanted or not name.startswith(("_", "test_"))
        if inspect.isfunction(function) and shown:
            yield f"{indent}{name}{_signature(function)}"


def _members(value: type[Any]) -> Mapping[str, Any]:
    """Return the members of a class, with those that it has of classes without a public name."""
    # None is imported for it: reading bodies would change how the types of models are written.
    loaded = [sys.modules[name] for name in MODULES if name in sys.modules]
    public = {name for module in loaded for name in _public_names(module)}
    own = [
        base
        for base in value.__mro__
        if base is value or (base.__module__.split(".")[0] == "outreach" and base.__name__ not in public)
    ]
    return {name: member for base in reversed(own) for name, member in vars(base).items()}


def _services() -> Iterator[str]:
    for service, instance in sorted(services_of(Outreach.open("memory://"))):
        kind = type(instance)
        found = {name: getattr(kind, name) for base in reversed(kind.__mro__) for name in vars(base)}
        for name, member in sorted(found.items()):
            if inspect.isfunction(member) and (not name.startswith("_") or name == "__call__"):
                called = service if name == "__call__" else f"{service}.{name}"
                yield f"engine.{called}{_signature(member)}"


def _signature(function: Any) -> str:
    written = inspect.signature(function)
    # Without the object itself, and with defaults that hold no address.
    parameters = [one for one in written.parameters.values() if one.name not in {"self", "cls"}]
    shown = [
        one
        if one.default is one.empty or isinstance(one.default, str | int | float | bool | None)
        else one.replace(default=_Default(one.default))
        for one in parameters
    ]
    told = str(written.replace(parameters=shown)).replace("'", "")
    return f"{told} async" if inspect.iscoroutinefunction(function) else told


class _Default:
    """A default value that is shown by its name."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __repr__(self) -> str:
        name = getattr(self._value, "value", None)
        return str(name) if isinstance(name, str) else f"<{type(self._value).__name__}>"


if __name__ == "__main__":
    PATH.write_text(surface(), encoding="utf-8")
