"""`events`: the named subscriptions of programs that embed the engine."""

from __future__ import annotations

import click

from outreach.http import to_json
from outreach_server.cli.base import Group, with_engine
from outreach_server.cli.collecting import collect
from outreach_server.cli.output import note, show, show_list


@click.group(cls=Group)
def events() -> None:
    """List and remove named subscriptions to events."""


@events.command("list")
def list_() -> None:
    """List the named subscriptions: how far each has come, how far it is behind, and whether anybody reads it now."""
    found = with_engine(lambda engine: collect(engine.events.iter_subscriptions()))
    show_list(
        [to_json(item) for item in found],
        ("name", "workspace_id", "position", "behind", "active", "updated_at"),
        empty="There are no named subscriptions: programs that embed the engine make them.",
    )


@events.command("remove")
@click.argument("name")
def remove(name: str) -> None:
    """Forget the subscription called NAME and how far it had come."""
    with_engine(lambda engine: engine.events.remove_subscription(name))
    show({"name": name, "removed": True})
    note("A program that subscribes under this name again begins with what happens from then on.")
