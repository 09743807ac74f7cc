"""The short way to the answers that are asked for most: past the router, and past what looks for the method.

Whatever is no plain GET of one of these paths goes the long way: another method, a mounted app, any other path. Both
ways lead to the same functions, and errors are answered by the same one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from outreach import OutreachError
from outreach_server.endpoints.campaigns import Campaigns
from outreach_server.endpoints.sms_campaigns import SmsCampaigns
from outreach_server.errors import answer_outreach_error

_LISTS: Final[Mapping[str, type[SmsCampaigns | Campaigns]]] = {"/sms-campaigns": SmsCampaigns, "/campaigns": Campaigns}


class FastListMiddleware:
    """Answer the lists of campaigns at once, and hand on everything else.

    Args:
        app: What handles the rest.
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
        await response(scope, receive, send)
