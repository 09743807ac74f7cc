"""`trunks`: the SIP trunks of calling campaigns."""

from __future__ import annotations

import click

from outreach import NewTrunk, TrunkUpdate
from outreach_server.cli import documents
from outreach_server.cli.base import Group, actor, with_engine
from outreach_server.cli.collecting import collect
from outreach_server.cli.output import show, show_list
from outreach_server.cli.values import NAME, TRUNK, WORKSPACE, changed, clear


@click.group(cls=Group)
def trunks() -> None:
    """Create, change, remove and list SIP trunks."""


@trunks.command("create")
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("name", type=NAME)
@click.option("--address", type=NAME, required=True, help="SIP host or URI at which the trunk ends.")
@click.option("--provider-trunk-id", metavar="ID", help="Its identifier at the voice provider.")
def create_trunk(workspace_id: str, name: str, address: str, provider_trunk_id: str | None) -> None:
    """Create a trunk called NAME."""
    made = with_engine(
        lambda engine: engine.trunks.create(
            workspace_id, NewTrunk(name=name, address=address, provider_trunk_id=provider_trunk_id), actor=actor()
        )
    )
    show(documents.trunk(made))


@trunks.command("list")
@click.argument("workspace_id", type=WORKSPACE)
def list_trunks(workspace_id: str) -> None:
    """List a workspace's trunks."""
    found = with_engine(lambda engine: collect(engine.trunks.iter_all(workspace_id)))
    show_list(
        [documents.trunk(item) for item in found],
        ("id", "name", "address", "provider_trunk_id", "created_at"),
        empty="The workspace has no trunks.",
    )


@trunks.command("update")
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("trunk_id", type=TRUNK)
@click.option("--name", type=NAME, help="A new name.")
@click.option("--address", type=NAME, help="SIP host or URI at which the trunk ends.")
@click.option("--provider-trunk-id", metavar="ID", help="Its identifier at the voice provider.")
@click.option("--no-provider-trunk-id", is_flag=True, help="Forget that identifier.")
def update_trunk(
    workspace_id: str,
    trunk_id: str,
    name: str | None,
    address: str | None,
    provider_trunk_id: str | None,
    no_provider_trunk_id: bool,
) -> None:
    """Change a trunk, for calls placed from then on."""
    changes = changed(name=name, address=address, provider_trunk_id=provider_trunk_id)
    clear(changes, "provider_trunk_id", no_provider_trunk_id)
    if not changes:
        raise click.UsageError("Name something to change; see --help.")
    change = TrunkUpdate(**changes)
    show(documents.trunk(with_engine(lambda e: e.trunks.update(workspace_id, trunk_id, change, actor=actor()))))


@trunks.command("remove")
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("trunk_id", type=TRUNK)
def remove_trunk(workspace_id: str, trunk_id: str) -> None:
    """Remove a trunk, unless a campaign or a number uses it."""
    gone = with_engine(lambda engine: engine.trunks.remove(workspace_id, trunk_id, actor=actor()))
    show({"id": gone.id, "name": gone.name, "removed": True})
