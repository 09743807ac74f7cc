"""Every code block of README.md and docs says what it is, and can be read."""

from __future__ import annotations

import ast
import json
import re
import subprocess

import pytest

from tests.documents.blocks import ALL, PAGES, PYTHON, ROOT, SHELL, Block, blocks_of
from tests.documents.commands import command_lines

DATA = frozenset({"json", "yaml", "toml", "ini", "csv", "http", "nginx", "caddy", "caddyfile", "sql", "typescript"})
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def each(*languages: str) -> pytest.MarkDecorator:
    """Return a test's parameters: the blocks of some languages, of all where none is named."""
    chosen = [block for block in ALL if not languages or block.language in languages]
    return pytest.mark.parametrize("block", chosen, ids=[block.place for block in chosen])


@each()
def test_a_block_names_its_language(block: Block) -> None:
    """Else nobody knows whether it has to be run. What is no code is `text`."""
    assert block.language is not None, f"{block.place}: write it between ```sh (or ```python, ```text …) and ```"
    languages = PYTHON | SHELL | DATA | {"text", "diff"}
    assert block.language in languages, f"{block.place}: {block.language!r} is no language here"


@each()
def test_what_is_not_run_says_why(block: Block) -> None:
    """`<!-- not run: reason -->`, and of something that would be run."""
    if block.not_run is not None:
        assert len(block.not_run) > 10, block.place
        of_example = block.language == "typescript" and block.not_run.startswith("a part of examples/")
        assert block.language in PYTHON | SHELL or of_example, f"{block.place} would not be run anyway"


@each(*PYTHON)
def test_python_compiles(block: Block) -> None:
    """Also what is not run."""
    compile(block.text, block.place, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


@each(*SHELL)
def test_shell_can_be_read(block: Block) -> None:
    """Also what is not run."""
    done = subprocess.run(["bash", "-n", "-c", block.text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{block.place}: {done.stderr}"


@each(*SHELL)
def test_targets_of_make_exist(block: Block) -> None:
    """Also in what is not run; `tests/cli/test_documented_commands.py` looks at the commands of outreach-server."""
    for line in command_lines(block.text):
        if line.startswith("make "):
            targets = [word for word in line.partition("#")[0].split()[1:] if "=" not in word]
            assert set(targets) <= TARGETS, block.place


@each("json")
def test_json_is_json(block: Block) -> None:
    """It can be pasted into a file."""
    json.loads(block.text)


def test_there_is_something_to_look_at() -> None:
    """Blocks are found in lists too; most shell blocks and every whole program are run."""
    assert len(PAGES) > 10
    assert {block.page for block in ALL if block.language in SHELL} >= {"README.md", "docs/carriers/twilio.md"}
    shell = [block for block in ALL if block.language in SHELL]
    assert sum(block.not_run is None for block in shell) > len(shell) / 3
    # A part of an example is run with the whole of it; frameworks that are not installed are needed by few.
    not_run = [block for block in ALL if block.language in PYTHON and block.not_run is not None]
    assert [
        one.place for one in not_run if not re.match(r"a part of examples/|needs a Django", one.not_run or "")
    ] == []


def test_blocks_are_found_with_what_is_said_of_them() -> None:
    """Fences, indented blocks, lists, marks and titles."""
    text = (
        "```sh\na\n```\n\n<!-- not run: only a root may -->\n```sh\nb\n```\n\n"
        '1. One\n\n   ```json title="x.json"\n   {}\n   ```\n\n    indented\n\nText\n\n    code\n\n'
        "<!-- not run: for nothing -->\n\nText\n\n~~~python\nc\n~~~\n"
    )
    found = [(b.line, b.language, b.title, b.text, b.not_run) for b in blocks_of(text, "page.md")]
    assert found == [
        (1, "sh", None, "a\n", None),
        (6, "sh", None, "b\n", "only a root may"),
        (12, "json", "x.json", "{}\n", None),
        (20, None, None, "code\n", None),
        (26, "python", None, "c\n", None),
    ]
