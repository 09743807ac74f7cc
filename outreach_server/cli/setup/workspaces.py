"""`workspaces`: tenants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import click

from outreach import NewWorkspace, Outreach, Workspace, WorkspaceMode, WorkspaceUpdate
from outreach.models import PlaceHours
from outreach.server_support import Option
from outreach_server.cli import documents
from outreach_server.cli.base import Group, actor, state, with_engine
from outreach_server.cli.collecting import collect
from outreach_server.cli.model_options import given_changes, given_fields, options_of, with_params
from outreach_server.cli.output import note, show, show_list
from outreach_server.cli.upkeep.database_place import place_of
from outreach_server.cli.values import NAME, OPENING_HOURS, WORKSPACE
from outreach_server.hours import Opening, place_text, schedule_of
from outreach_server.workspace_names import workspace_called

_COLUMNS = ("id", "name", "mode", "status", "sms_campaigns_enabled", "request_limit", "default_region", "created_at")

_SAME_NAME = click.option("--same-name", is_flag=True, help="Allow the name of another workspace.")
_REGION: Final = Option("The region of local phone numbers, such as US.", metavar="REGION", names="region")
_CAP: Final = Option("At most N requests to one number in 24 hours, over all campaigns.", metavar="N")
_HOURS: Final = "Contact people only from 8 to 21 in their own time zones"
_OVER_CONTACTS: Final = Option("People need approval to start more than N contacts; 0: always.", metavar="N")
_OVER_AMOUNT: Final = Option("People need approval to start what costs more than N; 0: always.", metavar="N")
_LIMIT: Final = Option("Requests a minute over all keys.")
_CREATED: Final = {
    "sms_campaigns_enabled": Option("Whether it may create SMS campaigns.", word="sms-campaigns"),
    "request_limit": _LIMIT._replace(cleared="No request limit."),
    "default_region": _REGION,
    "contact_hours": Option(f"{_HOURS}; by default yes in a live workspace."),
    "frequency_cap": _CAP,
    "skip_unreachable": Option("Leave numbers out of campaigns that a provider has reported as unreachable."),
    "approve_over_contacts": _OVER_CONTACTS,
    "approve_over_amount": _OVER_AMOUNT,
    "managers_export": Option("Whether managers may export personal data in the console."),
}
_CHANGED: Final = {
    "name": Option("A new name."),
    "status": Option("Only an active one sends."),
    **_CREATED,
    "request_limit": _LIMIT._replace(cleared="Remove the request limit."),
    "default_region": _REGION._replace(cleared="Accept international numbers only."),
    "contact_hours": Option(f"{_HOURS}."),
    "frequency_cap": _CAP._replace(cleared="Remove the frequency cap."),
    "approve_over_contacts": _OVER_CONTACTS._replace(cleared="Remove this limit."),
    "approve_over_amount": _OVER_AMOUNT._replace(cleared="Remove this limit."),
    "retention_days": Option(
        "Erase contacts and texts so many days after their end.", "Keep everything for good.", metavar="DAYS"
    ),
}


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
@with_params(*options_of(NewWorkspace, _CREATED))
@_SAME_NAME
def create(name: str, sandbox: bool, same_name: bool, **values: Any) -> None:
    """Create a workspace called NAME."""
    mode = WorkspaceMode.SANDBOX if sandbox else WorkspaceMode.LIVE
    new = NewWorkspace(name=name, mode=mode, **given_fields(values))
    place = place_of(state().database)

    async def work(engine: Outreach) -> Workspace:
        if not same_name:
            await _require_other_name(engine, name)
        return await engine.workspaces.create(new, actor=actor())

    made = with_engine(work, create=True)
    _show(made)
    if place.new:
        note(f"Created a new database: {place.path}")


@workspaces.command()
@click.argument("workspace_id", type=WORKSPACE)
@with_params(*options_of(WorkspaceUpdate, _CHANGED))
@_SAME_NAME
def update(workspace_id: str, same_name: bool, **values: Any) -> None:
    """Change a workspace; a running server applies it within a second."""
    changes = given_changes(values)
    name, change = changes.get("name"), WorkspaceUpdate(**changes)

    async def work(engine: Outreach) -> Workspace:
        if name is not None and not same_name:
            await _require_other_name(engine, name, than=workspace_id)
        return await engine.workspaces.update(workspace_id, change, actor=actor())

    _show(with_engine(work))


async def _require_other_name(engine: Outreach, name: str, *, than: str | None = None) -> None:
    """Check that no other workspace has this name, because commands accept names."""
    if found := await workspace_called(engine, name, other_than=than):
        raise click.ClickException(
            f"There is already a workspace {found.name!r}: {found.id}. Choose another name, or give --same-name; "
            "commands then need its id."
        )


@workspaces.command("set-hours")
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("place")
@click.option(
    "--hours",
    "openings",
    type=OPENING_HOURS,
    multiple=True,
    metavar="'DAYS FROM-TO'",
    help="Contact hours by the contact's own time, within 08:00 to 21:00, such as 'mon-sat 08:00-20:00'; repeat for "
    "more.",
)
@click.option("--source", metavar="TEXT", help="The law or rule that they come from.")
@click.option("--remove", is_flag=True, help="Go by 8 to 21 there again.")
def set_hours(workspace_id: str, place: str, openings: Sequence[Opening], source: str | None, remove: bool) -> None:
    """Set narrower contact hours for PLACE: a country such as FR, or a US state such as US-FL."""
    place = place.upper()
    if (openings or source) if remove else not (openings and source):
        raise click.UsageError("Give --hours and --source, or --remove alone.")
    added = [] if remove else [PlaceHours(place=place, schedule=schedule_of(openings), source=source or "")]

    async def work(engine: Outreach) -> Workspace:
        known = (await engine.workspaces.get(workspace_id)).narrower_hours
        kept = [one for one in known if one.place != place]
        if remove and len(kept) == len(known):
            raise click.ClickException(f"The workspace has no hours of {place}.")
        hours = sorted([*kept, *added], key=lambda one: one.place)
        return await engine.workspaces.update(workspace_id, WorkspaceUpdate(narrower_hours=hours), actor=actor())

    changed = with_engine(work)
    _show(changed)
    if not changed.contact_hours:
        note("The workspace has no contact hours, so that these do not hold: workspaces update ID --contact-hours")


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
    _show(with_engine(lambda engine: engine.workspaces.get(workspace_id)))


def _show(workspace: Workspace) -> None:
    document = documents.resource(workspace)
    if not state().as_json:
        document["narrower_hours"] = "\n".join(map(place_text, document["narrower_hours"]))
    show(document)
