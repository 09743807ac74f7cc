"""The actions that the code writes to the log, found in its source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGES: Final = ("outreach", "outreach_server")
_NOT_OURS: Final = ("outreach/testing/",)


@cache
def _calls() -> list[tuple[str, ast.Call]]:
    """Return every call of the packages, with its file."""
    return [
        (name, node)
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if not (name := path.relative_to(ROOT).as_posix()).startswith(_NOT_OURS)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
    ]


def actions() -> dict[str, set[str]]:
    """Return each action with the files that write it."""
    found: dict[str, set[str]] = {}
    for name, call in _calls():
        for action in _actions_of(call):
            found.setdefault(action, set()).add(name)
    return found


def calls_without_action() -> list[str]:
    """Return the places that write a line without an action."""
    return [
        f"{name}:{call.lineno}"
        for name, call in _calls()
        if _is_log_call(call) and not list(_actions_of(call)) and not _passes_on(call)
    ]


def fields() -> set[str]:
    """Return the names of all fields that the code gives to lines."""
    return {name for _, call in _calls() for name, _ in _fields(call)}


def _is_log_call(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Name) and call.func.id == "log_error":
        return True
    if not isinstance(call.func, ast.Attribute):
        return False
    levels = {"debug", "info", "warning", "error", "exception", "critical", "log"}
    throttled = {"problem", "log", "recovered", "failure"}
    if call.func.attr not in levels | throttled:
        return False
    owner = ast.unparse(call.func.value)
    if owner == "_log":
        return call.func.attr in levels
    ours = owner.endswith("log_throttle") or owner.startswith("log_throttle_of(")
    return ours and call.func.attr in throttled


def _passes_on(call: ast.Call) -> bool:
    """Return whether a call hands on fields that it was given: the throttle itself, and counters of refusals."""
    text = ast.unparse(call)
    return "extra=extra" in text or "self._action" in text


def _actions_of(call: ast.Call) -> Iterator[str]:
    for name, value in _fields(call):
        if name == "action":
            yield from _constants(value)
    if not isinstance(call.func, ast.Name | ast.Attribute):
        return
    called = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id
    if called == "failure" and _is_log_call(call):
        yield from _constants(call.args[0])
    if called == "makeLogRecord" and isinstance(call.args[0], ast.Dict):
        for key, value in zip(call.args[0].keys, call.args[0].values, strict=True):
            if isinstance(key, ast.Constant) and key.value == "action":
                yield from _constants(value)
    if called == "RefusalCounter":
        yield from _constants(call.args[1])


def _fields(call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """Yield the fields that a call gives a line."""
    if not _is_log_call(call):
        return
    for keyword in call.keywords:
        if keyword.arg == "extra" and isinstance(keyword.value, ast.Dict):
            for key, value in zip(keyword.value.keys, keyword.value.values, strict=True):
                if isinstance(key, ast.Constant):
                    yield str(key.value), value
        elif keyword.arg is not None and keyword.arg not in {"extra", "level", "error", "exc_info"}:
            yield keyword.arg, keyword.value


def _constants(node: ast.expr) -> Iterator[str]:
    chosen = (node.body, node.orelse) if isinstance(node, ast.IfExp) else (node,)
    for one in chosen:
        if isinstance(one, ast.Constant) and isinstance(one.value, str):
            yield one.value
