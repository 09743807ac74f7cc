"""Names of the server's packages that are imported when first used; `import outreach_server` loads no engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any


def imported_when_used(
    namespace: dict[str, Any], modules: Mapping[str, str], extra: Callable[[str], AbstractContextManager[None]]
) -> tuple[Callable[[str], Any], list[str]]:
    """Return `__getattr__` and `__all__` of a package that imports its names when they are first used.

    Args:
        namespace: The globals of the package.
        modules: The module in the package that has a name, by the name.
        extra: Names the extra that is missing, if an import fails for that.
    """
    package = namespace["__name__"]
    namespace["_MODULES"] = modules

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with extra(f"{package}.{name}"):
            value = namespace[name] = getattr(import_module(f"{package}.{modules[name]}"), name)
            return value

    return get, [*modules]
