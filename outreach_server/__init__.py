"""The HTTP interface of the engine, as a Starlette app.

from outreach_server import create_app

app = create_app("sqlite:///outreach.db")
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from outreach_server.words import server_extra

if TYPE_CHECKING:
    from outreach_server.app import create_app
    from outreach_server.context import Authenticate, Identity
    from outreach_server.errors import status_of
    from outreach_server.lifespan import running
    from outreach_server.monitoring.server_metrics import ServerMetrics

__all__ = ["Authenticate", "Identity", "ServerMetrics", "create_app", "running", "status_of"]


_MODULES = {
    "Authenticate": "context",
    "Identity": "context",
    "ServerMetrics": "monitoring.server_metrics",
    "create_app": "app",
    "running": "lifespan",
    "status_of": "errors",
}

# Hidden from type checkers, which would accept any name otherwise.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a name when it is used: the command line is in this package too, and mostly needs no web framework."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        with server_extra(f"{__name__}.{name}"):
            return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
