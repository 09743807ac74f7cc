"""`status`: who dispatches, what runs, and what needs a person, with the command for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import attrs
import click

from outreach import EngineStatus, Outreach
from outreach.models import DispatchOverview, PausedCampaign
from outreach_server.cli import documents
from outreach_server.cli.base import Command, state, with_engine
from outreach_server.cli.nobody import SERVE
from outreach_server.cli.output import cell, echo_json
from outreach_server.cli.values import WORKSPACE

_PROCESSES: Final = {
    "this_process": "this process dispatches",
    "another_process": "a process dispatches",
    "nobody": "nobody is dispatching",
}

_LONGER: Final = {
    "paused": "There are more campaigns that the engine has paused; the oldest are shown.",
    "unknown": "There are more unknown requests; the oldest are counted.",
    "waits": "There are more throttled providers; the first to end are shown.",
    "held": "There are more held numbers; the latest are shown.",
}
"""The hint for an incomplete list, by its name in the status."""


@attrs.frozen(kw_only=True)
class Finding:
    """Something that needs a person.

    Attributes:
        kind: `nobody_dispatches`, `adapter_not_usable`, `campaign_paused`, `requests_unknown` or `number_held`.
        workspace_id: The workspace; None for the whole database.
        id: The campaign's id, the number, or the adapter's name; else None.
        why: What it is, in a sentence.
        commands: What fixes it, in this order; for `number_held` one for each decision.
    """

    kind: str
    workspace_id: str | None
    id: str | None
    why: str
    commands: Sequence[str]


@click.command(cls=Command)
@click.argument("workspace_id", type=WORKSPACE, required=False)
def status(workspace_id: str | None) -> None:
    """Show who dispatches, what runs, and what needs a person, in one workspace or in all."""

    async def work(engine: Outreach) -> EngineStatus:
        return await engine.status(workspace_id)

    found = with_engine(work)
    needed = list(findings(found))
    if state().as_json:
        echo_json({**documents.plain(found), "findings": documents.plain(needed)})
        return
    for line in lines(found, needed):
        click.echo(line)


def findings(found: EngineStatus) -> Iterator[Finding]:
    """Yield what needs a person, most urgent first."""
    if found.dispatching.problem is not None:
        yield Finding(
            kind="nobody_dispatches",
            workspace_id=None,
            id=None,
            why=found.dispatching.problem,
            commands=[SERVE],
        )
    for problem in found.adapter_problems:
        yield Finding(kind="adapter_not_usable", workspace_id=None, id=problem.name, why=problem.message, commands=[])
    for campaign in found.paused:
        where = "" if found.workspace_id is not None else f" of workspace {campaign.workspace_id}"
        yield Finding(
            kind="campaign_paused",
            workspace_id=campaign.workspace_id,
            id=campaign.id,
            why=f"Campaign {campaign.name!r}{where} is paused: {campaign.why}.",
            commands=list(_resuming(campaign)),
        )
    for group in found.unknown:
        since = documents.plain(group.since)
        many = f"{group.count} requests, the oldest of {since}" if group.count > 1 else f"a request of {since}"
        yield Finding(
            kind="requests_unknown",
            workspace_id=group.workspace_id,
            id=None,
            why=f"The outcome of {many} is unknown.",
            commands=[f"outreach-server dispatches unknown {group.workspace_id}"],
        )
    for entry in found.held:
        decide = f"outreach-server unsubscribes decide {entry.workspace_id} {entry.phone}"
        yield Finding(
            kind="number_held",
            workspace_id=entry.workspace_id,
            id=entry.phone,
            why=f"{entry.phone} may have opted out, and is held: {entry.evidence or 'no evidence'}",
            commands=[f"{decide} --opted-out", f"{decide} --not-opted-out"],
        )


def _resuming(campaign: PausedCampaign) -> Iterator[str]:
    if campaign.reason == "provider_auth" and campaign.provider is not None and campaign.provider_installed:
        yield f"outreach-server accounts connect {campaign.workspace_id} {campaign.provider}"
    if campaign.reason == "agent_unavailable" and campaign.agent_id is not None:
        yield f"outreach-server agents update {campaign.agent_id} --active"
    yield f"outreach-server campaigns resume {campaign.id}"


def lines(found: EngineStatus, needed: Sequence[Finding]) -> Iterator[str]:
    """Yield a status for people, in whole lines that can be copied."""
    yield f"Dispatching: {_dispatching(found.dispatching)}"
    yield f"Campaigns:   {found.active_campaigns} active, {found.scheduled_campaigns} scheduled"
    for wait in found.waits:
        until = documents.plain(wait.until)
        yield f"Throttled:   {wait.provider} for workspace {wait.workspace_id}, sending paused until {until}"
    yield ""
    yield "What needs a person:" if needed else "Nothing needs a person."
    for finding in needed:
        yield f"- {cell(finding.why)}"
        for command in finding.commands:
            yield f"    {command}"
    for name in found.truncated:
        yield _LONGER[name]


def _dispatching(dispatching: DispatchOverview) -> str:
    who = _PROCESSES[dispatching.by]
    if dispatching.heartbeat_seconds_ago is None:
        return who
    return f"{who}; the last heartbeat was {dispatching.heartbeat_seconds_ago:,.0f} s ago"
