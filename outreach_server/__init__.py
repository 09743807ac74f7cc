"""The HTTP interface of the engine, as a Starlette app.

from outreach_server import create_app

app = create_app("sqlite:///outreach.db")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from outreach_server.needs import server_extra

if TYPE_CHECKING:
    from outreach_server.app import create_app
    from outreach_server.context import Authenticate, Identity
    from outreach_server.errors import status_of
    from outreach_server.lifespan import running
    from outreach_server.monitoring.server_metrics import ServerMetrics

__all__ = ["Authenticate", "Identity", "ServerMetrics", "create_app", "running", "status_of"]


# Hidden from type checkers, which would accept any name otherwise.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a name when it is used: the command line is in this package too, and mostly needs no web framework."""
        match name:
            case "create_app":
                with server_extra("outreach_server.create_app"):
                    from outreach_server.app import create_app

                return create_app
            case "Authenticate":
                from outreach_server.context import Authenticate

                return Authenticate
            case "Identity":
                with server_extra("outreach_server.Identity"):
                    from outreach_server.context import Identity

                return Identity
            case "ServerMetrics":
                with server_extra("outreach_server.ServerMetrics"):
                    from outreach_server.monitoring.server_metrics import ServerMetrics

                return ServerMetrics
            case "running":
                with server_extra("outreach_server.running"):
                    from outreach_server.lifespan import running

                return running
            case "status_of":
                with server_extra("outreach_server.status_of"):
                    from outreach_server.errors import status_of

                return status_of
            case _:
                raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
