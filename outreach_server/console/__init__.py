"""The console: the web application for people who run campaigns, as a Starlette app.

from outreach_server.console import create_console

host.mount("/campaigns", create_console(engine=engine, identify=current_user))
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from outreach_server.words import console_extra

if TYPE_CHECKING:
    from outreach_server.console.access import ConsoleUser, Identify, Role
    from outreach_server.console.app import create_console

__all__ = ["ConsoleUser", "Identify", "Role", "create_console"]

_MODULES: Final = {"ConsoleUser": "access", "Identify": "access", "Role": "access", "create_console": "app"}

# Hidden from type checkers, which would accept any name otherwise.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a name when it is used."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        with console_extra(f"{__name__}.{name}"):
            return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
