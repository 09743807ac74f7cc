"""The HTTP interface of the engine, as a Starlette app.

from outreach_server import create_app

app = create_app("sqlite:///outreach.db")
"""

from __future__ import annotations

from outreach_server.app import create_app
from outreach_server.lifespan import running

__all__ = ["create_app", "running"]
