"""`stop` and `audit`: the emergency stop, and the audit trail."""

from __future__ import annotations

from collections.abc import Sequence

import click

from outreach import Campaign, Outreach
from outreach.http import to_json
from outreach.models import AuditEntry
from outreach_server.cli import documents
from outreach_server.cli.base import Command, actor, state, with_engine
from outreach_server.cli.collecting import collect
from outreach_server.cli.output import console, echo_json, listing, note, plural, show_list
from outreach_server.cli.values import WORKSPACE


@click.command(cls=Command)
@click.argument("workspace_id", type=WORKSPACE, required=False)
def stop(workspace_id: str | None) -> None:
    """Pause all active and scheduled campaigns at once, in one workspace or in all."""

    async def work(engine: Outreach) -> Sequence[Campaign]:
        if workspace_id is not None:
            await engine.workspaces.get(workspace_id)
        return await engine.campaigns.pause_all(workspace_id, actor=actor())

    paused = [documents.campaign(item) for item in with_engine(work)]
    if state().as_json:
        echo_json({"paused": paused})
        return
    if paused:
        console().print(listing(paused, ("id", "workspace_id", "name", "status")))
    note(f"Paused {plural(len(paused), 'campaign')}.")


@click.command(cls=Command)
@click.argument("workspace_id", type=WORKSPACE, required=False)
@click.option("--actor", "by", metavar="ACTOR", help="Only what this actor did, such as user:ID; in one workspace.")
@click.option("--action", metavar="ACTION", help="Only this action, such as key.revoke; in one workspace.")
@click.option("--subject", metavar="ID", help="Only what was done to the object with this id; in one workspace.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=1000, show_default=True, help="How many entries.")
def audit(workspace_id: str | None, by: str | None, action: str | None, subject: str | None, limit: int) -> None:
    """Show who did what, newest first, in one workspace or in all."""
    if workspace_id is None and (by, action, subject) != (None, None, None):
        raise click.UsageError("--actor, --action and --subject need a WORKSPACE_ID.")

    async def work(engine: Outreach) -> Sequence[AuditEntry]:
        if workspace_id is not None:
            await engine.workspaces.get(workspace_id)
        entries = engine.audit.iter_all(workspace_id, actor=by, action=action, subject=subject)
        return await collect(entries, limit)

    show_list(
        [to_json(item) for item in with_engine(work)],
        ("at", "actor", "action", "subject", "detail"),
        empty="Nothing has been done yet.",
    )
