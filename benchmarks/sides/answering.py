"""Serving an app as a side: on a free port that it prints, with uvloop and httptools."""

from __future__ import annotations

import socket

import uvicorn
from starlette.types import ASGIApp

from benchmarks.sides.telling import tell

_BACKLOG = 2048


def serve(app: ASGIApp) -> None:
    """Serve an app until the process is ended."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", 0))
        listener.listen(_BACKLOG)
        tell({"url": f"http://127.0.0.1:{listener.getsockname()[1]}"})
        # `auto` takes uvloop and httptools, which `make bench` installs.
        config = uvicorn.Config(app, loop="auto", http="auto", log_level="error", access_log=False, ws="none")
        uvicorn.Server(config).run(sockets=[listener])
