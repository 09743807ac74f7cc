"""How a server is set up towards the network and its machine: plain HTTP, proxies, paths, files with secrets."""

from __future__ import annotations

import ipaddress
import os
import shlex
import stat
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from outreach.errors import Problem
from outreach_server.bodies.spool import is_usable
from outreach_server.cli.doctor.findings import finding
from outreach_server.config import ServerConfig
from outreach_server.listening.proxies import UNIX, TrustedProxies, is_loopback_host

_SHOW: Final = "outreach-server config"
_KEY_FILE_VARIABLE: Final = "OUTREACH_SECRET_KEY_FILE"


def of_listening(config: ServerConfig) -> Iterator[Problem]:
    """Yield that requests come in plain from elsewhere, or that everybody is taken for a proxy."""
    open_to_all = config.listen_uds is None and not is_loopback_host(config.listen_host)
    if open_to_all and config.tls_certificate is None and config.proxy_headers is None:
        yield finding(
            "listens_in_plain",
            f"The server listens on {config.listen_host} without TLS, and knows no proxy: API keys, numbers and texts "
            "cross the network in plain. Serve HTTPS, or listen on 127.0.0.1 behind a proxy that does.",
            config.listen_host,
            "export OUTREACH_LISTEN_HOST=127.0.0.1",
            looks=[_SHOW],
        )
    names = [] if config.proxy_headers is None else TrustedProxies(config.proxy_headers).names
    if any(name != UNIX and ipaddress.ip_network(name).prefixlen == 0 for name in names):
        yield finding(
            "proxies_too_wide",
            "Every client is taken for a proxy, so that each may say that it comes from any address.",
            "OUTREACH_PROXY_HEADERS",
            "export OUTREACH_PROXY_HEADERS=127.0.0.1",
            looks=[_SHOW],
        )


def of_paths(config: ServerConfig) -> Iterator[Problem]:
    """Yield that the public address and the path behind the proxy do not fit."""
    if config.public_url is None:
        return
    path = urlsplit(config.public_url).path.rstrip("/")
    if path != (config.root_path or ""):
        yield finding(
            "root_path_differs",
            f"The public address has the path {path or '/'}, and the server is told that it lies below "
            f"{config.root_path or '/'}: links and callbacks lead to one of both.",
            config.public_url,
            f"export OUTREACH_ROOT_PATH={shlex.quote(path)}",
            looks=[_SHOW],
        )


def of_files(config: ServerConfig, config_file: Path | None) -> Iterator[Problem]:
    """Yield that a file with a secret can be read, or a directory that is needed cannot be written."""
    if config_file is not None and config_file.exists():
        others = config_file.stat().st_mode & (stat.S_IROTH | stat.S_IWOTH)
        if others and urlsplit(config.database_url).password:
            yield finding(
                "config_file_exposed",
                f"Everybody on this machine may read {str(config_file)!r}, which has the database's password.",
                str(config_file),
                f"chmod o-rwx {shlex.quote(str(config_file))}",
            )
    named = os.environ.get(_KEY_FILE_VARIABLE)
    key = Path(named) if named else None
    if key is not None and key.exists() and key.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        yield finding(
            "key_exposed",
            f"Others may read the key of the accounts' credentials, {str(key)!r} ({_KEY_FILE_VARIABLE}).",
            str(key),
            f"chmod 400 {shlex.quote(str(key))}",
        )
    spool = config.spool_directory or Path(tempfile.gettempdir())
    if not is_usable(spool):
        yield finding(
            "spool_not_writable",
            f"The directory {str(spool)!r} cannot be written: large requests are refused.",
            str(spool),
            *_writable(spool),
        )


def _writable(directory: Path) -> Sequence[str]:
    quoted = shlex.quote(str(directory))
    if not directory.is_dir():
        return [f"mkdir -p -m 700 {quoted}"]
    return [f"sudo chown $(id -un) {quoted}", f"chmod u+rwx {quoted}"]
