"""`numbers`: the numbers that a workspace sends and calls from."""

from __future__ import annotations

import click

from outreach import NewNumber, NumberUpdate
from outreach_server.cli.base import Group
from outreach_server.cli.resources import ClearOption, ResourceCommands
from outreach_server.cli.values import CARRIER, TRUNK, integer_of

_NUMBERS = ResourceCommands("number", lambda engine: engine.numbers, title="phone")
_CARRIER = click.Option(["--carrier"], type=CARRIER, help="Its SMS carrier.")
_TRUNK = click.Option(["--trunk", "trunk_id"], type=TRUNK, help="Its trunk.")


def _rate(meaning: str) -> click.Option:
    of = integer_of(NewNumber, "rate_per_minute")
    return click.Option(["--rate", "rate_per_minute"], type=of, metavar="N", help=meaning)


numbers = Group(
    "numbers",
    help="Create, change, remove and list the numbers that a workspace sends and calls from.",
    commands=[
        _NUMBERS.create(
            NewNumber,
            "Add the number PHONE, such as +14155550102.",
            click.Argument(["phone"]),
            _CARRIER,
            _TRUNK,
            _rate("At most N messages a minute, over all campaigns."),
        ),
        _NUMBERS.list(
            *("id", "phone", "carrier", "trunk_id", "rate_per_minute", "created_at"),
            empty="The workspace has no numbers. Add one with: outreach-server numbers create WORKSPACE_ID PHONE",
        ),
        _NUMBERS.update(
            NumberUpdate,
            "Change the number PHONE; running campaigns use its new rate at once.",
            _CARRIER,
            ClearOption("carrier", "Use it for calls only."),
            _TRUNK,
            ClearOption("trunk_id", "Use no trunk.", word="trunk"),
            _rate("At most N messages a minute."),
            ClearOption("rate_per_minute", "Remove its own rate.", word="rate"),
        ),
        _NUMBERS.remove("Remove the number PHONE, unless a campaign or an active agent uses it."),
    ],
)
