"""Command lines of shell blocks, and whether the command line takes them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import click

from outreach.testing.builders import new_id
from outreach_server.cli.root import main

PROGRAM: Final = "outreach-server"


def command_lines(script: str) -> Iterator[str]:
    """Yield the lines of a script, those that go on behind a backslash as one."""
    for line in re.sub(r"\\\n\s*", "", script).splitlines():
        text = line.strip()
        if text and not text.startswith("#"):
            yield text


def arguments_of(line: str) -> str | None:
    """Return what is handed to the program in a line; None where the line does not call it."""
    return line.removeprefix(f"{PROGRAM} ") if line.startswith(f"{PROGRAM} ") else None


def check(text: str, place: Path) -> None:
    """Hold arguments against the command line, with files and identifiers for those that they name.

    Raises:
        click.UsageError: It does not take them.
    """
    words = shlex.split(text, comments=True)
    for number, word in enumerate(words):
        if re.fullmatch(r"[A-Z]+_ID", word):
            words[number] = new_id()
        elif re.fullmatch(r"\w+\.(json|csv)", word):
            (place / word).write_text("{}", encoding="utf-8")
    _parse(main, words)


def _parse(command: click.Command, words: Sequence[str], parent: click.Context | None = None) -> None:
    """Have the command line read words, and do nothing about them."""
    with command.make_context(command.name if parent else PROGRAM, list(words), parent=parent) as context:
        if isinstance(command, click.Group):
            rest: Any = [*context._protected_args, *context.args]
            _, found, left = command.resolve_command(context, rest)
            assert found is not None
            _parse(found, left, context)
