"""The configuration of a server: that of its engine, and what the server adds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from outreach import ConfigError, EngineConfig, SimulatorConfig

CONFIG_VARIABLE: Final = "OUTREACH_CONFIG"
"""The variable with the path of the configuration file."""

LOG_LEVELS: Final = ("debug", "info", "warning", "error", "critical")

_MAX_PORT: Final = 65_535
_MAX_BYTES: Final = 2**40


def _text(instance: Any, attribute: Any, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{type(instance).__name__}.{attribute.name} is {value!r}; it must be a text.")


def _boolean(instance: Any, attribute: Any, value: object) -> None:
    if type(value) is not bool:
        raise ConfigError(f"{type(instance).__name__}.{attribute.name} is {value!r}; it must be true or false.")


def _level(instance: Any, attribute: Any, value: object) -> None:
    if value not in LOG_LEVELS:
        raise ConfigError(
            f"{type(instance).__name__}.{attribute.name} is {value!r}; it must be one of {', '.join(LOG_LEVELS)}."
        )


def _integer(least: int, most: int) -> Any:
    def check(instance: Any, attribute: Any, value: object) -> None:
        if type(value) is not int or not least <= value <= most:
            raise ConfigError(
                f"{type(instance).__name__}.{attribute.name} is {value!r}; "
                f"it must be an integer from {least} and up to {most}."
            )

    return check


def _path(given: object) -> Path | None:
    if given is not None and not isinstance(given, str | Path):
        raise ConfigError(f"ServerConfig.spool_directory is {given!r}; it must be the path of a directory.")
    return None if given is None else Path(given)


@attrs.frozen(kw_only=True)
class ServerConfig(EngineConfig):
    """How the server and its engine behave.

    Attributes:
        database_url: The database: `sqlite:///relative.db`, `sqlite:////absolute.db` or `postgresql://host/database`.
        listen_host: The address to listen on.
        listen_port: The port to listen on; 0 takes any that is free.
        dispatch: Whether this process sends; otherwise it answers requests only.
        log_level: The least severe level that is logged.
        max_body_bytes: The largest body of a request that is taken.
        spool_directory: Where large bodies are kept while they are worked on; None for the system's place for temporary
            files.
    """

    database_url: str = attrs.field(default="sqlite:///outreach.db", validator=_text, metadata={"flag": "--database"})
    # Not `host` and `port`: Kubernetes sets OUTREACH_PORT in the containers beside a service called outreach.
    listen_host: str = attrs.field(default="127.0.0.1", validator=_text, metadata={"flag": "--host"})
    listen_port: int = attrs.field(default=8000, validator=_integer(0, _MAX_PORT), metadata={"flag": "--port"})
    dispatch: bool = attrs.field(default=True, validator=_boolean)
    log_level: str = attrs.field(default="info", validator=_level)
    max_body_bytes: int = attrs.field(default=64 * 2**20, validator=_integer(1, _MAX_BYTES))
    spool_directory: Path | None = attrs.field(default=None, converter=_path)


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
