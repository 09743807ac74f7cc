"""`read-body`: what an executable that holds all of this in one file starts itself with, to be its own helper."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from outreach_server.cli.base import HELPER


def parser_command() -> Sequence[str] | None:
    """Return how this executable starts itself as a helper; None where it is Python, which needs no such way."""
    return (sys.executable, HELPER) if getattr(sys, "frozen", False) else None


@click.command(HELPER, hidden=True)
@click.argument("body")
@click.argument("reading")
def read_body(body: str, reading: str) -> None:
    """Read a large body for a server: nobody calls this by hand."""
    from outreach_server.parser_process import main

    main(body, reading)
