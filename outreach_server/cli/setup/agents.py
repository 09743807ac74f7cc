"""`agents`: the voice agents of workspaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from outreach import NotFound, Outreach
from outreach.models import AgentUpdate, NewAgent
from outreach_server.cli.base import Group
from outreach_server.cli.model_options import options_of
from outreach_server.cli.resources import ResourceCommands, name_argument
from outreach_server.cli.values import AGENT, NAME, VOICE, OneOf


class AgentCommands(ResourceCommands):
    """The commands of agents, whose identifier alone is enough."""

    def arguments(self) -> Sequence[click.Argument]:
        """Return one argument of up to two values."""
        return (
            click.Argument(
                ["ids"],
                metavar="[WORKSPACE_ID] AGENT_ID",
                nargs=-1,
                required=True,
                type=AGENT,
                callback=_at_most_one_agent,
            ),
        )

    async def locate(self, engine: Outreach, place: Mapping[str, Any]) -> tuple[str, str]:
        """Return the workspace and the identifier; where the workspace was left out, it is looked up."""
        *workspace_ids, agent_id = place["ids"]
        return workspace_ids[0] if workspace_ids else await _owner(engine, agent_id), agent_id


def _at_most_one_agent(_: click.Context, __: click.Parameter, ids: tuple[str, ...]) -> tuple[str, ...]:
    if len(ids) > 2:
        raise click.UsageError("Give one agent: [WORKSPACE_ID] AGENT_ID.")
    return ids


async def _owner(engine: Outreach, agent_id: str) -> str:
    """Return the workspace of an agent, which the operator names alone."""
    async for workspace in engine.workspaces.iter_all():
        try:
            return (await engine.agents.get(workspace.id, agent_id)).workspace_id
        except NotFound:
            continue
    raise NotFound("agent", agent_id)


_AGENTS: Final = AgentCommands("agents")

agents = Group(
    "agents",
    commands=[
        _AGENTS.create(
            "Create an agent called NAME.",
            name_argument(),
            click.Option(
                ["--provider"],
                type=VOICE,
                default="simulator",
                show_default=True,
                help="The voice provider; a sandbox workspace is simulated whatever it is.",
            ),
            click.Option(
                ["--direction"],
                type=OneOf(["outbound", "inbound"]),
                default="outbound",
                show_default=True,
                help="An inbound agent calls out only with --allow-outbound.",
            ),
            click.Option(["--allow-outbound"], is_flag=True, help="Let an inbound agent call out."),
            click.Option(
                ["--inactive", "is_active"], is_flag=True, flag_value=False, default=True, help="Make it switched off."
            ),
            *options_of(NewAgent),
        ),
        _AGENTS.list(
            *("id", "name", "provider", "direction", "allow_outbound", "is_active", "from_number"),
            empty="The workspace has no agents. Make one with: outreach-server agents create WORKSPACE_ID NAME",
        ),
        _AGENTS.update(
            "Change an agent; its identifier alone is enough.",
            click.Option(["--name"], type=NAME, help="A new name."),
            click.Option(["--active/--inactive", "is_active"], default=None, help="Switch it on or off."),
            click.Option(
                ["--allow-outbound/--no-allow-outbound"],
                default=None,
                help="Whether an inbound agent may call out.",
            ),
            *options_of(AgentUpdate),
        ),
        _AGENTS.remove(
            "Remove an agent, unless a campaign or a call that has not ended uses it; its identifier alone is enough."
        ),
    ],
)
