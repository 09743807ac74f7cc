"""`flows`: automation flows."""

from __future__ import annotations

import json
from typing import Any, BinaryIO, Final

import click

from outreach import FlowStep, FlowUpdate, NewFlow
from outreach_server.cli import documents
from outreach_server.cli.base import Group, actor, with_engine
from outreach_server.cli.collecting import collect
from outreach_server.cli.output import show, show_list
from outreach_server.cli.values import FLOW, NAME, WORKSPACE, changed, name_of

_STEP: Final = {"kind": str, "body": str, "wait_minutes": int}
_LARGEST_FLOW: Final = 1_000_000


@click.group(cls=Group)
def flows() -> None:
    """Create, change, remove and list automation flows."""


@flows.command("create")
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("name", type=NAME)
@click.option("--file", "file", type=click.File("rb"), required=True, help="The steps, as JSON; - is stdin.")
def create_flow(workspace_id: str, name: str, file: BinaryIO) -> None:
    """Create a flow called NAME from a file.

    The file has an array of 1 to 50 steps, or an object with the key "steps". Each contact goes through them in order;
    at least one of them sends.

    \b
    {"kind": "send", "body": "Hi {{first_name}}"}   sends a message, with the footer of the settings
    {"kind": "wait", "wait_minutes": 60}            waits, at most 525600 minutes (a year)
    {"kind": "stop_if_replied"}                     ends for contacts who have written since the start
    """  # noqa: D301 - \b tells click not to wrap
    steps = _read_steps(file)
    made = with_engine(lambda engine: engine.flows.create(workspace_id, NewFlow(name=name, steps=steps), actor=actor()))
    show(documents.flow(made))


@flows.command("list")
@click.argument("workspace_id", type=WORKSPACE)
def list_flows(workspace_id: str) -> None:
    """List a workspace's flows."""
    found = with_engine(lambda engine: collect(engine.flows.iter_all(workspace_id)))
    show_list(
        [documents.flow(item) for item in found],
        ("id", "name", "steps", "created_at"),
        empty="The workspace has no flows.",
    )


@flows.command("update")
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("flow_id", type=FLOW)
@click.option("--name", type=NAME, help="A new name.")
@click.option("--file", "file", type=click.File("rb"), help="New steps, as JSON; - is stdin.")
def update_flow(workspace_id: str, flow_id: str, name: str | None, file: BinaryIO | None) -> None:
    """Change a flow; its steps only while no running campaign uses it."""
    changes = changed(name=name, steps=None if file is None else _read_steps(file))
    if not changes:
        raise click.UsageError("Name something to change; see --help.")
    change = FlowUpdate(**changes)
    show(documents.flow(with_engine(lambda e: e.flows.update(workspace_id, flow_id, change, actor=actor()))))


@flows.command("remove")
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("flow_id", type=FLOW)
def remove_flow(workspace_id: str, flow_id: str) -> None:
    """Remove a flow, unless a campaign that has not ended uses it."""
    gone = with_engine(lambda engine: engine.flows.remove(workspace_id, flow_id, actor=actor()))
    show({"id": gone.id, "name": gone.name, "removed": True})


def _read_steps(file: BinaryIO) -> list[FlowStep]:
    raw = file.read(_LARGEST_FLOW + 1)
    if len(raw) > _LARGEST_FLOW:
        raise click.ClickException(f"{name_of(file)} is larger than a flow can be.")
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise click.ClickException(f"{name_of(file)} is not JSON: {error}.") from None
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
