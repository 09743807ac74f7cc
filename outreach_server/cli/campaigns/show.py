"""`campaigns show` and `recipients`: a campaign's state, and each of its contacts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import click

from outreach import Campaign, Outreach, RecipientStatus
from outreach.http import to_json
from outreach.models import Forecast
from outreach_server.cli import documents
from outreach_server.cli.base import Command, state, with_campaign
from outreach_server.cli.campaigns import explained
from outreach_server.cli.campaigns.forecast import forecast_lines
from outreach_server.cli.campaigns.panel import groups_table
from outreach_server.cli.campaigns.picture import Snapshot, SnapshotReader, hints, message_counts, messages_text
from outreach_server.cli.output import console, echo_json, fields, note, stream_array, stream_lines
from outreach_server.cli.values import CAMPAIGN, OneOf
from outreach_server.hours import hours_text

_WIDTHS = {
    "position": 8,
    "phone_number": 20,
    "phone": 16,
    "external_id": 14,
    "status": 11,
    "reason": 16,
    "attempts": 8,
    "due_at": 19,
    "ended_at": 19,
    "error_code": 10,
    "why": 0,
}
_HEAD = ("id", "workspace_id", "name", "description", "channel", "status", "effective_status")
_ALWAYS = frozenset(
    {
        *("id", "workspace_id", "name", "channel", "status", "effective_status"),
        *("total_recipients", "pending_calls", "completed_calls", "successful_calls", "failed_calls", "created_at"),
    }
)
"""The fields shown of every campaign; others only if they have a value."""
_BRIEF = (
    *_HEAD,
    *(
        "pause_reason",
        "blocked_by",
        "blocked_until",
        "sms_message_source",
        "sms_message_body",
        "sms_flow_id",
        "sms_carrier",
    ),
    *("sms_from_number", "sms_from_numbers", "sms_rate_per_minute", "replace_characters", "stay_open"),
    *("external_id", "metadata"),
    *("agent_id", "batch_concurrency", "sip_trunk_id", "cli_group_config"),
    *("double_dial", "retry_voicemail", "ivr_enabled", "call_screen_enabled", "schedule_type", "scheduled_start_at"),
    *("scheduled_expires_at", "business_hours_config", "holidays_config", "total_recipients", "pending_calls"),
    *("completed_calls", "successful_calls", "failed_calls", "created_at", "started_at", "completed_at"),
    *("archived_at", "erased_at"),
)
_NOT_FOR_PEOPLE = frozenset(
    {
        *("business_hours_only", "timezone", "updated_at", "cli_mode", "csv_column_headers", "sms_mode", "agent"),
        *("pause_why", "open_recipients", "blockers"),
    }
)
"""Fields that people need not see, because others say the same. A field in no list comes last."""


@click.command("show", cls=Command)
@click.argument("campaign_id", type=CAMPAIGN)
def show_(campaign_id: str) -> None:
    """Show a campaign, and how many of its recipients are in which state and why."""

    async def work(engine: Outreach, campaign: Campaign) -> tuple[Snapshot, list[documents.Document], Forecast]:
        picture = await SnapshotReader(engine, campaign.workspace_id, campaign_id).now()
        failures = await engine.campaigns.provider_failures(campaign.workspace_id, campaign_id)
        forecast = await engine.campaigns.forecast(campaign.workspace_id, campaign_id)
        return picture, explained.counted(failures), forecast

    picture, failures, forecast = with_campaign(campaign_id, work)
    document = {**documents.campaign(picture.campaign), **documents.blockers(picture.blockers)}
    if state().as_json:
        counts = {"groups": picture.documents, "messages": message_counts(picture.campaign, picture.sent)}
        missing = to_json(picture.missing)
        ends = {"forecast_ends_at": to_json(forecast.ends_at)}
        echo_json({**document, "missing": missing, **counts, "failures": failures, **ends})
        return
    show_campaign(document, picture.campaign.timezone)
    out = console()
    for text in hints(picture):
        out.print(text)
    out.print(groups_table(picture.documents, picture.campaign.timezone))
    messages = messages_text(picture.campaign, picture.sent)
    if messages:
        out.print(messages)
    for text in forecast_lines(forecast, picture.campaign.timezone):
        out.print(text)
    if failures:
        out.print("What went wrong at the provider, by how many requests:")
        out.print(explained.counted_table(failures))


@click.command("recipients", cls=Command)
@click.argument("campaign_id", type=CAMPAIGN)
@click.option("--status", type=OneOf(list(RecipientStatus), case_sensitive=False), help="In this state only.")
@click.option("--external-id", metavar="ID", help="Only those that your application knows by this id.")
@click.option("--limit", type=click.IntRange(1), help="The first so many; by default all.")
def recipients_(campaign_id: str, limit: int | None, **wanted: Any) -> None:
    """List a campaign's recipients with their status and its reason."""
    as_json = state().as_json
    legend = explained.Legend()

    async def found(engine: Outreach, campaign: Campaign) -> AsyncIterator[documents.Document]:
        count = 0
        async for one in engine.campaigns.iter_outcomes(campaign.workspace_id, campaign_id, **wanted):
            shown = {
                **documents.recipient(one.recipient, campaign, one.report),
                **explained.failure(one.failure),
            }
            legend.add(shown)
            # A line has room for one sentence; the provider's explanation says more.
            yield shown if as_json else {**shown, "why": shown["meaning"] or shown["why"]}
            count += 1
            if count == limit:
                return

    async def work(engine: Outreach, campaign: Campaign) -> None:
        rows = found(engine, campaign)
        if as_json:
            await stream_array(rows)
        elif await stream_lines(rows, _WIDTHS, campaign.timezone) == 0:
            note("No recipients match.")

    with_campaign(campaign_id, work)
    table = legend.table()
    if table is not None and not as_json:
        click.echo("\nWhat went wrong at the provider:")
        console().print(table)


def show_campaign(document: documents.Document, zone: str) -> None:
    """Print a campaign: its document, or for people the fields with a value, and times of a zone."""
    if state().as_json:
        echo_json(document)
        return
    rest = (name for name in document if name not in _NOT_FOR_PEOPLE)
    shown = {name: document[name] for name in (*_BRIEF, *rest) if name in _ALWAYS or document.get(name)}
    if document["channel"] == "sms":
        shown.pop("batch_concurrency", None)
    hours, holidays = document["business_hours_config"], document["holidays_config"]
    if hours:
        shown["business_hours_config"] = hours_text(hours)
    if holidays:
        days = [day for day in holidays["holidays"] if day["enabled"]]
        of = "-".join(part for part in (holidays["country"], holidays.get("subdivision")) if part) or "own dates"
        shown["holidays_config"] = f"{of}: {len(days)} dates"
    console().print(fields(documents.in_words(shown), zone))
