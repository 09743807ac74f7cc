"""`campaigns skip`: leaving one contact out of a campaign."""

from __future__ import annotations

import click

from outreach import Campaign, Outreach, Recipient
from outreach_server.cli import documents
from outreach_server.cli.base import Command, actor, with_campaign
from outreach_server.cli.output import show_or_say
from outreach_server.cli.values import CAMPAIGN


@click.command("skip", cls=Command)
@click.argument("campaign_id", type=CAMPAIGN)
@click.argument("position", type=click.IntRange(0))
@click.option("--reason", metavar="TEXT", help="Why, in up to 200 characters, for the audit trail.")
def skip_(campaign_id: str, position: int, reason: str | None) -> None:
    """Leave a contact out that waits for its turn, by its position in `campaigns recipients`."""

    async def work(engine: Outreach, campaign: Campaign) -> tuple[Campaign, Recipient]:
        skipped = await engine.campaigns.skip_recipient(
            campaign.workspace_id, campaign_id, position, reason=reason, actor=actor()
        )
        return campaign, skipped

    campaign, skipped = with_campaign(campaign_id, work)
    sentence = f"{skipped.phone_number} is left out of campaign {campaign.name!r}."
    show_or_say(documents.recipient(skipped, campaign), sentence)
