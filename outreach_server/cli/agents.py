"""`agents`: the voice agents of workspaces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from outreach import Agent, AgentUpdate, NewAgent, NotFound, Outreach
from outreach_server.cli import documents
from outreach_server.cli.base import Group, actor, with_engine
from outreach_server.cli.collecting import collect
from outreach_server.cli.output import show, show_list
from outreach_server.cli.values import AGENT, NAME, VOICE, WORKSPACE, OneOf, changed, clear

_COLUMNS = ("id", "name", "provider", "direction", "allow_outbound", "is_active", "from_number")

_CLEARABLE = {
    "from_number": "Leave the caller ID to the provider.",
    "provider_agent_id": "Forget its identifier at the provider.",
    "placeholders": "Accept any variables.",
    "voicemail": "Leave machines to the agent as the provider has it.",
    "max_call_seconds": "Leave the length of calls to the provider.",
}

_OPTIONS = {"from_number": "from", "placeholders": "placeholder"}
"""Options with another name than their field."""


def _call_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of an agent's calls."""
    for option in (
        click.option("--max-call-seconds", type=int, help="How long a call may last: 10 to 43200."),
        click.option("--voicemail-message", metavar="TEXT", help="What to leave there with leave_message."),
        click.option(
            "--voicemail", type=OneOf(["hang_up", "leave_message"]), help="What to do when a machine answers."
        ),
    ):
        command = option(command)
    return command


def _clearing_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that clear a field."""
    for name, meaning in reversed(_CLEARABLE.items()):
        word = _OPTIONS.get(name) or name.replace("_", "-")
        command = click.option(f"--no-{word}", f"no_{name}", is_flag=True, help=meaning)(command)
    return command


@click.group(cls=Group)
def agents() -> None:
    """Create, change, remove and list voice agents."""


@agents.command()
@click.argument("workspace_id", type=WORKSPACE)
@click.argument("name", type=NAME)
@click.option(
    "--provider",
    type=VOICE,
    default="simulator",
    show_default=True,
    help="The voice provider; a sandbox workspace is simulated whatever it is.",
)
@click.option(
    "--direction",
    type=OneOf(["outbound", "inbound"]),
    default="outbound",
    show_default=True,
    help="An inbound agent calls out only with --allow-outbound.",
)
@click.option("--allow-outbound", is_flag=True, help="Let an inbound agent call out.")
@click.option("--inactive", is_flag=True, help="Make it switched off.")
@click.option("--provider-agent-id", metavar="ID", help="Its identifier at the provider.")
@click.option("--placeholder", "placeholders", multiple=True, metavar="NAME", help="A variable it expects; repeatable.")
@click.option("--from", "from_number", metavar="NUMBER", help="Caller ID.")
@_call_options
def create(workspace_id: str, name: str, inactive: bool, placeholders: tuple[str, ...], **options: Any) -> None:
    """Create an agent called NAME."""
    made = with_engine(
        lambda engine: engine.agents.create(
            workspace_id,
            NewAgent(name=name, is_active=not inactive, placeholders=placeholders or None, **options),
            actor=actor(),
        )
    )
    show(documents.agent(made))


@agents.command("list")
@click.argument("workspace_id", type=WORKSPACE)
def list_(workspace_id: str) -> None:
    """List a workspace's agents."""
    found = with_engine(lambda engine: collect(engine.agents.iter_all(workspace_id)))
    show_list(
        [documents.agent(item) for item in found],
        _COLUMNS,
        empty=f"The workspace has no agents. Make one with: outreach-server agents create {workspace_id} NAME",
    )


@agents.command()
@click.argument("ids", metavar="[WORKSPACE_ID] AGENT_ID", nargs=-1, required=True, type=AGENT)
@click.option("--name", type=NAME, help="A new name.")
@click.option("--active/--inactive", "is_active", default=None, help="Switch it on or off.")
@click.option("--allow-outbound/--no-allow-outbound", default=None, help="Whether an inbound agent may call out.")
@click.option("--provider-agent-id", metavar="ID", help="Its identifier at the provider.")
@click.option("--placeholder", "placeholders", multiple=True, metavar="NAME", help="A variable it expects; repeatable.")
@click.option("--from", "from_number", metavar="NUMBER", help="Caller ID.")
@_call_options
@_clearing_options
def update(ids: tuple[str, ...], placeholders: tuple[str, ...], **options: Any) -> None:
    """Change an agent; its identifier alone is enough."""
    agent_id = _agent_id(ids)
    cleared = {name: options.pop(f"no_{name}") for name in _CLEARABLE}
    changes = changed(placeholders=placeholders or None, **options)
    for name, is_cleared in cleared.items():
        clear(changes, name, is_cleared, option=_OPTIONS.get(name))
    if not changes:
        raise click.UsageError("Name something to change; see --help.")
    change = AgentUpdate(**changes)

    async def work(engine: Outreach) -> Agent:
        return await engine.agents.update(await _workspace_id(engine, ids), agent_id, change, actor=actor())

    show(documents.agent(with_engine(work)))


@agents.command("remove")
@click.argument("ids", metavar="[WORKSPACE_ID] AGENT_ID", nargs=-1, required=True, type=AGENT)
def remove(ids: tuple[str, ...]) -> None:
    """Remove an agent, unless a campaign or a call that has not ended uses it; its identifier alone is enough."""
    agent_id = _agent_id(ids)

    async def work(engine: Outreach) -> Agent:
        return await engine.agents.remove(await _workspace_id(engine, ids), agent_id, actor=actor())

    gone = with_engine(work)
    show({"id": gone.id, "name": gone.name, "removed": True})


def _agent_id(ids: tuple[str, ...]) -> str:
    if len(ids) > 2:
        raise click.UsageError("Give one agent: [WORKSPACE_ID] AGENT_ID.")
    return ids[-1]


async def _workspace_id(engine: Outreach, ids: tuple[str, ...]) -> str:
    return ids[0] if len(ids) > 1 else await _owner(engine, ids[-1])


async def _owner(engine: Outreach, agent_id: str) -> str:
    """Return the workspace of an agent, which the operator names alone."""
    async for workspace in engine.workspaces.iter_all():
        try:
            return (await engine.agents.get(workspace.id, agent_id)).workspace_id
        except NotFound:
            continue
    raise NotFound("agent", agent_id)
