"""The pages of names: the test tools, and the steps and rules of the decision trail."""

from __future__ import annotations

import ast
from importlib import import_module
from inspect import getsource

from outreach.models import states
from outreach.models.states import TrailRule, TrailStepKind
from tests.reference.markdown import meanings, page, table
from tests.surface import names_of_testing


def testing_page() -> str:
    """Return the page of the public names of `outreach.testing`, with the first lines of their docstrings."""
    parts = []
    for module, names in names_of_testing().items():
        tree = ast.parse(getsource(import_module(module)))
        lines = _first_lines(tree)
        rows = [(f"`{name}`", lines[name]) for name in names]
        parts += [f"## `{module}`", _first_line(ast.get_docstring(tree)), table(("Name", "Meaning"), rows)]
    return page(
        "Test tools", "Every public name of `outreach.testing`. [testing.md](../testing.md) shows them in use.", *parts
    )


def trail_page() -> str:
    """Return the page of the steps and rules of the decision trail."""
    steps = meanings(states, "TrailStepKind")
    assert steps.keys() == {*TrailStepKind}
    return page(
        "The decision trail",
        "Every step of a contact's history, and every rule that decides one. A rule's name does not change. "
        "[decision-trail.md](../decision-trail.md) says how to read them.",
        "## Steps",
        table(("`what`", "Meaning"), [(f"`{step}`", steps[step]) for step in TrailStepKind]),
        "## Rules",
        table(("`rule`", "Rule"), [(f"`{rule}`", rule.text) for rule in TrailRule]),
    )


def _first_lines(tree: ast.Module) -> dict[str, str]:
    """Return the first line of the docstring of each name of a module."""
    found = {}
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found[node.name] = _first_line(ast.get_docstring(node))
        elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(after, ast.Expr):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            if isinstance(after.value, ast.Constant):
                found[ast.unparse(target)] = _first_line(str(after.value.value))
    return found


def _first_line(text: str | None) -> str:
    return (text or "").partition("\n")[0]
