"""/openapi.yaml, and /docs: it in Swagger UI, with nothing fetched from elsewhere.

Swagger UI's files come from the package `offapi`, which is not imported: it would build its own pages in memory.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import attrs
from anyio import to_thread
from starlette.endpoints import HTTPEndpoint
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.types import Receive, Scope, Send

from outreach_server.context import server_of
from outreach_server.contract import contract_of
from outreach_server.download import weights_of

_A_YEAR: Final = 365 * 24 * 3600

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy of the page: it loads from this server and sends requests to it alone."""

_PACKAGE: Final = "offapi"
_PAGES: Final = Path(__file__).parent.parent / "pages"


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
        return HTMLResponse(_docs_page(), headers={"Content-Security-Policy": _POLICY})


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


@attrs.frozen(kw_only=True)
class PageFile:
    """A file of the page, served as /docs/NAME.

    Attributes:
        path: Its path.
        media_type: Its media type.
    """

    path: Path
    media_type: str


@cache
def _docs_page() -> str:
    """Return the page as HTML, cached.

    Raises:
        FileNotFoundError: The installation lacks the viewer.
    """
    page = (_PAGES / "docs.html").read_text("utf-8")
    # Changed files get another URL, so that browsers may cache them for ever.
    content = b"".join(file.path.read_bytes() for file in page_files().values())
    version = hashlib.sha256(content).hexdigest()[:12]
    return page.replace("{{version}}", version)


@cache
def page_files() -> Mapping[str, PageFile]:
    """Return the files of the page, by name.

    Raises:
        FileNotFoundError: The installation lacks the viewer.
    """
    found = find_spec(_PACKAGE)
    if found is None or found.origin is None:
        raise FileNotFoundError(
            f"The package {_PACKAGE}, which has the viewer at /docs, is missing. Reinstall outreach."
        )
    viewer = Path(found.origin).parent
    return {
        "swagger-ui.css": PageFile(path=viewer / "swagger_style.css", media_type="text/css"),
        "swagger-ui.js": PageFile(path=viewer / "swagger_bundle.js", media_type="text/javascript"),
        "start.js": PageFile(path=_PAGES / "start.js", media_type="text/javascript"),
    }
