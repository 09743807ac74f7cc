"""`keys`: API keys of workspaces."""

from __future__ import annotations

import click

from outreach import Outreach
from outreach.models import API_SCOPES, DEFAULT_SCOPES, ApiKey, ApiScope
from outreach_server.cli import documents
from outreach_server.cli.base import Group, actor, with_engine
from outreach_server.cli.collecting import collect
from outreach_server.cli.output import note, show, show_list
from outreach_server.cli.values import KEY, WORKSPACE, OneOf


@click.group(cls=Group)
def keys() -> None:
    """Create, list and revoke API keys."""


@keys.command()
@click.argument("workspace_id", type=WORKSPACE)
@click.option("--name", default="", help="What the key is for.")
@click.option(
    "--scope",
    "scopes",
    type=OneOf(API_SCOPES),
    multiple=True,
    default=DEFAULT_SCOPES,
    show_default=True,
    help="What it may do; may be given several times.",
)
def create(workspace_id: str, name: str, scopes: tuple[ApiScope, ...]) -> None:
    """Create an API key, which is shown only this once."""
    made = with_engine(lambda engine: engine.api_keys.create(workspace_id, name=name, scopes=scopes, actor=actor()))
    show({"id": made.id, "api_key": made.api_key, "scopes": [one for one in API_SCOPES if one in scopes]})
    note("Keep the key now: only its hash is stored, it cannot be shown again.")


@keys.command("list")
@click.argument("workspace_id", type=WORKSPACE)
def list_(workspace_id: str) -> None:
    """List a workspace's keys, revoked ones included."""
    found = with_engine(lambda engine: collect(engine.api_keys.iter_all(workspace_id)))
    show_list(
        [documents.resource(item) for item in found],
        ("id", "name", "scopes", "hint", "made_by", "created_at", "last_used_at", "revoked_at"),
        empty=f"The workspace has no keys. Make one with: outreach-server keys create {workspace_id}",
    )


@keys.command()
@click.argument("key_id", type=KEY)
def revoke(key_id: str) -> None:
    """Revoke a key; a running server rejects it within a second."""

    async def work(engine: Outreach) -> ApiKey:
        workspace_id = (await engine.api_keys.get_anywhere(key_id)).workspace_id
        return await engine.api_keys.revoke(workspace_id, key_id, actor=actor())

    show(documents.resource(with_engine(work)))
