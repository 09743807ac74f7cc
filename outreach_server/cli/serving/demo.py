"""`demo`: the whole engine in a minute, on a temporary database."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import anyio
import click

from outreach import Outreach
from outreach_server.cli.base import OwnDatabaseCommand, parser_command, state, unwrapped
from outreach_server.cli.output import console, echo_json
from outreach_server.cli.serving.login_link import add_login_link
from outreach_server.cli.serving.own_console import is_installed, mount_console
from outreach_server.cli.serving.sandbox import create_demo_workspace
from outreach_server.cli.serving.serving import Server, bind_near, run_fast, url_of
from outreach_server.cli.sigint import EXIT_INTERRUPTED, ending_in_order
from outreach_server.cli.values import PORT


@click.command(cls=OwnDatabaseCommand)
@click.option("--exit", "exit_", is_flag=True, help="Exit at the end, instead of leaving the server running.")
@click.option("--port", type=PORT, default=8000, show_default=True, help="The port; the next free one if it is taken.")
def demo(exit_: bool, port: int) -> None:
    """Show a campaign and a call from beginning to end, simulated: no message leaves this machine.

    It serves a temporary database, loads the sample contacts of the package, sends to them, and leaves the server
    running: to be tried with curl, and with a link that opens a longer campaign in the console, signed in.
    """
    from outreach_server.app import create_app

    # Imported here, because no other command needs an HTTP client.
    from outreach_server.cli.serving.demo_story import Story, run_story
    from outreach_server.monitoring.log_lines import log_to_stderr

    as_json = state().as_json
    config, simulator = state().configuration()
    log_to_stderr("warning")
    with (
        ending_in_order(),
        bind_near("127.0.0.1", port) as listener,
        tempfile.TemporaryDirectory(prefix="outreach-") as directory,
    ):
        database = f"sqlite:///{Path(directory) / 'demo.db'}"
        results: list[dict[str, Any]] = []

        async def run() -> None:
            failures: list[Exception] = []
            async with Outreach.open(database, config=config, simulator=simulator) as engine:
                tenant = await create_demo_workspace(engine, "Demo clinic")
                up = anyio.Event()
                app = create_app(database, config=config, simulator=simulator, parser_command=parser_command())
                server = Server(app, listener, level="warning", on_started=up.set)
                has_console = not exit_ and is_installed() and not mount_console(app, engine)

                async def link_to(page: str) -> str:
                    return url_of(listener) + (await add_login_link(app, engine, tenant.workspace_id, page)).path

                story = Story(
                    engine=engine,
                    tenant=tenant,
                    url=url_of(listener),
                    database=database,
                    out=console(),
                    silent=as_json,
                    stays=not exit_,
                    link_to=link_to if has_console else None,
                )

                async def narrate() -> None:
                    await up.wait()
                    try:
                        results.append(await run_story(story))
                    except Exception as error:  # raised again after the server has stopped
                        if server.should_exit:
                            # The stop has cut its request off.
                            return
                        failures.append(error)
                    if as_json and results:
                        echo_json(results[0])
                    if exit_ or failures:
                        server.should_exit = True
                    else:
                        click.echo("The server keeps running; Ctrl-C stops it and deletes the database.", err=True)

                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(narrate)
                    await server.serve()
                    tasks.cancel_scope.cancel()
            if failures:
                raise failures[0]

        with unwrapped():
            run_fast(run)
    if not results:
        click.echo("Interrupted.", err=True)
        sys.exit(EXIT_INTERRUPTED)
