"""`campaigns test-send`: what a contact would get, sent to a number of one's own."""

from __future__ import annotations

import sys
from datetime import datetime

import click

from outreach import Campaign, Message, NotFound, Outreach
from outreach.http import to_json
from outreach.models import NewTestMessage, ProviderFailure
from outreach_server.cli import documents
from outreach_server.cli.base import Command, actor, with_campaign
from outreach_server.cli.campaigns import explained
from outreach_server.cli.campaigns.test_send import message_document, watch
from outreach_server.cli.campaigns.verdicts import succeeded
from outreach_server.cli.serving.sandboxed import note_sandbox
from outreach_server.cli.upkeep.throttles import QUEUED, throttled_until
from outreach_server.cli.values import CAMPAIGN, integer_of


@click.command("test-send", cls=Command)
@click.argument("campaign_id", type=CAMPAIGN)
@click.option("--contact", required=True, metavar="PHONE", help="The contact whose text to send.")
@click.option("--to", required=True, metavar="PHONE", help="The number to reach: your own.")
@click.option(
    "--message",
    type=integer_of(NewTestMessage, "message"),
    default=1,
    show_default=True,
    help="Which message of a flow.",
)
@click.option("--at-any-hour", is_flag=True, help="Send it outside the campaign's hours and contact hours too.")
@click.option(
    "--wait",
    type=click.FloatRange(0, 3600),
    default=60.0,
    show_default=True,
    help="Seconds to watch it; 0 only queues it.",
)
def test_send_(campaign_id: str, contact: str, to: str, message: int, at_any_hour: bool, wait: float) -> None:
    """Send a contact's text to a number of your own, as a test that counts nowhere.

    The running server sends it, from the campaign's number. Exits with 0 for a message that was accepted or delivered.
    """

    async def work(engine: Outreach, campaign: Campaign) -> tuple[Message, datetime | None, ProviderFailure | None]:
        try:
            item = await engine.messages.send_test(
                campaign.workspace_id,
                campaign_id,
                NewTestMessage(contact=contact, to=to, message=message, at_any_hour=at_any_hour),
                actor=actor(),
            )
        except NotFound as error:
            if error.kind != "recipient":
                raise
            raise click.ClickException(f"{contact!r} is not among the campaign's contacts.") from None
        note_sandbox(await engine.workspaces.get(campaign.workspace_id))
        await watch(engine, item, wait)
        done = await engine.messages.get(item.workspace_id, item.id)
        return done, await throttled_until(engine, done), await engine.messages.failure(done)

    done, until, failed = with_campaign(campaign_id, work)
    held = {"throttled_by": documents.provider_throttle(until), "throttled_until": to_json(until)}
    explained.show_with({**message_document(done), "body": done.body, "purpose": done.purpose, **held}, failed)
    # Without waiting, queued is success.
    if not succeeded(done) and not (wait == 0 and done.status in QUEUED):
        sys.exit(1)
