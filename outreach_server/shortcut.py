"""A fast path for the most frequent requests, without the router.

Everything but a plain GET of these paths goes through the router: other methods, mounted apps, other paths. Both ways
call the same functions and handle errors alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from outreach import OutreachError
from outreach_server.endpoints.campaigns import Campaigns, SmsCampaigns
from outreach_server.errors import answer_http_exception, answer_outreach_error

_LISTS: Final[Mapping[str, type[Campaigns]]] = {"/sms-campaigns": SmsCampaigns, "/campaigns": Campaigns}


class FastListMiddleware:
    """Answers the lists of campaigns, and passes on everything else.

    Args:
        app: The wrapped app.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        short = scope["type"] == "http" and scope["method"] == "GET" and not scope.get("root_path")
        endpoint = _LISTS.get(scope["path"]) if short else None
        if endpoint is None:
            await self._app(scope, receive, send)
            return
        scope["endpoint"] = endpoint
        request = Request(scope, receive)
        try:
            response = await endpoint.list(request)
        except OutreachError as error:
            response = await answer_outreach_error(request, error)
        except HTTPException as error:
            # Raised by a host that authenticates requests itself.
            response = await answer_http_exception(request, error)
        await response(scope, receive, send)
