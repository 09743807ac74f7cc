"""`status`: who dispatches, what runs, and what needs a person, with the command for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import click

from outreach import EngineStatus
from outreach.http import to_json
from outreach.models import DispatchOverview
from outreach_server.cli.base import Command, state, with_engine
from outreach_server.cli.durations import until_text
from outreach_server.cli.output import cell, echo_json
from outreach_server.cli.problems import EXIT_STATUS, MARKS
from outreach_server.cli.values import WORKSPACE
from outreach_server.words import duration, shortened

_PROCESSES: Final = {
    "this_process": "this process dispatches",
    "another_process": "a process dispatches",
    "no_process": "nobody is dispatching",
}

_LONGER: Final = {
    "running": "There are more active campaigns; the oldest are shown.",
    "paused": "There are more campaigns that the engine has paused; the oldest are shown.",
    "taken_back": "There are more campaigns whose approved start was taken back; the oldest are shown.",
    "schedules": "There are more schedules that the engine has paused.",
    "blocked_runs": "There are more runs of schedules that were not started.",
    "webhooks": "There are more webhooks that the engine has disabled.",
    "failing": "There are more webhooks that take nothing.",
    "unknown": "There are more unknown requests; the oldest are counted.",
    "throttles": "There are more throttled providers; the first to end are shown.",
    "held": "There are more held numbers; the latest are shown.",
    "accounts": "There are more accounts; not all could be looked at or shown.",
    "silent": "There are more accounts that get no receipts.",
}
"""The hint for an incomplete list, by its name in the status."""

_MAX_RUNNING: Final = 10
_MAX_NAME: Final = 40
_UNITS: Final = ("bytes", "KB", "MB", "GB", "TB")


@click.command(cls=Command)
@click.argument("workspace_id", type=WORKSPACE, required=False)
def status(workspace_id: str | None) -> None:
    """Show who dispatches, what runs, and what needs a person, in one workspace or in all.

    Exits with 0 if nothing needs a person, 3 if something does, 4 if nothing is sent or soon will not be.
    """
    found = with_engine(lambda engine: engine.status(workspace_id))
    if state().as_json:
        echo_json({**to_json(found), "severity": found.severity})
    else:
        for line in lines(found):
            click.echo(line)
    click.get_current_context().exit(EXIT_STATUS[found.severity])


def lines(found: EngineStatus) -> Iterator[str]:
    """Yield a status for people, in whole lines that can be copied."""
    yield f"Dispatching: {_dispatching(found.dispatching)}"
    waits = f"what is due has waited for {duration(found.lag_seconds)}" if found.lag_seconds >= 1 else "nothing waits"
    yield f"Lag:         {waits}"
    yield f"Campaigns:   {found.active_campaigns:,} active, {found.scheduled_campaigns:,} scheduled"
    yield from _running(found)
    if found.disk is not None:
        disk = found.disk
        sizes = f"the database has {_size(disk.database_bytes)}, its log {_size(disk.log_bytes)}"
        yield f"Disk:        {_size(disk.free_bytes)} free; {sizes} ({disk.path})"
    for wait in found.throttles:
        until = until_text(wait.until, found.at)
        yield f"Throttled:   {wait.provider} for workspace {wait.workspace_id}, sending paused until {until}"
    yield ""
    yield "What needs a person:" if found.findings else "Nothing needs a person."
    for finding in found.findings:
        yield f"{MARKS[finding.severity]} {cell(finding.message)}"
        for command in finding.commands:
            yield f"    {command}"
    for name in found.truncated:
        yield _LONGER[name]


def _running(found: EngineStatus) -> Iterator[str]:
    for campaign in found.running[:_MAX_RUNNING]:
        name = cell(shortened(campaign.name, _MAX_NAME))
        share = 100 * campaign.ended // max(1, campaign.recipients)
        yield f"  {name}: {campaign.ended:,} of {campaign.recipients:,} ended, {share} %"
        yield f"    outreach-server campaigns watch {campaign.id}"
    more = found.active_campaigns - _MAX_RUNNING
    if more > 0:
        yield f"  and {more:,} more"


def _dispatching(dispatching: DispatchOverview) -> str:
    who = _PROCESSES[dispatching.by]
    if dispatching.heartbeat_seconds_ago is None:
        return who
    return f"{who}; the last heartbeat was {dispatching.heartbeat_seconds_ago:,.0f} s ago"


def _size(count: int, units: Sequence[str] = _UNITS) -> str:
    size, unit = float(count), 0
    while size >= 1000 and unit < len(units) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.0f} {units[unit]}" if unit == 0 or size >= 100 else f"{size:.1f} {units[unit]}"
