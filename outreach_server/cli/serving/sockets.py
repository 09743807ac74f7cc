"""The sockets that `serve` listens on: those that systemd passes, a Unix socket, or an address and a port."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

import click

from outreach_server.cli.serving.serving import BACKLOG, bind
from outreach_server.config import ServerConfig

_FIRST: Final = 3
"""The first descriptor that is passed, as in sd_listen_fds(3)."""

_MODE: Final = 0o666
"""Like a port of this machine: the mode of the directory limits who can connect."""


@contextmanager
def listening(config: ServerConfig) -> Iterator[Sequence[socket.socket]]:
    """Listen until the block ends.

    Raises:
        click.ClickException: It cannot listen there, or systemd has passed something else than a listening socket.
    """
    with ExitStack() as stack:
        sockets = handed_over()
        for one in sockets:
            stack.enter_context(one)
        if not sockets:
            path = config.listen_uds
            one = stack.enter_context(
                bind(config.listen_host, config.listen_port) if path is None else _bound_to_path(path)
            )
            sockets = [one]
        yield sockets


def handed_over() -> list[socket.socket]:
    """Return the sockets that systemd has passed, once.

    Raises:
        click.ClickException: One of them does not listen.
    """
    process, count = os.environ.pop("LISTEN_PID", ""), os.environ.pop("LISTEN_FDS", "")
    os.environ.pop("LISTEN_FDNAMES", None)
    if process != str(os.getpid()) or not count.isdecimal():
        return []
    sockets = []
    for descriptor in range(_FIRST, _FIRST + int(count)):
        os.set_inheritable(descriptor, False)
        one = socket.socket(fileno=descriptor)
        sockets.append(one)
        if one.type != socket.SOCK_STREAM or not one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            for each in sockets:
                each.close()
            raise click.ClickException(
                f"Descriptor {descriptor} of LISTEN_FDS is no listening stream socket: use ListenStream= in the socket "
                "unit, and Accept=no."
            )
    return sockets


@contextmanager
def _bound_to_path(path: Path) -> Iterator[socket.socket]:
    """Listen on a Unix socket; delete it in the end, unless another server has put its own there."""
    _remove_stale_socket(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        try:
            listener.bind(str(path))
            path.chmod(_MODE)
            listener.listen(BACKLOG)
        except OSError as error:
            raise click.ClickException(f"Cannot listen on {path}: {error.strerror or error}.") from None
        mine = path.stat().st_ino
        try:
            yield listener
        finally:
            with suppress(OSError):
                if path.stat().st_ino == mine:
                    path.unlink()


def _remove_stale_socket(path: Path) -> None:
    """Delete the socket of a server that is gone.

    Raises:
        click.ClickException: It is in use, or no socket.
    """
    try:
        kind = path.stat().st_mode
    except OSError:
        return
    if not stat.S_ISSOCK(kind):
        raise click.ClickException(f"{path} is a file and no socket. Name another path with --uds.")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
        except OSError as error:
            raise click.ClickException(f"Cannot listen on {path}: {error.strerror or error}.") from None
        else:
            raise click.ClickException(f"Another process listens on {path}. Name another path with --uds.")
