"""A bare Starlette route: it answers with the bytes that it was given for a target, and does nothing else.

Told: `answers`, files by target; `status` of every answer.
"""

from __future__ import annotations

from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from benchmarks.sides.answering import serve
from benchmarks.sides.telling import told


def main() -> None:
    """Serve it."""
    arguments = told()
    answers = {target.encode(): Path(file).read_bytes() for target, file in arguments["answers"].items()}
    status = arguments.get("status", 200)

    async def answer(request: Request) -> Response:
        if request.method == "POST":
            await request.body()
        query = request.scope["query_string"]
        target = request.scope["raw_path"] + (b"?" + query if query else b"")
        return Response(answers[target], status_code=status, media_type="application/json")

    serve(Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST"])]))


if __name__ == "__main__":
    main()
