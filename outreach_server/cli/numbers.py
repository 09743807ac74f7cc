"""`numbers`: the numbers that a workspace sends and calls from."""

from __future__ import annotations

import click

from outreach import NewNumber, NumberUpdate
from outreach.models import CarrierName
from outreach_server.cli import documents
from outreach_server.cli.base import Group, actor, with_engine
from outreach_server.cli.collecting import collect
from outreach_server.cli.output import show, show_list
from outreach_server.cli.values import CARRIER, NUMBER, TRUNK, WORKSPACE, changed, clear, integer_of


@click.group(cls=Group)
def numbers() -> None:
    """Create, change, remove and list the numbers that a workspace sends and calls from."""


@numbers.command("create")
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("phone")
@click.option("--carrier", type=CARRIER, help="Its SMS carrier.")
@click.option("--trunk", "trunk_id", type=TRUNK, help="Its trunk.")
@click.option(
    "--rate",
    type=integer_of(NewNumber, "rate_per_minute"),
    metavar="N",
    help="At most N messages a minute, over all campaigns.",
)
def create_number(
    workspace_id: str, phone: str, carrier: CarrierName | None, trunk_id: str | None, rate: int | None
) -> None:
    """Add the number PHONE, such as +14155550102."""
    made = with_engine(
        lambda engine: engine.numbers.create(
            workspace_id,
            NewNumber(phone=phone, carrier=carrier, trunk_id=trunk_id, rate_per_minute=rate),
            actor=actor(),
        )
    )
    show(documents.number(made))


@numbers.command("list")
@click.argument("workspace_id", type=WORKSPACE)
def list_numbers(workspace_id: str) -> None:
    """List a workspace's numbers."""
    found = with_engine(lambda engine: collect(engine.numbers.iter_all(workspace_id)))
    show_list(
        [documents.number(item) for item in found],
        ("id", "phone", "carrier", "trunk_id", "rate_per_minute", "created_at"),
        empty=f"The workspace has no numbers. Add one with: outreach-server numbers create {workspace_id} PHONE",
    )


@numbers.command("update")
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("number_id", metavar="PHONE", type=NUMBER)
@click.option("--carrier", type=CARRIER, help="Its SMS carrier.")
@click.option("--no-carrier", is_flag=True, help="Use it for calls only.")
@click.option("--trunk", "trunk_id", type=TRUNK, help="Its trunk.")
@click.option("--no-trunk", is_flag=True, help="Use no trunk.")
@click.option("--rate", type=integer_of(NewNumber, "rate_per_minute"), metavar="N", help="At most N messages a minute.")
@click.option("--no-rate", is_flag=True, help="Remove its own rate.")
def update_number(
    workspace_id: str,
    number_id: str,
    carrier: CarrierName | None,
    no_carrier: bool,
    trunk_id: str | None,
    no_trunk: bool,
    rate: int | None,
    no_rate: bool,
) -> None:
    """Change the number PHONE; running campaigns use its new rate at once."""
    changes = changed(carrier=carrier, trunk=trunk_id, rate=rate)
    for name, is_cleared in (("carrier", no_carrier), ("trunk", no_trunk), ("rate", no_rate)):
        clear(changes, name, is_cleared)
    if not changes:
        raise click.UsageError("Name something to change; see --help.")
    fields = {"trunk": "trunk_id", "rate": "rate_per_minute"}
    change = NumberUpdate(**{fields.get(name, name): value for name, value in changes.items()})
    show(documents.number(with_engine(lambda e: e.numbers.update(workspace_id, number_id, change, actor=actor()))))


@numbers.command("remove")
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("number_id", metavar="PHONE", type=NUMBER)
def remove_number(workspace_id: str, number_id: str) -> None:
    """Remove the number PHONE, unless a campaign or an active agent uses it."""
    gone = with_engine(lambda engine: engine.numbers.remove(workspace_id, number_id, actor=actor()))
    show({"id": gone.id, "phone": gone.phone, "removed": True})
