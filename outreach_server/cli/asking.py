"""Asking before what cannot be undone."""

from __future__ import annotations

import shutil
import sys
from typing import Final

import click

_ANSWER: Final = len(" [y/N]: y")

YES: Final = click.option("--yes", is_flag=True, help="Do not ask.")


def confirm(question: str, yes: bool) -> None:
    """Ask whether to go on; without a terminal only `--yes` does.

    Raises:
        click.UsageError: Nobody can be asked.
        click.Abort: The answer is no.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("This cannot be undone: add --yes.")
    asked = click.wrap_text(f"{question} This cannot be undone.", shutil.get_terminal_size().columns - _ANSWER)
    click.confirm(asked, abort=True, err=True)
