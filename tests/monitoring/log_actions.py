"""The lines that the code writes to the log, found in its source: their actions, levels, messages and fields."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import attrs

Function = ast.FunctionDef | ast.AsyncFunctionDef

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGES: Final = ("outreach", "outreach_server")
_NOT_OURS: Final = ("outreach/testing/",)
_LEVELS: Final = ("debug", "info", "warning", "error", "critical")
_LEVEL_OF: Final = {
    "exception": "error",
    "failure": "error",
    "problem": "warning",
    "recovered": "warning",
    "RefusalCounter": "warning",
}
"""The level of a call that names none."""

_LEVEL_AT: Final = {"log": 0, "log_error": 1}
"""The argument that is the level."""


@attrs.frozen
class _Found:
    """A call in the source.

    Attributes:
        file: Its file, from the root.
        module: The module that it is in.
        function: The function that it is in; None at the top of a module.
        call: The call.
    """

    file: str
    module: ast.Module
    function: Function | None
    call: ast.Call


@attrs.frozen
class Line:
    """One kind of line.

    Attributes:
        action: Its action.
        levels: The levels that it may have, the least severe first.
        message: Its message, with … for what is filled in; empty where that is all.
    """

    action: str
    levels: tuple[str, ...]
    message: str


@cache
def _calls() -> list[_Found]:
    """Return every call of the packages."""
    found: list[_Found] = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            file = path.relative_to(ROOT).as_posix()
            if not file.startswith(_NOT_OURS):
                module = ast.parse(path.read_text("utf-8"))
                found += [_Found(file, module, function, call) for function, call in _within(module, None)]
    return found


def _within(node: ast.AST, function: Function | None) -> Iterator[tuple[Function | None, ast.Call]]:
    """Yield the calls below a node, each with the function that it is in."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            yield function, child
        yield from _within(child, child if isinstance(child, Function) else function)


def lines() -> list[Line]:
    """Return every kind of line, by action."""
    found = {Line(action, _levels(one), _message(one)): None for one in _calls() for action in _actions_of(one.call)}
    return sorted(found, key=lambda line: line.action)


def calls_without_action() -> list[str]:
    """Return the places that write a line without an action."""
    return [
        f"{one.file}:{one.call.lineno}"
        for one in _calls()
        if _is_log_call(one.call) and not list(_actions_of(one.call)) and not _passes_on(one.call)
    ]


def fields() -> set[str]:
    """Return the names of all fields that the code gives to lines."""
    return {name for one in _calls() for name, _ in _fields(one.call)}


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)


def _levels(one: _Found) -> tuple[str, ...]:
    """Return the levels of a call: by its name, or those that it is given."""
    named = _called(one.call)
    by_name = _LEVEL_OF.get(named, named)
    given = [keyword.value for keyword in one.call.keywords if keyword.arg == "level"]
    if named in _LEVEL_AT:
        given = [one.call.args[_LEVEL_AT[named]]]
    if named == "makeLogRecord":
        given = [one.call.args[0]]
    # A level in a variable is one of those that the function names.
    source: ast.AST = one.function if given and isinstance(given[0], ast.Name) and one.function else ast.List(given)
    written = set(re.findall(r"logging\.([A-Z]+)\b", ast.unparse(source)))
    return tuple(level for level in _LEVELS if level.upper() in written or (not given and level == by_name))


def _message(one: _Found) -> str:
    """Return the message of a call."""
    named, arguments = _called(one.call), list(one.call.args)
    if named == "makeLogRecord" and isinstance(arguments[0], ast.Dict):
        keys = [key.value for key in arguments[0].keys if isinstance(key, ast.Constant)]
        return _words(arguments[0].values[keys.index("msg")])
    constants = {
        ast.unparse(target): node.value
        for scope in (one.module, one.function)
        for node in (ast.walk(scope) if isinstance(scope, Function) else scope.body if scope else ())
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    }
    skipped = 1 if named == "failure" else 2 if named in {"problem", "RefusalCounter"} else 0
    texts = [constants.get(ast.unparse(argument), argument) for argument in arguments[skipped:]]
    words = next((_words(text) for text in texts if isinstance(text, ast.Constant | ast.JoinedStr)), "")
    return words if re.search(r"\w", words) else ""


def _words(text: ast.expr) -> str:
    """Return a text with … for each value that is filled in."""
    if isinstance(text, ast.JoinedStr):
        parts = ["…" if isinstance(part, ast.FormattedValue) else str(ast.literal_eval(part)) for part in text.values]
        return "".join(parts)
    return re.sub(r"%[-#0-9.,]*[a-zA-Z]", "…", str(ast.literal_eval(text)))


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
    called = _called(call)
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
