"""The Starlette app of the console."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Final, TypeAlias

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from outreach import ConfigError, Outreach, OutreachError
from outreach.errors import StorageBusy
from outreach.server_support import JoinedReads
from outreach_server.config import is_web_address
from outreach_server.console import words
from outreach_server.console.absent import chosen
from outreach_server.console.access import Identify, Right, checked
from outreach_server.console.context import VISIT, Console, RefusedForm, Visit, not_found, url_of
from outreach_server.console.errors import TYPED, ConsoleMiddleware, ErrorHandlers
from outreach_server.console.frame import Notice
from outreach_server.console.identities.public_pages import PublicPage, public_endpoint
from outreach_server.console.identities.sessions import identify_by_session
from outreach_server.console.pages import (
    account,
    audit_file,
    calls,
    campaign_live,
    campaigns,
    contacts,
    edit,
    follow_up,
    inbox,
    links,
    login,
    look,
    many_campaigns,
    overview,
    person,
    register,
    register_file,
    register_import,
    report,
    search,
    thread,
    unknown,
)
from outreach_server.console.pages.new import audience as new_audience
from outreach_server.console.pages.new import check as new_check
from outreach_server.console.pages.new import file as new_file
from outreach_server.console.pages.new import text as new_text
from outreach_server.console.pages.new import when as new_when
from outreach_server.console.pages.set_up.pages import set_up_pages
from outreach_server.console.rendering import Templates
from outreach_server.console.security.forms import TOKEN_FIELD, is_same_origin
from outreach_server.console.security.headers import HEADERS, SecurityHeadersMiddleware, headers_of
from outreach_server.console.security.uploads import may_have_file, received_form
from outreach_server.context import Server

Page: TypeAlias = Callable[[Visit], Awaitable[Response]]

_BUSY_TRIES: Final = 3
_BUSY_SECONDS: Final = 0.2


def create_console(
    *,
    engine: Outreach,
    identify: Identify,
    title: str = "Outreach",
    sign_out_url: str = "",
    sign_in_url: str = "",
    pages: Collection[str] | None = None,
    base_template: Path | None = None,
    frame_ancestors: Sequence[str] = (),
    docs_url: str = "",
) -> Starlette:
    """Return an ASGI app with the pages of the console, to be mounted at any path of another one.

    It has no login of its own: people are signed in by the host, which `identify` asks.

    Args:
        engine: The engine; open while requests come.
        identify: An async function that returns the `ConsoleUser` who sends a request, or None. It is called for each
            request, and once a second for each page that changes by itself.
        title: The title of the pages, 1 to 100 characters.
        sign_out_url: Where people sign out; the pages then have a link there.
        sign_in_url: Where people sign in: they are sent there instead of being answered 401.
        pages: The parts of the console that are shown, such as `{"campaigns"}`: the first words of their paths, and
            `overview`. Links to the others are not there either. None for all.
        base_template: A file with a Jinja template that stands around every page: with a block `content` of its own, or
            with `{% extends "console.html" %}` and the blocks `head`, `top` and `foot` that it changes.
        frame_ancestors: The origins of sites that may show the console in a frame; none by default.
        docs_url: The address of the site that `make docs` builds, to which empty pages then link.

    Raises:
        ConfigError: An argument is of another kind than it says.
    """
    given: object = engine
    if not isinstance(given, Outreach):
        raise ConfigError(f"engine is {given!r}; it must be an outreach.Outreach.")
    if not callable(identify):
        raise ConfigError(f"identify is {identify!r}; it must be an async function of a request.")
    named: object = title
    if not isinstance(named, str) or not 1 <= len(title) <= 100:
        raise ConfigError(f"title is {title!r}; it must be a text of 1 to 100 characters.")
    if docs_url and not is_web_address(docs_url):
        raise ConfigError(f"docs_url is {docs_url!r}; it must be a web address, such as https://docs.example.com.")
    return build(
        get_engine=lambda: engine,
        identify=identify,
        actor_kind="host",
        title=title,
        sign_out_url=sign_out_url,
        sign_in_url=sign_in_url,
        pages=pages,
        templates=Templates(None if base_template is None else Path(base_template)),
        headers=headers_of(frame_ancestors),
        docs_url=docs_url,
    )


def create_own_console(
    *,
    get_engine: Callable[[], Outreach],
    server: Server | None = None,
    title: str = "Outreach",
    require_second_factor: str | None = None,
    docs_url: str = "",
    form_keys: Sequence[bytes] = (),
) -> Starlette:
    """Return the console with its own users, logins and set-up (docs/users.md), as `serve` has it.

    Args:
        get_engine: Returns the open engine.
        server: The server beside it, which reads lists in turns.
        title: The title of the pages.
        require_second_factor: That of `ServerConfig`.
        docs_url: That of `create_console`.
        form_keys: Those of `Console`.
    """
    identify = identify_by_session(get_engine, require_second_factor)
    return build(
        get_engine=get_engine,
        identify=identify,
        actor_kind="user",
        title=title,
        has_login=True,
        server=server,
        docs_url=docs_url,
        form_keys=form_keys,
    )


def build(
    *,
    get_engine: Callable[[], Outreach],
    identify: Identify,
    actor_kind: str,
    title: str = "Outreach",
    sign_out_url: str = "",
    sign_in_url: str = "",
    has_login: bool = False,
    server: Server | None = None,
    pages: Collection[str] | None = None,
    templates: Templates | None = None,
    headers: Mapping[str, str] = HEADERS,
    docs_url: str = "",
    form_keys: Sequence[bytes] = (),
) -> Starlette:
    """Return the console of an engine that may be opened later; the other arguments are those of `Console`."""
    found: dict[str, Route] = {}
    known: set[str] = set()
    console = Console(
        get_engine=get_engine,
        identify=identify,
        actor_kind=actor_kind,
        title=title,
        sign_out_url=sign_out_url,
        sign_in_url=sign_in_url,
        has_login=has_login,
        docs_url=docs_url,
        server=server,
        form_keys=form_keys,
        pages=found,
        known=known,
        templates=templates or Templates(),
    )
    routes = _routes(console)
    known.update(one.name for one in routes)
    found.update((one.name, one) for one in chosen(routes, pages))
    handlers = ErrorHandlers(console)
    app = Starlette(
        routes=list(found.values()),
        middleware=[
            Middleware(SecurityHeadersMiddleware, headers=headers),
            Middleware(ConsoleMiddleware, console=console),
        ],
        exception_handlers={OutreachError: handlers.of_engine, HTTPException: handlers.of_http},
    )
    app.router.redirect_slashes = False
    app.state.console = console
    app.state.streams = console.streams
    return app


def _routes(console: Console) -> list[Route]:
    def page(path: str, name: str, get: Page, post: Page | None = None, right: Right = Right.SEE) -> Route:
        methods = ["GET"] if post is None else ["GET", "POST"]
        return Route(path, _endpoint(console, name, get, post, right), name=name, methods=methods)

    def step(path: str, module: ModuleType) -> Route:
        name = f"new-{path}" if path else "new"
        path = f"/w/{{workspace}}/campaigns/new/{path}".rstrip("/")
        return page(path, name, module.show, module.act, Right.DRAFT)

    def public(path: str, name: str, get: PublicPage, post: PublicPage) -> Route:
        return Route(path, public_endpoint(console, name, get, post), name=name, methods=["GET", "POST"])

    own = [
        public("/login", "login", login.show, login.act),
        public("/two-factor", "two-factor", login.show_code, login.act_code),
        page("/logout", "logout", login.show_logout, login.act_logout),
        public("/setup", "setup", links.show_setup, links.act_setup),
        public("/invitation/{token}", "invitation", links.show_invitation, links.act_invitation),
        page("/account", "account", account.show, account.act),
        page("/account/two-factor", "account-two-factor", account.show_second_factor, account.act_second_factor),
    ]
    importing = register_import.show, register_import.act
    return [
        *(own if console.has_login else ()),
        page("/", "home", overview.home),
        page("/account/look", "look", look.show, look.act),
        page("/w/{workspace}/", "overview", overview.show),
        page("/w/{workspace}/campaigns", "campaigns", campaigns.show, campaigns.act),
        page("/w/{workspace}/campaigns/many", "campaigns-many", many_campaigns.show, many_campaigns.act),
        step("", new_file),
        step("audience", new_audience),
        step("text", new_text),
        step("when", new_when),
        step("check", new_check),
        page("/w/{workspace}/campaigns/{campaign}", "campaign", campaign_live.show, campaign_live.act),
        page("/w/{workspace}/campaigns/{campaign}/contacts", "contacts", contacts.show),
        page(
            "/w/{workspace}/campaigns/{campaign}/contacts/{position:int}",
            "contact",
            contacts.show_one,
            contacts.act_on_one,
        ),
        *(page(one.path, one.name, one.show, one.act, one.right) for one in set_up_pages(has_login=console.has_login)),
        page("/w/{workspace}/campaigns/{campaign}/report", "report", report.show),
        page("/w/{workspace}/campaigns/{campaign}/export", "export", report.export, report.act_export, Right.EXPORT),
        page("/w/{workspace}/campaigns/{campaign}/edit", "edit", edit.show, edit.act, Right.DRAFT),
        page("/w/{workspace}/campaigns/{campaign}/follow-up", "follow-up", follow_up.show, follow_up.act, Right.DRAFT),
        page("/w/{workspace}/contacts/{phone}", "person", person.show, person.act),
        page("/w/{workspace}/inbox", "inbox", inbox.show, inbox.act, Right.REPLY),
        page("/w/{workspace}/inbox/{phone}", "thread", thread.show, thread.act, Right.REPLY),
        page("/w/{workspace}/calls", "calls", calls.show),
        page("/w/{workspace}/calls/{call}", "call", calls.show_one, calls.act),
        page("/w/{workspace}/register", "register", register.show, register.act, Right.DECIDE),
        page("/w/{workspace}/register/import", "register-import", *importing, Right.DECIDE),
        page("/w/{workspace}/register/file", "register-file", register_file.show, register_file.act, Right.EXPORT),
        page("/w/{workspace}/audit/file", "audit-file", audit_file.show, audit_file.act, Right.OWN),
        page("/system/audit/file", "system-audit-file", audit_file.show, audit_file.act, Right.OPERATE),
        page("/w/{workspace}/unknown", "unknown", unknown.show, unknown.act, Right.DECIDE),
        page("/w/{workspace}/search", "search", search.show),
        page("/w/{workspace}/live", "live", campaign_live.stream),
        Route("/static/{hash}/{file}", console.static.answer, name="static"),
    ]


def _endpoint(
    console: Console, name: str, get: Page, post: Page | None, right: Right
) -> Callable[[Request], Awaitable[Response]]:
    """Return what answers the requests for one page: nothing reaches the page that was not checked before."""

    async def endpoint(request: Request) -> Response:
        visit = await _enter(console, request)
        if isinstance(visit, Response):
            return visit
        if visit.workspace is not None or right is Right.OPERATE:
            visit.require(right)
        if request.method == "POST" and post is not None:
            async with received_form(request) as (visit.form, visit.file):
                request.scope[TYPED] = visit.form
                _check_token(visit)
                return await post(visit)
        return await _shown(get, visit)

    # For the log, which must not have the path: it may contain a number.
    endpoint.__name__ = f"console_{name}"
    return endpoint


async def _enter(console: Console, request: Request) -> Visit | Response:
    """Return the visit that a request makes, or the answer to one that may not come in.

    Raises:
        HTTPException: It comes from another site, too often, or the person has nothing to do with the workspace.
    """
    if request.method == "POST" and not is_same_origin(request, console.public_url):
        raise RefusedForm(words.CROSS_SITE)
    identified = await console.identify(request)
    if identified is None:
        if console.has_login and request.method == "GET" and not request.url.path.endswith("/live"):
            onward = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(url_of(console, request, "login", {"next": onward}), 303)
        if console.has_login and request.method == "POST":
            if may_have_file(request):
                # A stranger's body is not received: it may be large, and come slowly.
                raise HTTPException(401, words.SESSION_ENDED, headers={"Connection": "close"})
            async with received_form(request) as (request.scope[TYPED], _):
                raise HTTPException(401, words.SESSION_ENDED)
        if not console.sign_in_url or request.url.path.endswith("/live"):
            # A stream that is opened again would take a page for a stream.
            raise HTTPException(401)
        return RedirectResponse(console.sign_in_url, 303)
    user = checked(identified)
    if user.incomplete and not _is_of_own_account(request):
        if request.method == "GET" and not request.url.path.endswith("/live"):
            return RedirectResponse(url_of(console, request, "account-two-factor"), 303)
        raise HTTPException(403, words.SECOND_FACTOR_FIRST)
    if not console.throttle.admits(user.subject):
        raise HTTPException(429, headers={"Retry-After": "1"})
    visit = Visit(console=console, request=request, user=user)
    workspace_id = request.path_params.get("workspace")
    if workspace_id is not None:
        visit.role = user.role_in(workspace_id)
        if visit.role is None:
            raise not_found()
        await _look_around(visit, workspace_id)
    request.scope[VISIT] = visit
    return visit


def _is_of_own_account(request: Request) -> bool:
    """Return whether a page works without a second factor that a person has to set up."""
    return request.scope["route"].name in {"account", "account-two-factor", "logout"}


async def _look_around(visit: Visit, workspace_id: str) -> None:
    """Find what stands on every page of a workspace, and the campaign that the page is of, in one snapshot.

    Raises:
        NotFound: There is none of this id.
    """
    campaign_id = visit.request.path_params.get("campaign")
    async with JoinedReads() as reads:
        place = reads.start(visit.engine.workspaces.get(workspace_id))
        looked = reads.start(visit.console.status.of(visit.engine, workspace_id))
        of = None if campaign_id is None else reads.start(visit.engine.campaigns.get(workspace_id, campaign_id))
    workspace, status = place.result(), looked.result()
    visit.workspace, visit.campaign = workspace, None if of is None else of.result()
    notices = []
    if workspace.status != "active":
        notices.append(Notice(tone="bad", text=f"This workspace is {workspace.status}: nothing is sent from it."))
    if status.dispatching.problem is not None:
        problem = status.dispatching.problem
        notices.append(Notice(tone="bad", text=problem.message, command=" ".join(problem.commands[:1])))
    for one in status.throttles[:1]:
        until = visit.clocks().moment(one.until, visit.now)
        text = f"{one.provider} throttles this workspace: requests go on at {until} ({visit.clocks().name})."
        notices.append(Notice(tone="warn", text=text))
    visit.notices = notices
    visit.waiting = {
        "overview": sum(1 for one in status.findings if one.code not in {"no_dispatcher", "database_copied"}),
        "inbox": len(status.held),
        "unknown": sum(one.count for one in status.unknown),
    }


def _check_token(visit: Visit) -> None:
    """Check that a form is of this session.

    Raises:
        RefusedForm: It is not.
    """
    if not visit.console.tokens.accepts(visit.form.get(TOKEN_FIELD, ""), visit.user.subject, visit.now):
        raise RefusedForm(words.STALE_FORM)


async def _shown(get: Page, visit: Visit) -> Response:
    """Return a page; where another process holds the database for a moment, after another try or two."""
    for _ in range(_BUSY_TRIES - 1):
        try:
            return await get(visit)
        except StorageBusy:
            await asyncio.sleep(_BUSY_SECONDS)
    return await get(visit)
