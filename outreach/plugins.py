"""The plug-ins of this package: the core imports none of `outreach.integrations`, and this module imports by name.

The core has protocols as hooks. Only the engine, and the functions that take the URL of a database, call this module;
they hand the plug-ins on as arguments. Metrics, tracing and the report page need no hook here: programs pass them.
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
    """Return the plug-in that reads and erases in ledger archives.

    Every engine has it, because a campaign of its database may be in an archive. It imports its code for files with
    the first archive.
    """
    return cast("LedgerArchives", import_module("outreach.integrations.archives.ledgers"))
