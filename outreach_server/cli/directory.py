"""`trunks`, `numbers` and `flows`: what else a workspace is set up with."""

from __future__ import annotations

import json
from typing import Any, BinaryIO, Final

import click

from outreach import CarrierName, FlowStep
from outreach_server.cli import documents
from outreach_server.cli.base import Group, actor, with_engine
from outreach_server.cli.output import show, show_list
from outreach_server.cli.values import CARRIER, NAME, TRUNK, WORKSPACE, name_of

_STEP: Final = {"kind": str, "body": str, "wait_minutes": int}
_LARGEST_FLOW: Final = 1_000_000


@click.group(cls=Group)
def trunks() -> None:
    """Make and list SIP trunks."""


@trunks.command("create")
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("name", type=NAME)
@click.option("--address", type=NAME, required=True, help="SIP host or URI at which the trunk ends.")
@click.option("--provider-trunk-id", metavar="ID", help="Its identifier at the voice provider.")
def create_trunk(workspace_id: str, name: str, address: str, provider_trunk_id: str | None) -> None:
    """Make a trunk called NAME."""
    made = with_engine(
        lambda engine: engine.trunks.create(
            workspace_id, name, address=address, provider_trunk_id=provider_trunk_id, actor=actor()
        )
    )
    show(documents.trunk(made))


@trunks.command("list")
@click.argument("workspace_id", type=WORKSPACE)
def list_trunks(workspace_id: str) -> None:
    """List a workspace's trunks."""
    found = with_engine(lambda engine: engine.trunks.list(workspace_id))
    show_list(
        [documents.trunk(item) for item in found],
        ("id", "name", "address", "provider_trunk_id", "created_at"),
        empty="The workspace has no trunks.",
    )


@click.group(cls=Group)
def numbers() -> None:
    """Add and list the numbers that a workspace sends and calls from."""


@numbers.command("add")
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("phone")
@click.option("--carrier", type=CARRIER, help="The SMS carrier that it belongs to.")
@click.option("--trunk", "trunk_id", type=TRUNK, help="The trunk that it is reached over.")
@click.option(
    "--rate", type=click.IntRange(1, 600), metavar="N", help="At most N messages a minute, over all campaigns."
)
def add_number(
    workspace_id: str, phone: str, carrier: CarrierName | None, trunk_id: str | None, rate: int | None
) -> None:
    """Add the number PHONE, such as +14155550102."""
    added = with_engine(
        lambda engine: engine.numbers.add(
            workspace_id, phone, carrier=carrier, trunk_id=trunk_id, rate_per_minute=rate, actor=actor()
        )
    )
    show(documents.number(added))


@numbers.command("list")
@click.argument("workspace_id", type=WORKSPACE)
def list_numbers(workspace_id: str) -> None:
    """List a workspace's numbers."""
    found = with_engine(lambda engine: engine.numbers.list(workspace_id))
    show_list(
        [documents.number(item) for item in found],
        ("id", "phone", "carrier", "trunk_id", "rate_per_minute", "created_at"),
        empty=f"The workspace has no numbers. Add one with: outreach-server numbers add {workspace_id} PHONE",
    )


@click.group(cls=Group)
def flows() -> None:
    """Make and list automation flows."""


@flows.command("create")
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("name", type=NAME)
@click.option("--file", "file", type=click.File("rb"), required=True, help="The steps, as JSON; - is stdin.")
def create_flow(workspace_id: str, name: str, file: BinaryIO) -> None:
    """Make a flow called NAME from a file.

    The file holds an array of 1 to 50 steps, or an object with the key "steps". Each contact goes through them in
    their order; at least one of them sends.

    \b
    {"kind": "send", "body": "Hi {{first_name}}"}   sends a message; the footer of the settings follows
    {"kind": "wait", "wait_minutes": 60}            waits, at most 525600 minutes (a year)
    {"kind": "stop_if_replied"}                     ends here for who has written back since the campaign started
    """  # noqa: D301 - click reads the \b as what it is: do not wrap
    steps = _read_steps(file)
    made = with_engine(lambda engine: engine.flows.create(workspace_id, name, steps=steps, actor=actor()))
    show(documents.flow(made))


@flows.command("list")
@click.argument("workspace_id", type=WORKSPACE)
def list_flows(workspace_id: str) -> None:
    """List a workspace's flows."""
    found = with_engine(lambda engine: engine.flows.list(workspace_id))
    show_list(
        [documents.flow(item) for item in found],
        ("id", "name", "steps", "created_at"),
        empty="The workspace has no flows.",
    )


def _read_steps(file: BinaryIO) -> list[FlowStep]:
    raw = file.read(_LARGEST_FLOW + 1)
    if len(raw) > _LARGEST_FLOW:
        raise click.ClickException(f"{name_of(file)} is larger than a flow can be.")
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise click.ClickException(f"{name_of(file)} is no JSON: {error}.") from None
    if isinstance(document, dict) and set(document) == {"steps"}:
        document = document["steps"]
    if not isinstance(document, list):
        raise click.ClickException(f'{name_of(file)} must hold an array of steps, or {{"steps": […]}}.')
    return [_read_step(step, index) for index, step in enumerate(document)]


def _read_step(step: Any, index: int) -> FlowStep:
    place = f"steps[{index}]"
    if not isinstance(step, dict):
        raise click.ClickException(f"{place} must be an object.")
    for name, value in step.items():
        if name not in _STEP:
            raise click.ClickException(f"{place} has {name!r}; a step has {', '.join(_STEP)}.")
        if value is not None and type(value) is not _STEP[name]:
            raise click.ClickException(f"{place}.{name} must be {'text' if _STEP[name] is str else 'an integer'}.")
    if not isinstance(step.get("kind"), str):
        raise click.ClickException(f"{place}.kind must be send, wait or stop_if_replied.")
    return FlowStep(**step)
