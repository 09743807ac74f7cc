"""`campaigns clone` and `follow-up`: campaigns made of another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from outreach import Campaign, Outreach
from outreach.http import to_json
from outreach.models import CampaignCreated, FollowUpCreated, LeaveOut, NewFollowUp
from outreach_server.cli import documents
from outreach_server.cli.base import Command, actor, state, with_campaign
from outreach_server.cli.campaigns.audience import LEAVE_OUT_OPTIONS, audience_document, show_audience
from outreach_server.cli.output import echo_json, note, plural
from outreach_server.cli.values import CAMPAIGN, OneOf, Reader, options, text_of


def _results(text: str) -> Sequence[str]:
    """Return names with commas between them."""
    names = [part.strip() for part in text.split(",") if part.strip()]
    if not names:
        raise ValueError("Name at least one result, such as failed,no_answer.")
    return names


@click.command("clone", cls=Command)
@click.argument("campaign_id", type=CAMPAIGN)
@click.option("--name", type=text_of(NewFollowUp, "name"), help='The new name; by default the old one with "(copy)".')
@options(*LEAVE_OUT_OPTIONS)
def clone_(campaign_id: str, name: str | None, left_out_campaigns: Sequence[str], left_out_days: int | None) -> None:
    """Create a campaign like another one, with its contacts; start and expiry are not copied. Nothing is sent."""

    async def work(engine: Outreach, campaign: Campaign) -> CampaignCreated:
        leave_out = LeaveOut(campaigns=left_out_campaigns, contacted_within_days=left_out_days)
        return await engine.campaigns.clone(
            campaign.workspace_id, campaign_id, name=name, leave_out=leave_out, actor=actor()
        )

    _show_created(with_campaign(campaign_id, work), {}, left_out_days)


@click.command("follow-up", cls=Command)
@click.argument("campaign_id", type=CAMPAIGN)
@click.option(
    "--results",
    type=Reader("results", _results),
    required=True,
    help="States and reasons of the contacts to take, such as failed,no_answer,unconfirmed.",
)
@click.option(
    "--include",
    type=OneOf(["opted_out", "replied", "reached"]),
    multiple=True,
    help="Whom not to leave out; may be repeated. Numbers on the register are never taken.",
)
@click.option(
    "--name", type=text_of(NewFollowUp, "name"), help='The new name; by default the old one with "(follow-up)".'
)
@click.option("--message", "body", type=text_of(NewFollowUp, "body"), help="Another text, instead of the same one.")
@options(*LEAVE_OUT_OPTIONS)
def follow_up_(
    campaign_id: str,
    results: Sequence[str],
    include: Sequence[Any],
    name: str | None,
    body: str | None,
    left_out_campaigns: Sequence[str],
    left_out_days: int | None,
) -> None:
    """Create a campaign of those who had given results in another one. Nothing is sent.

    Contacts who opted out, replied or were reached are left out.
    """

    async def work(engine: Outreach, campaign: Campaign) -> FollowUpCreated:
        leave_out = LeaveOut(campaigns=left_out_campaigns, contacted_within_days=left_out_days)
        new = NewFollowUp(results=results, include=include, name=name, body=body, leave_out=leave_out)
        return await engine.campaigns.follow_up(campaign.workspace_id, campaign_id, new, actor=actor())

    made = with_campaign(campaign_id, work)
    _show_created(made.created, {"selected": made.selected, "left_out": dict(made.left_out)}, left_out_days)
    if made.left_out and not state().as_json:
        parts = ", ".join(f"{count} {cause.replace('_', ' ')}" for cause, count in made.left_out.items())
        note(f"Left out: {parts}.")


def _show_created(created: CampaignCreated, more: documents.Document, left_out_days: int | None) -> None:
    campaign = created.campaign
    if state().as_json:
        missing = to_json(created.missing)
        excluded = {"sms_opted_out_excluded": created.opted_out_excluded, "missing": missing}
        echo_json({**documents.campaign(campaign), **excluded, **audience_document(created.audience), **more})
        return
    contacts = plural(campaign.counters.total, "contact")
    click.echo(f"Campaign {campaign.name!r} is {campaign.status}, with {contacts}: {campaign.id}")
    if created.opted_out_excluded:
        note(f"{created.opted_out_excluded:,} are on the unsubscribe register and were left out.")
    show_audience(created.audience, left_out_days)
    note(f"Start it with: outreach-server campaigns start {campaign.id}")
