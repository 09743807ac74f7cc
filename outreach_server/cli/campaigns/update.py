"""`campaigns update`: changing a campaign, or what it has not sent yet."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any, Final

import click

from outreach import Campaign, CampaignStatus, CampaignUpdate, Outreach
from outreach.errors import Problem
from outreach.http import to_json
from outreach.server_support import Option
from outreach_server.cli import documents
from outreach_server.cli.base import Command, actor, with_campaign
from outreach_server.cli.campaigns.options import CALLER_ID, SENDERS, caller_ids_of, carrier_of, sender_fields
from outreach_server.cli.campaigns.show import show_campaign
from outreach_server.cli.campaigns.times import TIMES, business_hours, check_zone, holiday_calendar, read_schedule
from outreach_server.cli.model_options import NO_CHANGE, ClearOption, given_fields, options_of, with_params
from outreach_server.cli.output import note
from outreach_server.cli.problems import explain_start
from outreach_server.cli.values import CAMPAIGN, options

_FIELDS: Final = {
    "name": Option("A new name."),
    "body": Option("The message template.", word="message"),
    "carrier": Option("The carrier that sends; by default that of a new sending number.", names="carrier"),
    "rate_per_minute": Option("Messages a minute.", word="rate"),
    "replace_characters": Option("Whether curly quotes, dashes and the like are sent in plain characters."),
    "stay_open": Option("Whether it completes only once it is closed."),
    "flow_id": Option("The automation flow that drives it.", word="flow", names="flow"),
    "agent_id": Option("The agent of a calling campaign.", word="agent", names="agent"),
    "batch_concurrency": Option("Calls at a time."),
    "retry_voicemail": Option("Whether a voicemail that got the agent's message is called again."),
    "description": Option("For people."),
}


@click.command("update", cls=Command)
@click.argument("campaign_id", type=CAMPAIGN)
@with_params(*options_of(CampaignUpdate, _FIELDS))
@SENDERS
@options(*TIMES)
@with_params(
    ClearOption("schedule_at", "Begin at once after the start."),
    ClearOption("expires_at", "Never expire."),
    ClearOption("hours", "Contact people at any hour of the day."),
)
@click.option(
    *CALLER_ID,
    metavar="NUMBER[=COUNT]",
    multiple=True,
    help="Calls: a number to call from, for so many contacts in turn; repeat.",
)
@click.option("--no-caller-ids", is_flag=True, help="Call from the usual number.")
@click.option("--no-holidays", is_flag=True, help="Contact people on holidays too.")
def update_(
    campaign_id: str,
    country: str | None,
    dates: Sequence[date],
    no_holidays: bool,
    caller_ids: Sequence[str],
    no_caller_ids: bool,
    **values: Any,
) -> None:
    """Change a campaign; one that has not started becomes ready once nothing is missing.

    Of one that has started, text, rate, hours and expiry change for what has not been sent. New hours or holidays
    replace all previous ones.
    """
    holidays = bool(country or dates)
    if holidays and no_holidays:
        raise click.UsageError("--holidays and --no-holidays exclude each other.")
    if caller_ids and no_caller_ids:
        raise click.UsageError("--caller-id and --no-caller-ids exclude each other.")
    changes = given_fields(values)
    changes |= sender_fields(changes.pop("senders", ()))
    times = {name: changes.pop(name) for name in ("schedule_at", "expires_at", "hours", "timezone") if name in changes}
    moments = times.get("schedule_at"), times.get("expires_at")
    hours, timezone = times.get("hours") or (), times.get("timezone")
    check_zone(timezone, hours, moments, holidays)
    if not (changes or times or holidays or no_holidays or caller_ids or no_caller_ids):
        raise click.UsageError(NO_CHANGE)

    async def work(engine: Outreach, before: Campaign) -> tuple[Campaign, Sequence[Problem]]:
        workspace_id = before.workspace_id
        wanted = await _with_carrier(engine, workspace_id, changes)
        schedule = read_schedule(*moments, timezone or before.timezone)
        if "schedule_at" in times:
            wanted["scheduled_start_at"] = schedule.begins_at
        if "expires_at" in times:
            wanted["scheduled_expires_at"] = schedule.expires_at
        observed = before.business_hours is not None and before.business_hours.enabled
        if "hours" in times or (timezone is not None and not observed):
            wanted["business_hours"] = business_hours(hours, timezone, before.batch_concurrency)
        if holidays or no_holidays:
            wanted["holidays"] = holiday_calendar(country, dates)
        if caller_ids or no_caller_ids:
            workspace = await engine.workspaces.get(workspace_id)
            wanted["cli_group"] = await caller_ids_of(engine, workspace, caller_ids) or None
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
    sender = changes.get("from_number") or next(iter(changes.get("from_numbers", ())), None)
    if "carrier" in changes or not sender:
        return dict(changes)
    carrier = await carrier_of(engine, await engine.workspaces.get(workspace_id), sender)
    return {**changes, **({} if carrier is None else {"carrier": carrier})}
