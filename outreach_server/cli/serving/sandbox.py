"""`sandbox`: a server on a temporary database, ready to try."""

from __future__ import annotations

import tempfile
from pathlib import Path

import attrs
import click

from outreach import NewWorkspace, Outreach
from outreach.models import API_SCOPES
from outreach_server.cli.base import OwnDatabaseCommand, actor, parser_command, state
from outreach_server.cli.output import console, echo_json, fields
from outreach_server.cli.serving.serving import Server, bind, run_fast, url_of
from outreach_server.cli.sigint import ending_in_order
from outreach_server.cli.values import PORT, OneOf
from outreach_server.config import LOG_LEVELS
from outreach_server.sandboxes import CARRIER, SENDER, add_agent_and_number


@attrs.frozen(kw_only=True)
class Tenant:
    """The ids and the key to try a server with."""

    workspace_id: str
    agent_id: str
    api_key: str = attrs.field(repr=False)


async def create_demo_workspace(engine: Outreach, name: str) -> Tenant:
    """Create a sandbox workspace without a request limit, with a key, an agent and a number."""
    who = actor()
    workspace = await engine.workspaces.create(
        NewWorkspace(name=name, request_limit=None, default_region="US"), actor=who
    )
    key = await engine.api_keys.create(workspace.id, name=name, scopes=API_SCOPES, actor=who)
    agent = await add_agent_and_number(engine, workspace.id, actor=who)
    return Tenant(workspace_id=workspace.id, agent_id=agent.id, api_key=key.api_key)


@click.command(cls=OwnDatabaseCommand)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=PORT, default=0, show_default=True, help="The port; 0 takes any that is free.")
@click.option("--log-level", type=OneOf(LOG_LEVELS), default="warning", show_default=True, help="Least to log.")
def sandbox(host: str, port: int, log_level: str) -> None:
    """Serve a temporary database with a workspace, a key and an agent, until Ctrl-C or SIGTERM.

    There is no request limit, and everything goes to the simulators: for fuzzing and trying out. The database
    is deleted at the end.
    """
    from outreach_server.app import create_app
    from outreach_server.monitoring.log_lines import log_to_stderr

    as_json = state().as_json
    config, simulator = state().configuration()
    log_to_stderr(log_level)
    with (
        ending_in_order(),
        bind(host, port) as listener,
        tempfile.TemporaryDirectory(prefix="outreach-") as directory,
    ):
        database = f"sqlite:///{Path(directory) / 'sandbox.db'}"

        async def run() -> None:
            async with Outreach.open(database, config=config, simulator=simulator) as engine:
                tenant = await create_demo_workspace(engine, "Sandbox")
            answer = {
                "url": url_of(listener),
                "api_key": tenant.api_key,
                "workspace_id": tenant.workspace_id,
                "agent_id": tenant.agent_id,
                "from_number": SENDER,
                "carrier": CARRIER,
                "database": database,
            }

            def started() -> None:
                if as_json:
                    echo_json(answer)
                else:
                    console().print(fields(answer))
                click.echo("Ctrl-C stops it and deletes the database.", err=True)

            app = create_app(database, config=config, simulator=simulator, parser_command=parser_command())
            await Server(app, listener, level=log_level, on_started=started).serve()

        run_fast(run)
