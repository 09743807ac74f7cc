"""The mark `virtual_time` of pytest: an async test, and its async fixtures, run on a loop with virtual time.

    @pytest.mark.virtual_time
    async def test_a_day(): ...


    @pytest.mark.virtual_time(start=datetime(2026, 12, 24, 8, tzinfo=UTC), max_run=timedelta(days=400))
    async def test_the_holidays(): ...

Tests of pytest-asyncio stay with pytest-asyncio; all others run by the pytest plugin of anyio, which comes with anyio.
`outreach.testing.plugin` loads this module.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Generator, Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import pytest

from outreach.testing.async_fixture import without_pytest_asyncio
from outreach.testing.virtual_time import VirtualTimeLoop

_MARK: Final = "virtual_time"
_BACKEND: Final = "anyio_backend"
_ARGUMENTS: Final[Mapping[str, tuple[Any, str]]] = {
    "start": (datetime, "a datetime with a time zone"),
    "max_run": (timedelta, "a timedelta"),
    "max_thread_seconds": (int | float, "a number"),
}
_HELP: Final = (
    "virtual_time(*, start=…, max_run=…, max_thread_seconds=…): run an async test on a loop whose time jumps to the "
    "next timer (outreach.testing.virtual_time.VirtualTimeLoop)"
)


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark with pytest."""
    config.addinivalue_line("markers", _HELP)


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str, obj: object) -> None:
    """Have anyio run what is marked and no test of pytest-asyncio."""
    if not collector.istestfunction(obj, name) or not _is_async(obj) or not _has_mark(collector, obj, _MARK):
        return
    if _is_of_pytest_asyncio(collector, obj):
        return
    if not collector.config.pluginmanager.has_plugin("anyio"):
        raise pytest.UsageError(f"The mark {_MARK} needs the pytest plugin of anyio, which is switched off.")
    pytest.mark.usefixtures(_BACKEND)(obj)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Generator[None]:
    """Have whatever runs a marked test make a loop with virtual time."""
    definition = metafunc.definition
    mark = definition.get_closest_marker(_MARK)
    if mark is None:
        return (yield)
    problem = mark_problem(mark)
    if problem is not None:
        pytest.fail(f"{definition.nodeid}: the mark {_MARK} {problem}", pytrace=False)
    factory = partial(VirtualTimeLoop, **mark.kwargs)
    if _BACKEND in metafunc.fixturenames:
        backends = [("asyncio", {"loop_factory": factory})]
        definition.add_marker(pytest.mark.parametrize(_BACKEND, backends, ids=[pytest.HIDDEN_PARAM]))
        return (yield)
    # For this test alone: with the hook in place, pytest-asyncio would want an answer for every test.
    factories = _LoopFactories(factory)
    metafunc.config.pluginmanager.register(factories)
    try:
        return (yield)
    finally:
        metafunc.config.pluginmanager.unregister(factories)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Generator[None]:
    """Keep pytest-asyncio from the fixtures of tests that anyio runs."""
    marked = fixturedef.func
    plain = without_pytest_asyncio(marked) if _BACKEND in request.fixturenames else None
    if plain is None:
        return (yield)
    fixturedef.func = plain  # type: ignore[misc]
    try:
        return (yield)
    finally:
        fixturedef.func = marked  # type: ignore[misc]


class _LoopFactories:
    """Answers pytest-asyncio's question how loops are made."""

    def __init__(self, factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
        self._factory = factory

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_asyncio_loop_factories(self) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
        """Return the one way."""
        return {_MARK: self._factory}


def mark_problem(mark: pytest.Mark) -> str | None:
    """Return what is wrong with the arguments of the mark; a loop would fail far from there, or not at all."""
    if mark.args:
        return f"takes arguments by name only, such as start=…; not {mark.args[0]!r}."
    for name, value in mark.kwargs.items():
        if name not in _ARGUMENTS:
            return f"has no argument {name}, but {', '.join(_ARGUMENTS)}."
        kind, words = _ARGUMENTS[name]
        if not isinstance(value, kind) or (isinstance(value, datetime) and value.utcoffset() is None):
            return f"takes {words} as {name}, not {value!r}."
    return None


def _is_async(obj: Any) -> bool:
    return inspect.iscoroutinefunction(obj.hypothesis.inner_test if hasattr(obj, "hypothesis") else obj)


def _has_mark(collector: pytest.Module | pytest.Class, obj: object, name: str) -> bool:
    own = getattr(obj, "pytestmark", ())
    return collector.get_closest_marker(name) is not None or any(mark.name == name for mark in own)


def _is_of_pytest_asyncio(collector: pytest.Module | pytest.Class, obj: object) -> bool:
    config = collector.config
    if not config.pluginmanager.has_plugin("asyncio"):
        return False
    mode = config.getoption("asyncio_mode", None) or config.getini("asyncio_mode")
    return mode == "auto" or _has_mark(collector, obj, "asyncio")
