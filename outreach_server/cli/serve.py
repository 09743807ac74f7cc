"""`serve`: the HTTP server."""

from __future__ import annotations

from typing import Final

import click

from outreach import Outreach
from outreach_server.cli.base import Command, state
from outreach_server.cli.output import echo_json
from outreach_server.cli.place import place_of
from outreach_server.cli.reading import parser_command
from outreach_server.cli.serving import LOG_LEVELS, Server, bind, log_to_stderr, run_fast, url_of
from outreach_server.cli.values import PORT

_EMPTY: Final = (
    "There was none, and it is empty. If another one was meant, stop this and name it with --database; else begin with "
    "outreach-server workspaces create NAME"
)


@click.command(cls=Command)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=PORT, default=8000, show_default=True, help="The port; 0 takes any that is free.")
@click.option("--no-dispatch", is_flag=True, help="Answer requests only; send nothing from this process.")
@click.option(
    "--public-url",
    metavar="URL",
    help="Where this server is reached from outside: there providers call back. [env: OUTREACH_PUBLIC_URL]",
)
@click.option("--log-level", type=click.Choice(LOG_LEVELS), default="info", show_default=True, help="Least to log.")
def serve(host: str, port: int, no_dispatch: bool, public_url: str | None, log_level: str) -> None:
    """Serve the HTTP interface, and send what is due, until Ctrl-C or SIGTERM."""
    from outreach_server.app import create_app

    url, as_json = state().database, state().as_json
    place = place_of(url)
    log_to_stderr(log_level)
    with bind(host, port) as listener:
        address = url_of(listener)

        def started() -> None:
            if as_json:
                shown = {"database": url, "database_path": place.path, "database_is_new": place.new}
                echo_json({"url": address, **shown, "dispatch": not no_dispatch})
            click.echo(f"Serving {address}  (documentation: {address}/docs)", err=True)
            what = "New database" if place.new else "Database"
            click.echo(f"{what} {place.path}{', without dispatch' if no_dispatch else ''}. Ctrl-C stops it.", err=True)
            if place.new:
                click.echo(_EMPTY, err=True)

        app = create_app(url, dispatch=not no_dispatch, public_url=public_url, parser_command=parser_command())
        server = Server(app, listener, level=log_level, on_started=started)

        async def run() -> None:
            # Opened once before, so that what is wrong with the database is told before anything listens.
            async with Outreach.open(url, migrate=True):
                pass
            await server.serve()

        run_fast(run)
