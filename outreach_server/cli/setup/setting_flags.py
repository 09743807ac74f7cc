"""The options of a command that set the configuration: one for each setting, in sections of their own in the help."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import click

from outreach import EngineConfig, SimulatorConfig
from outreach_server.cli.base import Command
from outreach_server.config import ServerConfig

_OF_WORKERS: Final = frozenset({"log_level", "log_format", "metrics", "metrics_by_workspace", "tracing"})
"""The settings of the server that a worker has too."""

_ENGINE: Final = frozenset(setting.name for setting in EngineConfig.settings())


class SettingOption(click.Option):
    """An option for one setting; it is None where it is not given, so that the next source counts.

    Args:
        section: The heading of the help under which it stands.
    """

    def __init__(self, *args: Any, section: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.section = section


class ConfiguredCommand(Command):
    """A command whose help shows the options of settings after the others."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in their sections."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                section = param.section if isinstance(param, SettingOption) else "Options"
                sections.setdefault(section, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def setting_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option for each setting of the server, its engine and the simulators, but for `--database`."""
    return _with_options(function, server={setting.name for setting in ServerConfig.settings()})


def worker_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option for each setting that a worker has, which answers no requests."""
    return _with_options(function, server=_OF_WORKERS)


def _with_options(function: Callable[..., Any], *, server: Collection[str]) -> Callable[..., Any]:
    """Add options for these settings of the server, and for those of its engine and the simulators."""
    options: list[Callable[[Callable[..., Any]], Callable[..., Any]]] = []
    for config, section in ((ServerConfig, "Server"), (EngineConfig, "Engine"), (SimulatorConfig, "Simulators")):
        for setting in config.settings():
            if setting.flag == "--database" or (
                config is ServerConfig and (setting.name in _ENGINE or setting.name not in server)
            ):
                continue
            name = setting.name if config is not SimulatorConfig else f"{SimulatorConfig.table}_{setting.name}"
            boolean = setting.kind == "boolean"
            options.append(
                click.option(
                    f"{setting.flag}/--no-{setting.flag[2:]}" if boolean else setting.flag,
                    name,
                    cls=SettingOption,
                    section=section,
                    default=None,
                    metavar=None if boolean else setting.kind.upper(),
                    help=f"{setting.meaning} [env: {setting.variable}; default: {shown(setting.default)}]",
                )
            )
    for option in reversed(options):
        function = option(function)
    return function


def given(flags: Mapping[str, str | bool | None]) -> dict[str, str | bool]:
    """Return the settings that were given."""
    return {name: value for name, value in flags.items() if value is not None}


def shown(default: object) -> str:
    """Return a default as it is written in a file or a variable."""
    match default:
        case None:
            return "none"
        case bool():
            return str(default).lower()
        case float():
            return f"{default:g}"
        case _:
            return str(default)
