"""The configuration of a server: that of its engine, and what the server adds."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs

from outreach import ConfigError, EngineConfig, SimulatorConfig
from outreach_server.listening.proxies import TrustedProxies

CONFIG_VARIABLE: Final = "OUTREACH_CONFIG"
"""The variable with the path of the configuration file."""

LOG_FORMATS: Final = ("text", "json")

SECOND_FACTOR_FOR: Final = ("viewer", "agent", "manager", "owner", "operator")
"""The roles of the console, the one with the fewest rights first."""

LOG_LEVELS: Final = ("debug", "info", "warning", "error", "critical")

KEEP_ALIVE_SECONDS: Final = 75

_ORIGIN: Final = re.compile(r"https?://[^\s/?#@,*]+")
_MAX_PORT: Final = 65_535
_MAX_BYTES: Final = 2**40
_MAX_KEEP_ALIVE_SECONDS: Final = 3600


def _must(holds: Callable[[Any], bool], what: str, *, optional: bool = False) -> Any:
    """Return a validator of a setting; one that is optional may be None."""

    def check(instance: Any, attribute: Any, value: object) -> None:
        if not (optional and value is None) and not holds(value):
            raise ConfigError(f"{type(instance).__name__}.{attribute.name} is {value!r}; it must be {what}.")

    return check


def _one_of(words: Sequence[str]) -> Any:
    return _must(lambda value: value in words, f"one of {', '.join(words)}")


def _integer(least: int, most: int) -> Any:
    return _must(
        lambda value: type(value) is int and least <= value <= most, f"an integer from {least} and up to {most}"
    )


def _path_of(what: str) -> Any:
    return _must(lambda value: isinstance(value, Path), f"the path of {what}", optional=True)


def is_web_address(value: object) -> bool:
    """Return whether a value is a web address to which the path of a page can be added."""
    return isinstance(value, str) and re.fullmatch(r"https?://[^\s?#@\\]+", value, re.ASCII) is not None


def _is_address(value: object) -> bool:
    host, _, port = value.rpartition(":") if isinstance(value, str) else ("", "", "")
    return host != "" and port.isascii() and port.isdecimal() and int(port) <= _MAX_PORT


_TEXT: Final = _must(lambda value: isinstance(value, str) and value != "", "a text")
_DOCS_URL: Final = _must(
    is_web_address, "a web address without ?, # and @, such as https://docs.example.com", optional=True
)
_METRICS: Final = _must(_is_address, "HOST:PORT, such as 127.0.0.1:9464", optional=True)
_BOOLEAN: Final = _must(lambda value: type(value) is bool, "true or false")


def _text_for(read: Callable[[str], object]) -> Any:
    """Return a validator of an optional text that a function reads, which raises `ConfigError`."""

    def check(instance: Any, attribute: Any, value: object) -> None:
        if value is None:
            return
        _TEXT(instance, attribute, value)
        try:
            read(str(value))
        except ConfigError as error:
            raise ConfigError(f"{type(instance).__name__}.{attribute.name} is {value!r}: {error.message}") from None

    return check


def _path(given: Any) -> Any:
    return Path(given) if isinstance(given, str) else given


def _mount_path(given: object) -> str | None:
    if given is not None and (not isinstance(given, str) or not re.fullmatch(r"(/[\w.~-]+)+/?", given, re.ASCII)):
        raise ConfigError(f"ServerConfig.root_path is {given!r}; it must be a path such as /outreach.")
    return None if given is None else str(given).rstrip("/")


def read_origins(text: str) -> Sequence[str]:
    """Return the origins of the setting `cors_origins`.

    Raises:
        ConfigError: One is no origin.
    """
    origins = [one.strip().lower() for one in text.split(",")]
    for origin in origins:
        if origin != "*" and not _ORIGIN.fullmatch(origin):
            raise ConfigError(f"{origin!r} is no origin; write SCHEME://HOST[:PORT], without a path, or * for all.")
    return origins


@attrs.frozen(kw_only=True)
class ServerConfig(EngineConfig):
    """How the server and its engine behave.

    Attributes:
        database_url: The database: `sqlite:///relative.db`, `sqlite:////absolute.db` or `postgresql://host/database`.
        listen_host: The address to listen on.
        listen_port: The port to listen on; 0 takes any that is free.
        listen_uds: A Unix socket to listen on instead of an address and a port.
        proxy_headers: The reverse proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed: addresses and
            networks, and `unix` for connections by the Unix socket, with commas between them. None: nobody's.
        root_path: The path below which a reverse proxy serves this server; the proxy takes it off each request.
        keep_alive_seconds: How long a connection stays open after a response, until the next request. It is longer than
            the 60 s of most load balancers, which would else send a request as the connection ends, and answer 502.
        cors_origins: The origins whose pages may call the API from a browser, such as `https://app.example.com`, with
            commas between them, or `*` for all. None: no page of another origin.
        tls_certificate: A PEM file with the certificate and those that it was issued by, to serve HTTPS. It is read
            again when it changes.
        tls_key: A PEM file with the key of the certificate; None where the certificate's file has it too.
        dispatch: Whether this process sends; otherwise it answers requests only.
        console: Whether the console is at `/console`, where the extra `console` is installed.
        require_second_factor: Who needs a second factor for the console: people of this role or of more rights, such as
            `viewer` for all, or `operator` for operators alone; None: nobody.
        docs_url: The address of the site that `make docs` builds, to which empty pages of the console then link; None:
            they name files of `docs`.
        log_level: The least severe level that is logged.
        log_format: What lines of the log look like: `text` for people, or `json` for programs (docs/logging.md).
        log_client_address: Whether the log line of each request holds the client's address, which is personal data;
            with `proxy_headers` the address that the proxy names.
        metrics: Where `/metrics` answers Prometheus, as HOST:PORT: not the address of the API; None for nowhere.
        metrics_by_workspace: Whether metrics of dispatches and reports name the workspace by its id.
        tracing: Whether spans of requests and dispatches are handed to OpenTelemetry, which the host sets up.
        max_body_bytes: The largest body of a request that is taken.
        spool_directory: Where large bodies are kept while they are worked on; None for the system's place for temporary
            files.
    """

    database_url: str = attrs.field(default="sqlite:///outreach.db", validator=_TEXT, metadata={"flag": "--database"})
    # Not `host` and `port`: Kubernetes sets OUTREACH_PORT in the containers beside a service called outreach.
    listen_host: str = attrs.field(default="127.0.0.1", validator=_TEXT, metadata={"flag": "--host"})
    listen_port: int = attrs.field(default=8000, validator=_integer(0, _MAX_PORT), metadata={"flag": "--port"})
    listen_uds: Path | None = attrs.field(
        default=None, converter=_path, validator=_path_of("a socket"), metadata={"flag": "--uds"}
    )
    proxy_headers: str | None = attrs.field(default=None, validator=_text_for(TrustedProxies))
    root_path: str | None = attrs.field(default=None, converter=_mount_path)
    keep_alive_seconds: int = attrs.field(default=KEEP_ALIVE_SECONDS, validator=_integer(1, _MAX_KEEP_ALIVE_SECONDS))
    cors_origins: str | None = attrs.field(default=None, validator=_text_for(read_origins))
    tls_certificate: Path | None = attrs.field(default=None, converter=_path, validator=_path_of("a PEM file"))
    tls_key: Path | None = attrs.field(default=None, converter=_path, validator=_path_of("a PEM file"))
    dispatch: bool = attrs.field(default=True, validator=_BOOLEAN)
    console: bool = attrs.field(default=True, validator=_BOOLEAN)
    require_second_factor: str | None = attrs.field(
        default=None,
        validator=_must(
            lambda value: value in SECOND_FACTOR_FOR, f"one of {', '.join(SECOND_FACTOR_FOR)}", optional=True
        ),
    )
    docs_url: str | None = attrs.field(default=None, validator=_DOCS_URL)
    log_level: str = attrs.field(default="info", validator=_one_of(LOG_LEVELS))
    log_format: str = attrs.field(default="text", validator=_one_of(LOG_FORMATS))
    log_client_address: bool = attrs.field(default=False, validator=_BOOLEAN)
    metrics: str | None = attrs.field(default=None, validator=_METRICS)
    metrics_by_workspace: bool = attrs.field(default=False, validator=_BOOLEAN)
    tracing: bool = attrs.field(default=False, validator=_BOOLEAN)
    max_body_bytes: int = attrs.field(default=64 * 2**20, validator=_integer(1, _MAX_BYTES))
    spool_directory: Path | None = attrs.field(default=None, converter=_path, validator=_path_of("a directory"))


def scheme_of(config: ServerConfig) -> str:
    """Return the scheme of a server's URLs."""
    return "http" if config.tls_certificate is None else "https"


def url_from_here(scheme: str, host: str, port: int) -> str:
    """Return the URL at which what listens on an address is reached from this machine."""
    # A wildcard address can be listened on, not opened.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def host_and_port(address: str) -> tuple[str, int]:
    """Return the parts of a HOST:PORT; an IPv6 host may stand in brackets."""
    host, _, port = address.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


def config_file(environment: Mapping[str, str]) -> Path | None:
    """Return the configuration file that the environment names; None where it names none."""
    named = environment.get(CONFIG_VARIABLE)
    return Path(named) if named else None


def load(*, file: Path | None = None, flags: Mapping[str, Any] | None = None) -> tuple[ServerConfig, SimulatorConfig]:
    """Read the configuration of this process: flags, then the environment, then the file.

    Args:
        file: The configuration file; None takes that of `OUTREACH_CONFIG`.
        flags: Values by field name; those of the simulators begin with `simulator_`.

    Raises:
        ConfigError: A value is wrong; the message says where it comes from.
    """
    ours, theirs = _parted(flags or {})
    file = file or config_file(os.environ)
    return (
        ServerConfig.load(os.environ, file=file, flags=ours),
        SimulatorConfig.load(os.environ, file=file, flags=theirs),
    )


def sources(*, file: Path | None = None, flags: Mapping[str, Any] | None = None) -> Mapping[str, str]:
    """Return the flag, variable or key that each setting comes from, by its key; those with their default are absent.

    Raises:
        ConfigError: The file cannot be read, or has what is no setting.
    """
    ours, theirs = _parted(flags or {})
    file = file or config_file(os.environ)
    return {
        **ServerConfig.sources(os.environ, file=file, flags=ours),
        **SimulatorConfig.sources(os.environ, file=file, flags=theirs),
    }


def _parted(flags: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the flags of the server and its engine, and those of the simulators, by field name."""
    prefix = f"{SimulatorConfig.table}_"
    ours = {name: value for name, value in flags.items() if not name.startswith(prefix)}
    theirs = {name.removeprefix(prefix): value for name, value in flags.items() if name.startswith(prefix)}
    return ours, theirs
