"""`workspaces`: tenants."""

from __future__ import annotations

from typing import Any

import click

from outreach import NewWorkspace, Outreach, Workspace, WorkspaceMode, WorkspaceStatus, WorkspaceUpdate
from outreach_server.cli import documents
from outreach_server.cli.base import Group, actor, state, with_engine
from outreach_server.cli.collecting import collect
from outreach_server.cli.output import note, show, show_list
from outreach_server.cli.upkeep.database_place import place_of
from outreach_server.cli.values import NAME, WORKSPACE, OneOf, Region, changed, clear, integer_of

_LIMIT = integer_of(NewWorkspace, "request_limit")
_CAP = integer_of(NewWorkspace, "frequency_cap")
_COLUMNS = ("id", "name", "mode", "status", "sms_campaigns_enabled", "request_limit", "default_region", "created_at")


_SAME_NAME = click.option("--same-name", is_flag=True, help="Allow the name of another workspace.")


@click.group(cls=Group)
def workspaces() -> None:
    """Create, change and list workspaces: the tenants that everything else belongs to."""


@workspaces.command()
@click.argument("name", type=NAME)
@click.option(
    "--sandbox/--live",
    default=True,
    help="A sandbox (the default) sends everything to the simulators; a live workspace sends to real providers.",
)
@click.option(
    "--sms-campaigns/--no-sms-campaigns",
    "sms_campaigns_enabled",
    default=True,
    help="Whether it may create SMS campaigns.",
)
@click.option("--request-limit", type=_LIMIT, default=600, show_default=True, help="Requests a minute over all keys.")
@click.option("--no-request-limit", is_flag=True, help="No request limit.")
@click.option(
    "--default-region", type=Region(), metavar="REGION", help="The region of local phone numbers, such as US."
)
@click.option(
    "--contact-hours/--no-contact-hours",
    default=None,
    help="Contact people only from 8 to 21 in their own time zones; by default yes in a live workspace.",
)
@click.option(
    "--frequency-cap", type=_CAP, metavar="N", help="At most N requests to one number in 24 hours, over all campaigns."
)
@_SAME_NAME
def create(
    name: str,
    sandbox: bool,
    request_limit: int,
    no_request_limit: bool,
    same_name: bool,
    **fields: Any,
) -> None:
    """Create a workspace called NAME."""
    place = place_of(state().database)

    async def work(engine: Outreach) -> Workspace:
        if not same_name:
            await _require_other_name(engine, name)
        return await engine.workspaces.create(
            NewWorkspace(
                name=name,
                mode=WorkspaceMode.SANDBOX if sandbox else WorkspaceMode.LIVE,
                request_limit=None if no_request_limit else request_limit,
                **fields,
            ),
            actor=actor(),
        )

    made = with_engine(work, create=True)
    show(documents.resource(made))
    if place.new:
        note(f"Created a new database: {place.path}")


@workspaces.command()
@click.argument("workspace_id", type=WORKSPACE)
@click.option("--name", type=NAME, help="A new name.")
@click.option("--status", type=OneOf(list(WorkspaceStatus), case_sensitive=False), help="Only an active one sends.")
@click.option(
    "--sms-campaigns/--no-sms-campaigns",
    "sms_campaigns_enabled",
    default=None,
    help="Whether it may create SMS campaigns.",
)
@click.option("--request-limit", type=_LIMIT, help="Requests a minute over all keys.")
@click.option("--no-request-limit", is_flag=True, help="Remove the request limit.")
@click.option(
    "--default-region", type=Region(), metavar="REGION", help="The region of local phone numbers, such as US."
)
@click.option("--no-default-region", is_flag=True, help="Accept international numbers only.")
@click.option(
    "--contact-hours/--no-contact-hours",
    default=None,
    help="Contact people only from 8 to 21 in their own time zones.",
)
@click.option(
    "--frequency-cap", type=_CAP, metavar="N", help="At most N requests to one number in 24 hours, over all campaigns."
)
@click.option("--no-frequency-cap", is_flag=True, help="Remove the frequency cap.")
@click.option(
    "--retention-days",
    type=integer_of(NewWorkspace, "retention_days"),
    metavar="DAYS",
    help="Erase contacts and texts so many days after their end.",
)
@click.option("--no-retention-days", is_flag=True, help="Keep everything for good.")
@_SAME_NAME
def update(
    workspace_id: str,
    name: str | None,
    same_name: bool,
    **fields: Any,
) -> None:
    """Change a workspace; a running server applies it within a second."""
    cleared = [field for field in fields if field.startswith("no_")]
    changes = changed(name=name, **{field: value for field, value in fields.items() if field not in cleared})
    for field in cleared:
        clear(changes, field.removeprefix("no_"), fields[field])
    if not changes:
        raise click.UsageError("Name something to change; see --help.")
    change = WorkspaceUpdate(**changes)

    async def work(engine: Outreach) -> Workspace:
        if name is not None and not same_name:
            await _require_other_name(engine, name, than=workspace_id)
        return await engine.workspaces.update(workspace_id, change, actor=actor())

    show(documents.resource(with_engine(work)))


async def _require_other_name(engine: Outreach, name: str, *, than: str | None = None) -> None:
    """Check that no other workspace has this name, because commands accept names."""
    async for workspace in engine.workspaces.iter_all():
        if workspace.name.casefold() == name.casefold() and workspace.id != than:
            raise click.ClickException(
                f"There is already a workspace {workspace.name!r}: {workspace.id}. Choose another name, or give "
                "--same-name; commands then need its id."
            )


@workspaces.command("list")
def list_() -> None:
    """List all workspaces, oldest first."""
    found = with_engine(lambda engine: collect(engine.workspaces.iter_all()))
    show_list(
        [documents.resource(item) for item in found],
        _COLUMNS,
        empty="There are no workspaces yet. Make one with: outreach-server workspaces create NAME",
    )


@workspaces.command("show")
@click.argument("workspace_id", type=WORKSPACE)
def show_(workspace_id: str) -> None:
    """Show one workspace."""
    show(documents.resource(with_engine(lambda engine: engine.workspaces.get(workspace_id))))
