from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import attrs

from tests.field.rows import ROWS

TESTS = Path(__file__).parents[1]


@attrs.frozen
class Marked:
    """A test that names a row."""

    row: int
    name: str
    docstring: str


def marked_tests() -> Iterator[Marked]:
    """Yield the tests of the whole suite that name a row, collected or not."""
    for path in sorted(TESTS.rglob("test_*.py")):
        source = path.read_text()
        if "mark.field(" not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for row in _rows(node):
                    yield Marked(row, f"{path.relative_to(TESTS)}::{node.name}", ast.get_docstring(node) or "")


def _rows(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[int]:
    return [
        number.value
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.field"
        for number in decorator.args
        if isinstance(number, ast.Constant) and isinstance(number.value, int)
    ]


def test_every_row_is_tested() -> None:
    """Of eighteen rows none is forgotten."""
    assert set(ROWS) == set(range(1, 19))
    assert {one.row for one in marked_tests()} == set(ROWS)


def test_every_test_of_a_row_names_the_peer_that_fails_it() -> None:
    """Who reads the test learns whose users were bitten by it."""
    nameless = [one.name for one in marked_tests() if not any(peer in one.docstring for peer in ROWS[one.row].peers)]
    assert nameless == []


def test_the_marks_are_found() -> None:
    """A registry that sees nothing would be content with everything."""
    assert len(list(marked_tests())) >= len(ROWS)
