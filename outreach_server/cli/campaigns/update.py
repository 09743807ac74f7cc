"""`campaigns update`: changing a campaign, or what it has not sent yet."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, Final

import click

from outreach import Campaign, CampaignStatus, CampaignUpdate, Outreach
from outreach.errors import Problem
from outreach.http import to_json
from outreach.server_support import Option
from outreach_server.cli import documents
from outreach_server.cli.base import Command, actor, with_campaign
from outreach_server.cli.campaigns.options import carrier_of
from outreach_server.cli.campaigns.show import show_campaign
from outreach_server.cli.campaigns.times import TIMES, business_hours, check_zone, holiday_calendar, read_schedule
from outreach_server.cli.model_options import options_of, with_params
from outreach_server.cli.output import note
from outreach_server.cli.problems import explain_start
from outreach_server.cli.setup.hours import Opening
from outreach_server.cli.values import CAMPAIGN, changed, clear, options

_FIELDS: Final = {
    "name": Option("A new name."),
    "body": Option("The message template.", word="message"),
    "from_number": Option("The sending number.", word="from", metavar="NUMBER"),
    "carrier": Option("The carrier that sends; by default that of a new sending number.", names="carrier"),
    "rate_per_minute": Option("Messages a minute.", word="rate"),
    "replace_characters": Option("Whether curly quotes, dashes and the like are sent in plain characters."),
    "flow_id": Option("The automation flow that drives it.", word="flow", names="flow"),
    "agent_id": Option("The agent of a calling campaign.", word="agent", names="agent"),
    "batch_concurrency": Option("Calls at a time."),
    "description": Option("For people."),
}


@click.command("update", cls=Command)
@click.argument("campaign_id", type=CAMPAIGN)
@with_params(*options_of(CampaignUpdate, _FIELDS))
@options(*TIMES)
@click.option("--no-schedule-at", is_flag=True, help="Begin at once after the start.")
@click.option("--no-expires-at", is_flag=True, help="Never expire.")
@click.option("--no-hours", is_flag=True, help="Contact people at any hour of the day.")
@click.option("--no-holidays", is_flag=True, help="Contact people on holidays too.")
def update_(
    campaign_id: str,
    schedule_at: datetime | None,
    expires_at: datetime | None,
    hours: Sequence[Opening],
    timezone: str | None,
    country: str | None,
    dates: Sequence[date],
    no_schedule_at: bool,
    no_expires_at: bool,
    no_hours: bool,
    no_holidays: bool,
    **given: Any,
) -> None:
    """Change a campaign; one that has not started becomes ready once nothing is missing.

    Of one that has started, text, rate, hours and expiry change for what has not been sent. New hours or holidays
    replace all previous ones.
    """
    check_zone(timezone, hours, (schedule_at, expires_at), bool(country or dates))
    changes = changed(**given, scheduled_start_at=schedule_at, scheduled_expires_at=expires_at)
    clear(changes, "scheduled_start_at", no_schedule_at, option="schedule-at")
    clear(changes, "scheduled_expires_at", no_expires_at, option="expires-at")
    _exclude("hours", bool(hours), no_hours)
    _exclude("holidays", bool(country or dates), no_holidays)
    times = bool(hours or no_hours or country or dates or no_holidays)
    if not changes and not times:
        raise click.UsageError("Name something to change; see --help.")

    async def work(engine: Outreach, before: Campaign) -> tuple[Campaign, Sequence[Problem]]:
        workspace_id = before.workspace_id
        wanted = await _with_carrier(engine, workspace_id, changes)
        schedule = read_schedule(schedule_at, expires_at, timezone or before.timezone)
        wanted |= changed(scheduled_start_at=schedule.begins_at, scheduled_expires_at=schedule.expires_at)
        observed = before.business_hours is not None and before.business_hours.enabled
        if hours or no_hours or (timezone is not None and not observed):
            wanted["business_hours"] = business_hours(hours, timezone, before.batch_concurrency)
        if country or dates or no_holidays:
            wanted["holidays"] = holiday_calendar(country, dates)
        updated = await engine.campaigns.update(workspace_id, campaign_id, CampaignUpdate(**wanted), actor=actor())
        if updated.status not in {CampaignStatus.DRAFT, CampaignStatus.READY}:
            return updated, ()
        return updated, await engine.campaigns.start_problems(workspace_id, campaign_id)

    updated, missing = with_campaign(campaign_id, work)
    show_campaign({**documents.campaign(updated), "missing": to_json(missing)}, updated.timezone)
    if missing:
        note(explain_start(missing, updated))


async def _with_carrier(engine: Outreach, workspace_id: str, changes: dict[str, Any]) -> dict[str, Any]:
    """Add the carrier of a new sending number, unless one is given or none is known."""
    if "carrier" in changes or not changes.get("from_number"):
        return dict(changes)
    carrier = await carrier_of(engine, await engine.workspaces.get(workspace_id), changes["from_number"])
    return {**changes, **({} if carrier is None else {"carrier": carrier})}


def _exclude(name: str, is_given: bool, is_cleared: bool) -> None:
    if is_given and is_cleared:
        raise click.UsageError(f"--{name} and --no-{name} exclude each other.")
