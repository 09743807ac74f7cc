"""`serve`: the HTTP server."""

from __future__ import annotations

from typing import Final

import click

from outreach import Outreach
from outreach.database import shown_url
from outreach_server.cli.base import state
from outreach_server.cli.output import echo_json
from outreach_server.cli.place import place_of
from outreach_server.cli.reading import parser_command
from outreach_server.cli.serving import Server, bind, log_to_stderr, run_fast, url_of
from outreach_server.cli.setting_flags import ConfiguredCommand, given, setting_options

_EMPTY: Final = (
    "It is new and empty. If you meant another one, stop this and name it with --database; else start with: "
    "outreach-server workspaces create NAME"
)


@click.command(cls=ConfiguredCommand)
@click.option(
    "--carrier",
    "carriers",
    multiple=True,
    metavar="NAME",
    help="A carrier of an installed adapter that requests may name too; repeatable.",
)
@setting_options
def serve(carriers: tuple[str, ...], **flags: str | bool | None) -> None:
    """Serve the HTTP interface, and send what is due, until Ctrl-C or SIGTERM.

    Every setting is an option, a variable and a key of the file that --config names; the first of them counts.
    """
    from outreach_server.app import create_app

    as_json = state().as_json
    config, simulator = state().configuration(given(flags))
    url, dispatch = config.database_url, config.dispatch
    place = place_of(url)
    log_to_stderr(config.log_level)
    with bind(config.listen_host, config.listen_port) as listener:
        address = url_of(listener)

        def started() -> None:
            if as_json:
                shown = {"database": shown_url(url), "database_path": place.path, "database_is_new": place.new}
                echo_json({"url": address, **shown, "dispatch": dispatch})
            click.echo(f"Serving {address}  (documentation: {address}/docs)", err=True)
            what = "New database" if place.new else "Database"
            click.echo(f"{what} {place.path}{'' if dispatch else ', without dispatch'}. Ctrl-C stops it.", err=True)
            if place.new:
                click.echo(_EMPTY, err=True)

        app = create_app(
            url,
            dispatch=dispatch,
            config=config,
            simulator=simulator,
            max_body_bytes=config.max_body_bytes,
            spool_directory=config.spool_directory,
            parser_command=parser_command(),
            carriers=carriers,
        )
        server = Server(app, listener, level=config.log_level, on_started=started)

        async def run() -> None:
            # Opened once before listening, so that problems of the database are reported first.
            async with Outreach.open(url, migrate=True, config=config, simulator=simulator):
                pass
            await server.serve()

        run_fast(run)
