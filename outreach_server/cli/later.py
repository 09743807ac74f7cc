"""Commands that are imported when one of them is asked for: `--help` shows all of them and needs none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from types import ModuleType

import attrs
import click

from outreach_server.needs import server_extra


@attrs.frozen
class CommandModule:
    """Where a command is.

    Attributes:
        module: The module of this package that has it, under its name with `_` for `-`.
        purpose: The first sentence of its help.
    """

    module: str
    purpose: str


class LazyCommands(MutableMapping[str, click.Command]):
    """Commands by name, in the order in which they are shown.

    Args:
        places: Where each of them is.
    """

    def __init__(self, places: Mapping[str, CommandModule]) -> None:
        self._places = dict(places)
        self._loaded: dict[str, click.Command] = {}

    def purpose(self, name: str, limit: int) -> str:
        """Return what a command is for, in so many characters at most, as its own help has it."""
        return click.Command(name, help=self._places[name].purpose).get_short_help_str(limit)

    def __getitem__(self, name: str) -> click.Command:
        """Return a command, which is imported with all that it needs."""
        if name not in self._loaded:
            module = _import(name, f"outreach_server.cli.{self._places[name].module}")
            self._loaded[name] = getattr(module, name.replace("-", "_"))
        return self._loaded[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        """Refuse: a command that is there already would have been imported.

        Raises:
            TypeError: Always.
        """
        raise TypeError(f"Name the place of {name} instead.")

    def __delitem__(self, name: str) -> None:
        """Take a command away."""
        del self._places[name]

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self._places)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._places)


def _import(name: str, module: str) -> ModuleType:
    try:
        with server_extra(f"outreach-server {name}"):
            return import_module(module)
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError):
            raise
        raise click.ClickException(str(error)) from error
