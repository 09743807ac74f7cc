"""A provider that takes its time: it answers every request with an empty object. Told: `latency_ms`."""

from __future__ import annotations

import anyio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from benchmarks.sides.answering import serve
from benchmarks.sides.telling import told


def main() -> None:
    """Serve it."""
    seconds = told()["latency_ms"] / 1000

    async def answer(request: Request) -> Response:
        await request.body()
        await anyio.sleep(seconds)
        return Response(b"{}", media_type="application/json")

    serve(Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST"])]))


if __name__ == "__main__":
    main()
