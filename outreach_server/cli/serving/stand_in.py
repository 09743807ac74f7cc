"""`stand-in`: a server that plays a provider on this machine."""

from __future__ import annotations

import importlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import anyio
import click

from outreach import Outreach, OutreachError
from outreach_server.cli.base import Command, state
from outreach_server.cli.output import console, echo_json, fields
from outreach_server.cli.serving.serving import Server, bind, run_fast, url_of
from outreach_server.cli.sigint import ending_in_order
from outreach_server.cli.values import PORT, OneOf
from outreach_server.config import LOG_LEVELS

if TYPE_CHECKING:
    from outreach_server.stand_ins.base import StandIn

STAND_INS: Final = {
    "twilio": "TwilioStandIn",
    "telnyx": "TelnyxStandIn",
    "vonage": "VonageStandIn",
    "vapi": "VapiStandIn",
    "retell": "RetellStandIn",
    "elevenlabs": "ElevenLabsStandIn",
}
"""The class of each provider's stand-in."""

_HOST: Final = "127.0.0.1"


def stand_in_of(provider: str) -> StandIn:
    """Return the stand-in of a provider."""
    module = importlib.import_module(f"outreach_server.stand_ins.{provider}")
    return cast("StandIn", getattr(module, STAND_INS[provider])())


@click.command("stand-in", cls=Command)
@click.argument("provider", type=click.Choice(tuple(STAND_INS)))
@click.option("--port", type=PORT, default=0, show_default=True, help="The port; 0 takes any that is free.")
@click.option(
    "--credentials",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the credentials here, for `accounts connect --file`.",
)
@click.option("--log-level", type=OneOf(LOG_LEVELS), default="warning", show_default=True, help="Least to log.")
def stand_in(provider: str, port: int, file: Path | None, log_level: str) -> None:
    """Play PROVIDER on this machine, until Ctrl-C or SIGTERM, so that going live can be rehearsed.

    Connect an account with the credentials that it prints. It accepts messages or calls, and sends signed callbacks to
    the loopback alone. The number decides: ...0191 is refused; ...0192 fails, or is busy; ...0193 writes STOP, or asks
    for no more calls; ...0194 writes back, or a machine answers; ...0195 does not answer a call. Every other number is
    reached.
    """
    from outreach_server.monitoring.log_lines import log_to_stderr
    from outreach_server.stand_ins.app import stand_in_app

    played, as_json = stand_in_of(provider), state().as_json
    config, _ = state().configuration()
    log_to_stderr(log_level)
    with ending_in_order(), bind(_HOST, port) as listener:
        url = url_of(listener)
        credentials = {**played.credentials, "api_base": url}
        if file is not None:
            _write(file, json.dumps(credentials))

        looking, known = anyio.Lock(), list[str]()

        async def account_url() -> str | None:
            # Where the adapter names no address in its requests, an operator sets it at the provider.
            async with looking:
                if not known:
                    with suppress(OutreachError):
                        async with Outreach.open(config.database_url, config=config, create=False) as engine:
                            known.extend(await _callback_urls(engine, provider, url))
                return known[0] if known else None

        def started() -> None:
            answer = {"provider": provider, "url": url, "credentials": credentials}
            if as_json:
                echo_json(answer)
            else:
                console().print(fields({"provider": provider, "url": url, **credentials}))
            click.echo("Ctrl-C stops it. Numbers that end in 0191 to 0195 are not reached: see --help.", err=True)

        app = stand_in_app(played, account_url)

        async def run() -> None:
            await Server(app, listener, level=log_level, on_started=started).serve()

        run_fast(run)


async def _callback_urls(engine: Outreach, provider: str, api_base: str) -> list[str]:
    """Return the callback URLs of the accounts that are connected to this stand-in."""
    return [
        account.callback_url
        async for workspace in engine.workspaces.iter_all()
        async for account in engine.accounts.iter_all(workspace.id)
        if account.provider == provider
        and account.credentials.get("api_base") == api_base
        and account.callback_url is not None
    ]


def _write(file: Path, text: str) -> None:
    """Write a file that its owner alone can read."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write(text + "\n")
