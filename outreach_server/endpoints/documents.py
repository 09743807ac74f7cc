"""/openapi.yaml and /docs."""

from __future__ import annotations

from starlette.endpoints import HTTPEndpoint
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from outreach_server.contract import contract_mounted_at
from outreach_server.docs import docs_page


class Contract(HTTPEndpoint):
    """Serve the HTTP contract."""

    async def get(self, request: Request) -> Response:
        """Answer with openapi.yaml."""
        return Response(contract_mounted_at(request.scope.get("root_path", "")), media_type="application/yaml")


class Docs(HTTPEndpoint):
    """Serve the contract for people."""

    async def get(self, request: Request) -> Response:
        """Answer with a page that needs nothing from anywhere else."""
        page = docs_page()
        return HTMLResponse(page.html, headers={"Content-Security-Policy": page.policy})
