"""The parts that pages are made of."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType


def page(title: str, introduction: str, *parts: str) -> str:
    """Return a page with a note that it is generated."""
    note = "<!-- Written by `python -m tests.reference` from the code; do not change it here. -->"
    text = "\n\n".join([f"# {title}", note, introduction, *parts]) + "\n"
    return re.sub(r"\bdocs/([\w-]+\.md)(#[\w.-]*\w)?", r"[\1](../\1\2)", text)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; its cells are Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def code(names: Iterable[object]) -> str:
    """Return names as code, with commas between them."""
    return ", ".join(f"`{name}`" for name in names)


def plain(text: str) -> str:
    """Return a text in which nothing is taken for Markdown or HTML, but for what is code already."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(part if part.startswith("`") else re.sub(r"([<>*\[\]])", r"\\\1", part) for part in parts)


def meanings(module: ModuleType, name: str) -> Mapping[str, str]:
    """Return the entries `name: text` of the docstring below a constant, or of a class.

    Args:
        module: The module.
        name: The constant or class.
    """
    assert module.__file__ is not None
    body = ast.parse(Path(module.__file__).read_text("utf-8")).body
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.ClassDef) and node.name == name:
            return _entries(ast.get_docstring(node) or "")
        if isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            if ast.unparse(target) == name and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                return _entries(str(after.value.value))
    raise LookupError(f"{module.__name__}.{name}")


def _entries(text: str) -> Mapping[str, str]:
    """Return the entries of a text; their further lines are indented more than their first ones."""
    found = re.findall(r"^( {4}|)([\w-]+(?: \([\w, ]+\))?): (.+(?:\n\1 {4}.+)*)", textwrap.dedent(text), re.MULTILINE)
    return {name: " ".join(meaning.split()) for _, name, meaning in found}
