"""The `outreach-server` command."""

from __future__ import annotations

from outreach_server.words import server_extra

with server_extra("outreach-server"):
    from outreach_server.cli.root import main

__all__ = ["main"]
