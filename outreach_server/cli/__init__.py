"""The `outreach-server` command."""

from __future__ import annotations

from outreach_server.cli.root import main

__all__ = ["main"]
