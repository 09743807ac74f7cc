"""`campaigns clock`: how many contacts can be reached in which hour."""

from __future__ import annotations

from typing import Final

import click

from outreach.http import document_of
from outreach.reasons import LIMITS
from outreach_server.cli.base import Command, state, with_campaign
from outreach_server.cli.durations import time_text
from outreach_server.cli.output import console, echo_json, listing, note, plural
from outreach_server.cli.values import CAMPAIGN

_BAR: Final = 30


@click.command("clock", cls=Command)
@click.argument("campaign_id", type=CAMPAIGN)
def clock_(campaign_id: str) -> None:
    """Show how many contacts can be reached in each of the 24 hours from a campaign's start, or from now on."""
    found = with_campaign(campaign_id, lambda engine, one: engine.campaigns.clock(one.workspace_id, one.id))
    if state().as_json:
        echo_json(document_of(found))
        return
    if not found.hours:
        note("The campaign has ended: nobody is to be reached.")
        return
    console().print(f"{plural(found.contacts, 'contact')} to be reached, by the hour:")
    rows = [
        {
            "from": time_text(one.at, found.timezone, seconds=False),
            "contacts": one.contacts,
            "": "#" * -(-_BAR * one.contacts // (found.contacts or 1)) or " ",
            "closed by": _CLOSED.get(one.closed_by or ""),
        }
        for one in found.hours
    ]
    console().print(listing(rows, tuple(rows[0]), found.timezone))


_CLOSED: Final = {"business_hours": LIMITS["business_hours"], "holidays": LIMITS["holidays"], "expiry": "its expiry"}
