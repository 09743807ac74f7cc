"""`read-body`: the helper command of an executable that bundles Python."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from outreach_server.cli.lazy_commands import HELPER


def parser_command() -> Sequence[str] | None:
    """Return the command that starts this executable as a helper; None for a normal Python."""
    return (sys.executable, HELPER) if getattr(sys, "frozen", False) else None


@click.command(HELPER, hidden=True)
@click.argument("body")
@click.argument("reading")
def read_body(body: str, reading: str) -> None:
    """Read a large body for a server (internal)."""
    from outreach_server.bodies.parser_process import main

    main(body, reading)
