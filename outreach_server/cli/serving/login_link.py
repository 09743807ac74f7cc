"""A link that signs a browser of this machine in, once: for the demonstration, whose user has no password."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import Final

import attrs
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from outreach import Outreach
from outreach.models import NewUser, Role
from outreach.server_support import clock_of, public_url_of
from outreach_server.cli.base import actor
from outreach_server.cli.console_links import CONSOLE
from outreach_server.context import Server
from outreach_server.listening.proxies import is_loopback_host

VALID_FOR: Final = timedelta(minutes=15)
_GONE: Final = "This link was used, or is older than 15 minutes. Start the demonstration again for a new one.\n"


@attrs.define(kw_only=True)
class LoginLink:
    """The link; it lives in this process alone.

    Attributes:
        user_id: Who is signed in.
        page: The path of the page that is opened, below the console.
        until: When it is not valid any more.
    """

    user_id: str
    page: str
    until: datetime
    _token: str = attrs.field(factory=lambda: secrets.token_urlsafe(32), init=False, repr=False)

    @property
    def path(self) -> str:
        """Its path on the server."""
        return f"{CONSOLE}/demo/{self._token}"

    async def enter(self, engine: Outreach, request: Request) -> Response:
        """Sign the browser in and send it to the page; 404 for a wrong, used or old link, or from another machine."""
        from outreach_server.console.identities import cookies

        token, address = self._token, request.client.host if request.client is not None else ""
        given = request.path_params["token"]
        valid = is_loopback_host(address) and clock_of(engine).now() < self.until
        if not (token and valid and secrets.compare_digest(given.encode(), token.encode())):
            return PlainTextResponse(_GONE, 404, {"Cache-Control": "no-store"})
        self._token = ""
        agent = request.headers.get("user-agent", "")
        signed_in = await engine.sessions.begin(self.user_id, address=address, agent=agent)
        answer = RedirectResponse(f"{CONSOLE}{self.page}", 303, {"Cache-Control": "no-store"})
        return cookies.keep(answer, signed_in, request, public_url_of(engine))


async def add_login_link(app: Starlette, engine: Outreach, workspace_id: str, page: str) -> LoginLink:
    """Add the link of a new owner of a workspace to an app, before its console.

    Args:
        app: The app, which has the console.
        engine: The engine of its database.
        workspace_id: The workspace.
        page: The path of the page that it opens, below the console.
    """
    user = await engine.users.create(NewUser(email="demo@demo.example", name="You"), actor=actor())
    await engine.users.set_role(workspace_id, user.id, Role.OWNER, actor=actor())
    link = LoginLink(user_id=user.id, page=page, until=clock_of(engine).now() + VALID_FOR)
    server: Server = app.state.server

    async def enter(request: Request) -> Response:
        return await link.enter(server.engine, request)

    app.router.routes.insert(0, Route(f"{CONSOLE}/demo/{{token}}", enter, methods=["GET"]))
    return link
