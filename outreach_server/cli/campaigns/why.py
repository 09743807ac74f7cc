"""`campaigns why`: the history of a number in a campaign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click

from outreach import Campaign, NotFound, Outreach, RecipientStatus
from outreach.http import to_json
from outreach.models import ContactHistory
from outreach.reasons import describe_reason, describe_zones
from outreach_server.cli import documents
from outreach_server.cli.base import Command, state, with_campaign
from outreach_server.cli.campaigns import explained
from outreach_server.cli.durations import time_text
from outreach_server.cli.output import cell, console, echo_json, fields, listing
from outreach_server.cli.values import CAMPAIGN

_COLUMNS: Final = ("at", "what", "state", "reason", "rule", "attempt", "until", "actor", "why")
_OPEN: Final = frozenset({RecipientStatus.PENDING, RecipientStatus.WAITING})


@click.command("why", cls=Command)
@click.argument("campaign_id", type=CAMPAIGN)
@click.argument("phone", required=False)
@click.option("--external-id", metavar="ID", help="The id by which your application knows the contact.")
def why_(campaign_id: str, phone: str | None, external_id: str | None) -> None:
    """Show what happened to a number in a campaign: every step with its time, its reason and its rule."""
    if (phone is None) == (external_id is None):
        raise click.UsageError("Name the contact by its PHONE or by --external-id ID.")

    async def work(
        engine: Outreach, campaign: Campaign
    ) -> tuple[Campaign, Sequence[ContactHistory], Sequence[documents.Document]]:
        try:
            found = await engine.campaigns.contact_history(
                campaign.workspace_id, campaign_id, phone, external_id=external_id
            )
        except NotFound as error:
            if error.kind != "recipient":
                raise
            missing = (
                f"{phone!r} is neither in this campaign nor on the unsubscribe register."
                if external_id is None
                else f"No recipient of this campaign has the external id {external_id!r}."
            )
            raise click.ClickException(
                f"{missing} List the recipients with: outreach-server campaigns recipients {campaign_id}"
            ) from None
        return campaign, found, [await _explained(engine, campaign, one) for one in found]

    campaign, found, shown = with_campaign(campaign_id, work)
    if state().as_json:
        echo_json(shown)
        return
    out = console()
    for one, document in zip(found, shown, strict=True):
        out.print(_title(campaign, one))
        if zones := describe_zones(one):
            out.print(f"Contact hours go by {cell(zones)}.")
        rows = [_row(step) for step in document["steps"]]
        out.print(listing(rows, [name for name in _COLUMNS if any(row[name] for row in rows)], campaign.timezone))
        said = explained.steps_table(document, campaign.timezone)
        if said is not None:
            out.print(said)
    rules = {str(step.rule): step.rule.text for one in found for step in one.steps}
    out.print(fields(rules))


async def _explained(engine: Outreach, campaign: Campaign, history: ContactHistory) -> documents.Document:
    document = to_json(history)
    if history.position is None:
        return explained.steps(document, {}, campaign.channel)
    failures = await engine.campaigns.recipient_failures(campaign.workspace_id, campaign.id, history.position)
    return explained.steps(document, failures, campaign.channel)


def _title(campaign: Campaign, history: ContactHistory) -> str:
    if history.position is None:
        return f"{history.phone} is not a recipient of campaign {campaign.name!r}."
    reason = f" ({history.reason})" if history.reason is not None else ""
    words = None
    if history.reason is not None or (campaign.is_terminal and history.status in _OPEN):
        status = history.status or ""
        words = describe_reason(status, history.reason, campaign.channel, campaign=campaign.status)
    because = f": {words}" if words else ""
    until = f", until {time_text(history.due_at, campaign.timezone)}" if history.due_at is not None else ""
    number = cell(history.phone_number)
    known_as = f" ({cell(history.external_id)})" if history.external_id is not None else ""
    place = f"{number}{known_as}, position {history.position}"
    return f"{place} of {campaign.name!r}: {history.status}{reason}{until}{because}"


def _row(step: documents.Document) -> documents.Document:
    """Return a step as a row: a second leg as part of its attempt, with the count of repeats."""
    attempt = f"{step['attempt']}, leg 2" if step["leg"] == 2 else step["attempt"] or None
    again = f" ({step['repeats']} times more)" if step["repeats"] else ""
    return {**step, "attempt": attempt, "reason": f"{step['reason']}{again}" if step["reason"] else again.strip()}
