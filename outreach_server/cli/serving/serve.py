"""`serve`: the HTTP server."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Final

import click
from anyio import to_thread

from outreach import ConfigError, Outreach
from outreach.database import shown_url
from outreach.models import CreatedInvitation
from outreach_server.bodies.spool import is_usable
from outreach_server.cli.base import actor, parser_command, state
from outreach_server.cli.console_links import CONSOLE, link_of
from outreach_server.cli.output import echo_json
from outreach_server.cli.serving.metrics_address import answering, metrics_of
from outreach_server.cli.serving.own_console import is_installed, mount_console
from outreach_server.cli.serving.serving import Server, bind_metrics, run_fast, url_of
from outreach_server.cli.serving.sockets import listening
from outreach_server.cli.serving.supervision import Pulse, ServiceManager
from outreach_server.cli.setup.setting_flags import ConfiguredCommand, given, setting_options
from outreach_server.cli.sigint import ending_in_order
from outreach_server.cli.upkeep.archives import unreadable_archives
from outreach_server.cli.upkeep.copied import dispatch_copied_option, reclaim
from outreach_server.cli.upkeep.database_place import place_of
from outreach_server.config import ServerConfig, scheme_of
from outreach_server.listening.proxies import TrustedProxies
from outreach_server.listening.tls import CertificateFiles

_log = logging.getLogger("outreach_server")

_EMPTY: Final = (
    "It is new and empty. If you meant another one, stop this and name it with --database; else start with: "
    "outreach-server workspaces create NAME"
)
_NO_CONSOLE: Final = "No console, because its forms need a secret key."


def _certificates(config: ServerConfig) -> CertificateFiles | None:
    """Return the files to serve HTTPS with, if any.

    Raises:
        ConfigError: They cannot be used, or there is a key alone.
    """
    if config.tls_certificate is not None:
        return CertificateFiles(config.tls_certificate, config.tls_key)
    if config.tls_key is not None:
        raise ConfigError(f"tls_key is {config.tls_key}, without tls_certificate: name both files, or neither.")
    return None


@click.command(cls=ConfiguredCommand)
@click.option(
    "--carrier",
    "carriers",
    multiple=True,
    metavar="NAME",
    help="A carrier of an installed adapter that requests may name too; repeatable.",
)
@dispatch_copied_option
@setting_options
def serve(carriers: tuple[str, ...], dispatch_copied: bool, **flags: str | bool | None) -> None:
    """Serve the HTTP interface, and send what is due, until Ctrl-C or SIGTERM.

    Every setting is an option, a variable and a key of the file that --config names; the first of them counts.
    """
    from outreach_server.app import create_app
    from outreach_server.monitoring.log_lines import log_to_stderr
    from outreach_server.monitoring.request_spans import warn_if_spans_are_lost

    as_json = state().as_json
    config, simulator = state().configuration(given(flags))
    url, dispatch = config.database_url, config.dispatch
    place = place_of(url)
    if dispatch_copied:
        reclaim(url)
    log_to_stderr(config.log_level, config.log_format)
    metrics = metrics_of(config, place.path)
    if config.spool_directory is not None and not is_usable(config.spool_directory):
        raise ConfigError(
            f"spool_directory is {config.spool_directory}, which is no directory that this user may write. Create it, "
            "or name another one."
        )
    manager, pulse = ServiceManager.of_environment(), Pulse(config.lease_seconds)
    certificates = _certificates(config)
    proxies = TrustedProxies(config.proxy_headers) if config.proxy_headers is not None else None
    with ExitStack() as stack:
        # A stop while the database is opened or migrated closes it; the server handles signals only later.
        stack.enter_context(ending_in_order())
        listeners = stack.enter_context(listening(config))
        side_listener = stack.enter_context(bind_metrics(config))
        addresses = [url_of(listener, scheme_of(config)) for listener in listeners]
        scraped = None if side_listener is None else f"{url_of(side_listener)}/metrics"
        public = config.public_url or f"{addresses[0]}{config.root_path or ''}"
        has_console = config.console and is_installed()
        setups: list[CreatedInvitation] = []
        no_console = ""

        def started() -> None:
            if as_json:
                shown = {"database": shown_url(url), "database_path": place.path, "database_is_new": place.new}
                links = {
                    "console_url": f"{public}{CONSOLE}" if has_console else None,
                    "setup_url": link_of(setups[0], public) if setups else None,
                }
                echo_json({"url": addresses[0], **shown, "dispatch": dispatch, "metrics_url": scraped, **links})
            what = "New database" if place.new else "Database"
            _announce(
                [
                    *(_serving(address) for address in addresses),
                    *([] if scraped is None else [f"Metrics {scraped}"]),
                    *([f"Console {public}{CONSOLE}"] if has_console else []),
                    *([f"{_NO_CONSOLE} {no_console} Then start the server again."] if no_console else []),
                    *(f"Set the console up within an hour: {link_of(one, public)}" for one in setups),
                    f"{what} {place.path}{'' if dispatch else ', without dispatch'}. Ctrl-C stops it.",
                    *([_EMPTY] if place.new else []),
                ],
                log_format=config.log_format,
            )
            manager.ready(f"Serving {', '.join(addresses)}")

        app = create_app(
            url,
            dispatch=dispatch,
            config=config,
            simulator=simulator,
            max_body_bytes=config.max_body_bytes,
            spool_directory=config.spool_directory,
            parser_command=parser_command(),
            carriers=carriers,
            metrics=metrics,
            tracing=config.tracing,
            cors_origins=config.cors_origins,
            log_client_address=config.log_client_address,
        )

        if config.tracing:
            warn_if_spans_are_lost()

        def alive() -> None:
            engine = app.state.server.open_engine
            if engine is not None and pulse.is_alive(engine.health()):
                manager.alive()

        server = Server(
            app,
            *listeners,
            level=config.log_level,
            on_started=started,
            on_second=alive,
            on_stopping=manager.stopping,
            root_path=config.root_path,
            certificates=certificates,
            proxies=proxies,
            keep_alive_seconds=config.keep_alive_seconds,
        )

        async def run() -> None:
            # Opened once before listening, so that problems of the database are reported first.
            nonlocal has_console, no_console
            async with Outreach.open(url, migrate=True, config=config, simulator=simulator) as engine:
                if has_console:
                    no_console = mount_console(
                        app,
                        engine,
                        require_second_factor=config.require_second_factor,
                        docs_url=config.docs_url or "",
                    )
                    has_console = not no_console
                made = await engine.users.open_setup(actor=actor()) if has_console else None
                setups.extend([] if made is None else [made])
            if not dispatch:
                # An engine that dispatches names them itself.
                for one in await to_thread.run_sync(unreadable_archives, url):
                    _log.warning("%s", one.problem, extra={"action": "archive_missing"})
            side_app = None if metrics is None else metrics.app()
            async with answering(side_app, side_listener, level=config.log_level):
                await server.serve()

        run_fast(run)


def _serving(address: str) -> str:
    documented = "" if address.startswith("unix:") else f"  (documentation: {address}/docs)"
    return f"Serving {address}{documented}"


def _announce(sentences: Sequence[str], *, log_format: str) -> None:
    from outreach_server.monitoring.log_lines import write_line

    for sentence in sentences:
        if log_format == "json":
            # A program that reads lines of JSON gets nothing else.
            _log.info("%s", sentence, extra={"action": "serving"})
        elif not write_line(sentence):
            # A full disk of the log, or a log pipe without a reader, does not stop the server.
            with suppress(OSError):
                click.echo(sentence, err=True)
