"""The plug-ins of this package, by their names: the core imports none of `outreach.integrations`.

Only what puts an engine together, or works on a database by its URL, asks here; the rest gets what it asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from outreach.core.config import DISPATCHERS, IN_PROCESS
from outreach.errors import ConfigError

if TYPE_CHECKING:
    from outreach.protocols.dispatcher import DispatcherPlugin
    from outreach.protocols.ledger_archives import LedgerArchives


def dispatcher_plugin(name: str) -> DispatcherPlugin | None:
    """Return the plug-in of a dispatcher by its name (`EngineConfig.dispatcher`); None for the engine's own one.

    Raises:
        ConfigError: There is no such dispatcher, or a library that it needs is not installed.
    """
    if name not in DISPATCHERS:
        raise ConfigError(f"dispatcher is {name!r}; it must be one of {', '.join(DISPATCHERS)}.")
    if name == IN_PROCESS:
        return None
    return cast("DispatcherPlugin", import_module(f"outreach.integrations.{name}"))


def ledger_archives() -> LedgerArchives:
    """Return what reads the archives of ended campaigns, and erases in them."""
    return cast("LedgerArchives", import_module("outreach.integrations.archives.ledgers"))
