"""Asking before what cannot be undone."""

from __future__ import annotations

import sys
from typing import Final

import click

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
    click.confirm(f"{question} This cannot be undone.", abort=True, err=True)
