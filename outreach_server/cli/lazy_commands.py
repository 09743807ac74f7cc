"""Commands that are imported when they are used, so that `--help` is fast."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Final

import attrs
import click

from outreach_server.needs import server_extra

HELPER: Final = "read-body"
"""The hidden command, which reads a large body for a server."""

OF_RESOURCE: Final = "resources"
"""The module of the commands that follow from the definition of a resource."""


@attrs.frozen
class CommandModule:
    """The place of a command.

    Attributes:
        module: Its module in this package.
        purpose: The first sentence of its help, where a list shows it without the import.
        attribute: Its name in the module, where that is not the command's own.
    """

    module: str
    purpose: str = ""
    attribute: str = ""


class LazyCommands(MutableMapping[str, click.Command]):
    """Commands by name, in the order of the help.

    Args:
        places: The place of each.
    """

    def __init__(self, places: Mapping[str, CommandModule]) -> None:
        self._places = dict(places)
        self._loaded: dict[str, click.Command] = {}

    def purpose(self, name: str, limit: int) -> str:
        """Return a command's purpose, cut like click's own help."""
        return click.Command(name, help=self._places[name].purpose).get_short_help_str(limit)

    def __getitem__(self, name: str) -> click.Command:
        """Import and return a command."""
        if name not in self._loaded:
            place = self._places[name]
            module = _import(name, f"outreach_server.cli.{place.module}")
            if place.module == OF_RESOURCE:
                self._loaded[name] = module.resource_group(name, place.purpose)
            else:
                self._loaded[name] = getattr(module, place.attribute or name.replace("-", "_"))
        return self._loaded[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        """Refuse an imported command.

        Raises:
            TypeError: Always.
        """
        raise TypeError(f"Name the place of {name} instead.")

    def __delitem__(self, name: str) -> None:
        """Remove a command."""
        del self._places[name]

    def __iter__(self) -> Iterator[str]:
        """Yield the names."""
        return iter(self._places)

    def __len__(self) -> int:
        """Return the number of commands."""
        return len(self._places)


def _import(name: str, module: str) -> ModuleType:
    try:
        with server_extra(f"outreach-server {name}"), _without_collections():
            return import_module(module)
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError):
            raise
        raise click.ClickException(str(error)) from error


@contextmanager
def _without_collections() -> Iterator[None]:
    """Keep the garbage collector from looking at modules within the block, and later: they stay, and it takes time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_on:
            gc.enable()
