"""`messages`: single messages, and inbound ones."""

from __future__ import annotations

import click

from outreach.http import to_json
from outreach_server.cli import documents
from outreach_server.cli.base import Group, with_engine
from outreach_server.cli.collecting import collect
from outreach_server.cli.output import show_list
from outreach_server.cli.values import WORKSPACE

_LIMIT = click.option(
    "--limit", type=click.IntRange(1, 100_000), default=1000, show_default=True, help="The most to list."
)


@click.group(cls=Group)
def messages() -> None:
    """List single messages and inbound ones."""


@messages.command("list")
@click.argument("workspace_id", type=WORKSPACE)
@_LIMIT
def list_(workspace_id: str, limit: int) -> None:
    """List a workspace's single messages, newest first; those of campaigns are not among them."""
    found = with_engine(lambda engine: collect(engine.messages.iter_all(workspace_id), limit))
    show_list(
        [documents.message(item) for item in found],
        ("id", "to", "from_number", "carrier", "status", "reason", "purpose", "created_at"),
        empty="There are no messages.",
    )


@messages.command("inbound")
@click.argument("workspace_id", type=WORKSPACE)
@click.option("--unclear", is_flag=True, help="Only those that may be an unrecognised opt-out.")
@_LIMIT
def inbound(workspace_id: str, unclear: bool, limit: int) -> None:
    """List the messages to a workspace's numbers, newest first."""
    found = with_engine(lambda engine: collect(engine.messages.iter_inbound(workspace_id, unclear=unclear), limit))
    show_list(
        [to_json(item) for item in found],
        ("id", "provider", "from_number", "to", "keyword", "unclear", "body", "media", "received_at"),
        empty="There are no messages.",
    )
