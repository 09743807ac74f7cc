"""`calls`: call records."""

from __future__ import annotations

import click

from outreach import Call, Outreach
from outreach.http import write_call
from outreach.models import ProviderFailure
from outreach_server.cli.base import Group, with_engine
from outreach_server.cli.campaigns import explained
from outreach_server.cli.values import CALL


@click.group(cls=Group)
def calls() -> None:
    """Show calls."""


@calls.command("show")
@click.argument("call_id", type=CALL)
def show_(call_id: str) -> None:
    """Show a call; for a failed one, what the provider said, what it means and what to do."""

    async def work(engine: Outreach) -> tuple[Call, ProviderFailure | None]:
        call = await engine.calls.get_anywhere(call_id)
        return call, await engine.calls.failure(call)

    call, failed = with_engine(work)
    explained.show_with(write_call(call), failed)
