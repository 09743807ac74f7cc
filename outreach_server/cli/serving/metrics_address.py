"""The address of the metrics, beside that of the API."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from outreach import ConfigError
from outreach_server.config import ServerConfig

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from outreach_server.monitoring.server_metrics import ServerMetrics

_MAX_SCRAPERS: Final = 20
"""Connections to the address of the metrics."""


def metrics_of(config: ServerConfig, database: str) -> ServerMetrics | None:
    """Return the metrics of a server; None where they are not asked for.

    Args:
        config: The configuration.
        database: The path of the database, or its URL if it is not a file.

    Raises:
        ConfigError: The library that they need is not installed, or the address is missing.
    """
    if config.metrics is None:
        if config.metrics_by_workspace:
            raise ConfigError("metrics_by_workspace needs the address of the metrics: --metrics HOST:PORT.")
        return None
    from outreach_server.monitoring.server_metrics import ServerMetrics

    return ServerMetrics(by_workspace=config.metrics_by_workspace, database=Path(database))


@asynccontextmanager
async def answering(app: ASGIApp | None, listener: socket.socket | None, *, level: str) -> AsyncIterator[None]:
    """Answer with an app during the block; without a listener there are no requests."""
    if app is None or listener is None:
        yield
        return
    from outreach_server.cli.serving.serving import SideServer

    server = SideServer(app, listener, level=level, on_started=lambda: None, most_connections=_MAX_SCRAPERS)
    task = asyncio.create_task(server.serve(), name="outreach metrics")
    try:
        yield
    finally:
        server.should_exit = True
        await asyncio.gather(task, return_exceptions=True)
