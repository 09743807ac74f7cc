"""`unreachable`: numbers that providers have reported as unreachable."""

from __future__ import annotations

import click

from outreach import Outreach
from outreach.http import to_json
from outreach_server.cli.base import Group, actor, with_engine
from outreach_server.cli.collecting import collect
from outreach_server.cli.output import show_list, show_or_say
from outreach_server.cli.values import LIMIT, WORKSPACE


@click.group(cls=Group)
def unreachable() -> None:
    """List numbers that providers have reported as unreachable, and take some off.

    `workspaces update --skip-unreachable` leaves them out of campaigns.
    """


@unreachable.command("list")
@click.argument("workspace_id", type=WORKSPACE)
@LIMIT
def list_(workspace_id: str, limit: int) -> None:
    """List the numbers that take no messages (sms) or no calls (call), by number."""
    found = with_engine(lambda engine: collect(engine.unreachable_numbers.iter_all(workspace_id), limit))
    show_list(
        [to_json(one) for one in found],
        ("phone", "channel", "provider", "error_code", "reported_at"),
        empty="No number is unreachable.",
    )


@unreachable.command()
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("phones", metavar="PHONE...", nargs=-1, required=True)
def remove(workspace_id: str, phones: tuple[str, ...]) -> None:
    """Take numbers off, so that later campaigns contact them. Contacts that were skipped stay skipped."""

    async def work(engine: Outreach) -> int:
        return sum([await engine.unreachable_numbers.remove(workspace_id, phone, actor=actor()) for phone in phones])

    removed = with_engine(work)
    show_or_say({"removed": removed}, f"Removed {removed} of {len(phones)}.")
