"""`calls`: call records."""

from __future__ import annotations

import click

from outreach_server.cli import documents
from outreach_server.cli.base import Group, with_engine
from outreach_server.cli.output import show
from outreach_server.cli.values import CALL


@click.group(cls=Group)
def calls() -> None:
    """Look at calls."""


@calls.command("show")
@click.argument("call_id", type=CALL)
def show_(call_id: str) -> None:
    """Show what became of a call."""
    show(documents.call(with_engine(lambda engine: engine.calls.find(call_id))))
