"""`flows`: automation flows."""

from __future__ import annotations

import json
from typing import Any, BinaryIO, Final, cast

import click

from outreach import FlowStep
from outreach.http import to_json
from outreach_server.cli.base import Group, with_engine
from outreach_server.cli.output import show_list
from outreach_server.cli.resources import ResourceCommands, name_argument
from outreach_server.cli.values import NAME, name_of

_STEP: Final = {"kind": str, "body": str, "wait_minutes": int}
_LARGEST_FLOW: Final = 1_000_000


class Steps(click.File):
    """A file with the steps of a flow."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the steps."""
        with cast("BinaryIO", super().convert(value, param, ctx)) as file:
            return _read_steps(file)


_FLOWS: Final = ResourceCommands("flows")

_CREATE: Final = """\
Create a flow called NAME from a file.

The file has an array of 1 to 50 steps, or an object with the key "steps". Each contact goes through them in order;
at least one of them sends.

\b
{"kind": "send", "body": "Hi {{first_name}}"}   sends a message, with the footer of the settings
{"kind": "wait", "wait_minutes": 60}            waits, at most 525600 minutes (a year)
{"kind": "stop_if_replied"}                     ends for contacts who have written since the start,
                                                or since they were added
"""


def _contacts(workspace_id: str, flow_id: str) -> None:
    found = with_engine(lambda engine: engine.flows.count_contacts(workspace_id, flow_id))
    show_list([to_json(one) for one in found], ("step", "contacts"), empty="The flow has no steps.")


flows = Group(
    "flows",
    commands=[
        _FLOWS.create(
            _CREATE,
            name_argument(),
            click.Option(["--file", "steps"], type=Steps("rb"), required=True, help="The steps, as JSON; - is stdin."),
        ),
        _FLOWS.list("id", "name", "steps", "created_at", empty="The workspace has no flows."),
        _FLOWS.update(
            "Change a flow; its steps only while no running campaign uses it.",
            click.Option(["--name"], type=NAME, help="A new name."),
            click.Option(["--file", "steps"], type=Steps("rb"), help="New steps, as JSON; - is stdin."),
        ),
        _FLOWS.command(
            "contacts", "Count the contacts of campaigns that have not ended at each step of a flow, from 0.", _contacts
        ),
        _FLOWS.remove("Remove a flow, unless a campaign that has not ended uses it."),
    ],
)


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
