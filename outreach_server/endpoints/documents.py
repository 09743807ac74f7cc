"""/openapi.yaml and /docs."""

from __future__ import annotations

import gzip
import hashlib
from functools import lru_cache
from typing import Final

from anyio import to_thread
from starlette.endpoints import HTTPEndpoint
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.types import Receive, Scope, Send

from outreach_server.context import server_of
from outreach_server.contract import contract_of
from outreach_server.docs import POLICY, docs_page, page_files
from outreach_server.download import weights_of

_A_YEAR: Final = 365 * 24 * 3600


class Contract(HTTPEndpoint):
    """Serve the HTTP contract."""

    async def get(self, request: Request) -> Response:
        """Answer with openapi.yaml, compressed where the client takes that, or with 304 where it has it already."""
        contract = contract_of(request.scope.get("root_path", ""), server_of(request).carriers)
        weights = weights_of(request, "Accept-Encoding")
        zipped = weights.get("gzip", weights.get("*", 0.0)) > 0
        # Each form has a tag of its own, as a tag stands for the bytes.
        tag = f'"{hashlib.sha256(contract).hexdigest()[:32]}{"-gzip" if zipped else ""}"'
        headers = {"ETag": tag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
        known = ",".join(request.headers.getlist("If-None-Match")).split(",")
        if not {tag, f"W/{tag}", "*"}.isdisjoint(one.strip() for one in known):
            return Response(status_code=304, headers=headers)
        if zipped:
            headers["Content-Encoding"] = "gzip"
            contract = await to_thread.run_sync(_zip, contract)
        return Response(contract, media_type="application/yaml", headers=headers)


@lru_cache(maxsize=4)
def _zip(contract: bytes) -> bytes:
    return gzip.compress(contract, mtime=0)


class Docs(HTTPEndpoint):
    """Serve the documentation page."""

    async def get(self, request: Request) -> Response:
        """Return the page."""
        return HTMLResponse(docs_page(), headers={"Content-Security-Policy": POLICY})


class _WholeFile(FileResponse):
    """Sends all of a file and ignores `Range`: errors of ranges would have no envelope."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file."""
        headers = [(name, value) for name, value in scope["headers"] if name != b"range"]
        await super().__call__({**scope, "headers": headers}, receive, send)


class DocsFile(HTTPEndpoint):
    """Serve the files of the documentation page."""

    async def get(self, request: Request) -> Response:
        """Return a file of the viewer."""
        file = page_files().get(request.path_params["name"])
        if file is None:
            raise HTTPException(404)
        return _WholeFile(
            file.path,
            media_type=file.media_type,
            headers={
                "Cache-Control": f"public, max-age={_A_YEAR}",
                "X-Content-Type-Options": "nosniff",
                "Accept-Ranges": "none",
            },
        )
