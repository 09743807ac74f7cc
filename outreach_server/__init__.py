"""The HTTP interface of the engine, as a Starlette app.

from outreach_server import create_app

app = create_app("sqlite:///outreach.db")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from outreach_server.lazy_names import imported_when_used
from outreach_server.words import server_extra

if TYPE_CHECKING:
    from outreach_server.app import create_app as create_app
    from outreach_server.context import Authenticate as Authenticate
    from outreach_server.context import Identity as Identity
    from outreach_server.errors import status_of as status_of
    from outreach_server.lifespan import running as running
    from outreach_server.monitoring.server_metrics import ServerMetrics as ServerMetrics

if not TYPE_CHECKING:  # which would accept any name otherwise
    # The command line is in this package too, and mostly needs no web framework.
    __getattr__, __all__ = imported_when_used(
        globals(),
        {
            "Authenticate": "context",
            "Identity": "context",
            "ServerMetrics": "monitoring.server_metrics",
            "create_app": "app",
            "running": "lifespan",
            "status_of": "errors",
        },
        server_extra,
    )
