"""Async fixtures that pytest-asyncio and the pytest plugin of anyio run alike."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, Final, TypeVar

import pytest

F = TypeVar("F", bound=Callable[..., Any])

_plain: Final[dict[Callable[..., Any], Callable[..., Any]]] = {}
"""For a fixture that is marked for pytest-asyncio: the same function without that mark."""


def async_fixture(function: F) -> F:
    """Make a fixture of an async function that pytest-asyncio runs for its tests, and anyio for the others."""
    made: Callable[..., Any] = function
    try:
        import pytest_asyncio
    except ImportError:
        pass
    else:
        made = _copy(function)
        pytest_asyncio.fixture(made)
        _plain[made] = function
    return pytest.fixture(made)  # type: ignore[return-value]


def without_pytest_asyncio(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return the function of an async fixture as pytest-asyncio leaves it alone; None where it does anyway."""
    return _plain.get(function)


def _copy(function: Callable[..., Any]) -> Callable[..., Any]:
    copy = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__doc__, copy.__module__ = function.__doc__, function.__module__
    return copy
