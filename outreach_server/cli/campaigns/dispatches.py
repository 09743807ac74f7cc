"""`dispatches`: requests with an unknown outcome, and the operator's decisions about them."""

from __future__ import annotations

from collections.abc import Sequence

import click

from outreach import Dispatch, Outreach
from outreach_server.cli import documents
from outreach_server.cli.base import Group, actor, with_engine
from outreach_server.cli.collecting import collect
from outreach_server.cli.output import show, show_list
from outreach_server.cli.values import DISPATCH, WORKSPACE


@click.group(cls=Group)
def dispatches() -> None:
    """List requests with an unknown outcome, and resolve them."""


@dispatches.command("unknown")
@click.argument("workspace_id", type=WORKSPACE)
@click.option("--limit", type=click.IntRange(1, 100_000), default=1000, show_default=True, help="How many.")
def unknown(workspace_id: str, limit: int) -> None:
    """List the unknown requests, oldest first. They are looked up at the provider until their deadline."""

    async def work(engine: Outreach) -> Sequence[Dispatch]:
        return await collect(engine.dispatches.iter_unknown(workspace_id), limit + 1)

    found = with_engine(work)
    show_list(
        [documents.dispatch(item) for item in found[:limit]],
        ("id", "created_at", "channel", "to", "provider", "reason", "campaign_id"),
        empty="No request is unknown.",
    )
    if len(found) > limit:
        # For programs too, which would take the list as complete.
        click.echo(f"There are more than these {limit}. See more of them with --limit.", err=True)


@dispatches.command("resolve")
@click.argument("dispatch_id", type=DISPATCH)
@click.option("--assume-sent", is_flag=True, help="Treat it as accepted.")
@click.option("--retry", is_flag=True, help="Send it again: the contact may get it twice.")
def resolve(dispatch_id: str, assume_sent: bool, retry: bool) -> None:
    """Resolve an unknown request by either --assume-sent or --retry.

    A retry is refused while the first request may still be running.
    """
    if assume_sent == retry:
        raise click.UsageError("Give either --assume-sent or --retry.")

    async def work(engine: Outreach) -> Dispatch:
        workspace_id = (await engine.dispatches.get_anywhere(dispatch_id)).workspace_id
        if retry:
            return await engine.dispatches.resolve(workspace_id, dispatch_id, "retry", actor=actor())
        return await engine.dispatches.resolve(workspace_id, dispatch_id, "assume_sent", actor=actor())

    show(documents.dispatch(with_engine(work)))
