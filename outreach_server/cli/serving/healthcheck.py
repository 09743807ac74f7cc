"""`healthcheck`: whether the server of this machine lives, for containers that have no other program."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click
import httpx

from outreach_server.cli.base import Command, state
from outreach_server.cli.output import echo_json
from outreach_server.config import ServerConfig, scheme_of, url_from_here

_SECONDS: Final = 5.0
_SOCKET: Final = "unix:"


@click.command(cls=Command)
@click.option("--ready", is_flag=True, help="Ask whether it can do its work (/readyz), not only whether it lives.")
@click.option("--url", help="URL of the server, as `serve` prints it; by default the configured address.")
def healthcheck(ready: bool, url: str | None) -> None:
    """Ask the server of this configuration whether it lives; exit status 1 where it does not.

    It reads what `serve` reads: the environment, or the file that --config names.
    """
    config = state().configuration()[0]
    address, socket = (_url_of(config), config.listen_uds) if url is None else (url, None)
    if address.startswith(_SOCKET):
        address, socket = f"{scheme_of(config)}://localhost", Path(address.removeprefix(_SOCKET))
    if socket is not None and not socket.exists():
        raise click.ClickException(f"No server answers at {socket}: there is no such socket.")
    # The certificate is for the name that clients use, not for this address.
    transport = httpx.HTTPTransport(uds=None if socket is None else str(socket), verify=False)
    where = address if socket is None else str(socket)
    try:
        with httpx.Client(transport=transport, timeout=_SECONDS, trust_env=False) as client:
            answer = client.get(f"{address}/readyz" if ready else f"{address}/healthz")
            document: Any = answer.json()
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        why = (str(error) or type(error).__name__).removesuffix(".")
        raise click.ClickException(f"No server answers at {where}: {why}.") from None
    if not isinstance(document, dict) or (answer.is_success and "status" not in document):
        raise click.ClickException(f"No server answers at {where}: something else answers there.")
    if state().as_json:
        echo_json(document)
    elif answer.is_success:
        click.echo(document["status"])
    if not answer.is_success:
        raise click.ClickException(
            " ".join(document.get("reasons", [])) or f"The server answers with {answer.status_code}."
        )


def _url_of(config: ServerConfig) -> str:
    """Return where a server with this configuration is reached.

    Raises:
        click.UsageError: It takes any free port.
    """
    scheme = scheme_of(config)
    if config.listen_uds is not None:
        return f"{scheme}://localhost"
    if config.listen_port == 0:
        raise click.UsageError("The configuration says port 0, which is any that is free: name the server with --url.")
    return url_from_here(scheme, config.listen_host, config.listen_port)
