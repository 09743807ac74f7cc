"""Requests to pages that nobody has to be signed in for: login, code, links, set-up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from functools import cached_property
from typing import Final, TypeAlias

import attrs
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from outreach import Outreach
from outreach.models import SignedIn
from outreach_server.console import words
from outreach_server.console.context import Console, RefusedForm, template_helpers, url_of
from outreach_server.console.frame import Frame
from outreach_server.console.identities import cookies
from outreach_server.console.look import look_of
from outreach_server.console.security.forms import TOKEN_FIELD, is_same_origin, read_form

PublicPage: TypeAlias = Callable[["PublicVisit"], Awaitable[Response]]

_SUBJECT: Final = "guest"
_AGENT_LENGTH: Final = 255


@attrs.define(kw_only=True, eq=False, slots=False)
class PublicVisit:
    """One request by somebody who need not be signed in.

    Attributes:
        console: The console.
        request: The request.
        form: The fields of the form that was sent; empty for a GET.
    """

    console: Console
    request: Request
    form: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def engine(self) -> Outreach:
        """The open engine."""
        return self.console.engine

    @cached_property
    def now(self) -> datetime:
        """The moment of the request."""
        return self.console.now()

    @property
    def address(self) -> str:
        """The IP address that the request comes from; empty if not known."""
        return self.request.client.host if self.request.client is not None else ""

    @property
    def agent(self) -> str:
        """The browser, as it calls itself."""
        return words.visible(self.request.headers.get("user-agent", ""))[:_AGENT_LENGTH]

    @property
    def token(self) -> str:
        """The token of the session that the request brings; empty without one."""
        return cookies.token_in(self.request, self.console.public_url)

    @property
    def known_by(self) -> str:
        """The token of the last login in the browser, ended or not; empty without one."""
        return cookies.known_in(self.request, self.console.public_url)

    def url(self, name: str, query: Mapping[str, object] | None = None, **path: object) -> str:
        """Return the address of a page."""
        return url_of(self.console, self.request, name, query, **path)

    def page(self, template: str, *, title: str, status: int = 200, **values: object) -> Response:
        """Return a page."""
        frame = Frame(
            title=title,
            product=self.console.title,
            home_url=self.url("home"),
            token=self.console.tokens.token(_SUBJECT, self.now),
            look=look_of(self.request),
        )
        shown = {**template_helpers(self.console, self.request, self.url), "frame": frame, "said": "", **values}
        return HTMLResponse(self.console.templates.render(f"pages/{template}.html", shown), status)

    def go(self, name: str, query: Mapping[str, object] | None = None, **path: object) -> Response:
        """Send the browser to another page."""
        return RedirectResponse(self.url(name, query, **path), 303)

    def enter(self, signed_in: SignedIn, onward: str = "") -> Response:
        """Have the browser keep a session, and send it onward: to the code, where one is needed."""
        if signed_in.session.second_factor == "awaited":
            answer = self.go("two-factor", {"next": onward})
        else:
            answer = RedirectResponse(self.onward(onward), 303)
        return cookies.keep(answer, signed_in, self.request, self.console.public_url)

    def onward(self, path: str) -> str:
        """Return a path if it is one of this console's; else that of the first page."""
        home = self.url("home")
        plain = path.startswith(home) and "\\" not in path and not path.startswith("//") and path.isprintable()
        return path if plain else home


def public_endpoint(
    console: Console, name: str, get: PublicPage, post: PublicPage
) -> Callable[[Request], Awaitable[Response]]:
    """Return what answers the requests for a page that needs no session."""

    async def endpoint(request: Request) -> Response:
        visit = PublicVisit(console=console, request=request)
        if request.method == "POST" and not is_same_origin(request, console.public_url):
            raise RefusedForm(words.CROSS_SITE)
        if not console.throttle.admits(f"address:{visit.address}"):
            raise HTTPException(429, headers={"Retry-After": "1"})
        if request.method != "POST":
            return await get(visit)
        visit.form = await read_form(request)
        if not console.tokens.accepts(visit.form.get(TOKEN_FIELD, ""), _SUBJECT, visit.now):
            raise RefusedForm(words.STALE_FORM)
        return await post(visit)

    endpoint.__name__ = f"console_{name}"
    return endpoint
