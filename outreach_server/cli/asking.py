"""Asking before a large change."""

from __future__ import annotations

import shutil
import sys
from typing import Final

import click

from outreach_server.cli.base import EXIT_FAILED

_ANSWER: Final = len(" [y/N]: y")

YES: Final = click.option("--yes", is_flag=True, help="Do not ask.")


def confirm(question: str, yes: bool, *, warning: str = "This cannot be undone.") -> None:
    """Ask whether to go on; without a terminal only `--yes` does.

    `warning` is a sentence that comes with the question.

    Raises:
        click.UsageError: Standard input is no terminal.
        click.exceptions.Exit: The answer is no.
        click.Abort: There is no answer.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(f"{warning.removesuffix('.')}: add --yes.")
    text = click.wrap_text(f"{question} {warning}", shutil.get_terminal_size().columns - _ANSWER)
    if not click.confirm(text, err=True):
        click.echo("Nothing was changed.", err=True)
        raise click.exceptions.Exit(EXIT_FAILED)
