"""`contacts`: everything with one number."""

from __future__ import annotations

import click

from outreach.http import write_history_item
from outreach_server.cli.base import Group, with_engine
from outreach_server.cli.collecting import collect
from outreach_server.cli.output import show_list
from outreach_server.cli.values import LIMIT, WORKSPACE

_COLUMNS = ("at", "kind", "direction", "status", "reason", "campaign_name", "text")


@click.group(cls=Group)
def contacts() -> None:
    """Show everything with one number."""


@contacts.command()
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("phone")
@LIMIT
def history(workspace_id: str, phone: str, limit: int) -> None:
    """List everything with one number, newest first: campaigns, messages both ways, calls, opt-outs.

    All spellings of the number count. Campaigns in a ledger archive are left out; of an erased person only the entry of
    the register is found.
    """
    found = with_engine(lambda engine: collect(engine.contacts.iter_history(workspace_id, phone), limit + 1))
    show_list(
        [write_history_item(item) for item in found[:limit]],
        _COLUMNS,
        empty="The workspace has nothing of this number.",
    )
    if len(found) > limit:
        # For programs too, which would take the list as complete.
        click.echo(f"Only the newest {limit} are shown. See more with --limit.", err=True)
