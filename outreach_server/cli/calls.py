"""`calls`: call records."""

from __future__ import annotations

import click

from outreach import Outreach
from outreach_server.cli import documents, explained
from outreach_server.cli.base import Group, with_engine
from outreach_server.cli.output import show
from outreach_server.cli.values import CALL


@click.group(cls=Group)
def calls() -> None:
    """Look at calls."""


@calls.command("show")
@click.argument("call_id", type=CALL)
def show_(call_id: str) -> None:
    """Show what became of a call; of one that failed, what the provider said, what it means and what to do."""

    async def work(engine: Outreach) -> documents.Document:
        call = await engine.calls.find(call_id)
        return {**documents.call(call), **explained.failure(await engine.failures.of_call(call))}

    show(with_engine(work))
