"""The context of a console's request: the engine, the person, the workspace, the role, the clocks."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import datetime
from functools import cached_property
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

import attrs
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from outreach import Campaign, EngineStatus, Outreach, Workspace, WorkspaceMode
from outreach.models import MAX_UPLOAD_BYTES, InboundMessage, Page
from outreach.server_support import clock_of, derived_keys_of, public_url_of
from outreach_server.bodies.body import default_command
from outreach_server.console import words
from outreach_server.console.absent import ABSENT, part_of
from outreach_server.console.access import ConsoleUser, Identify, Right, Role, may, roles_with
from outreach_server.console.actions import ACTIONS, FORM_ACTIONS
from outreach_server.console.clocks import Clocks
from outreach_server.console.documentation import DocsLink, docs_link
from outreach_server.console.figures import FigureReader
from outreach_server.console.frame import Frame, KeyView, Link, Notice
from outreach_server.console.health import WorkspaceCache
from outreach_server.console.keys import GO, keys_of
from outreach_server.console.live.fan_out import FanOut
from outreach_server.console.live.stream import LiveStreams
from outreach_server.console.look import Look, look_of
from outreach_server.console.rendering import Templates
from outreach_server.console.running import Activity, activities_of
from outreach_server.console.security.forms import ACTION_FIELD, FormTokens
from outreach_server.console.static_files import StaticFiles
from outreach_server.console.throttle import SessionThrottle
from outreach_server.context import Server

T = TypeVar("T")

VISIT: Final = "outreach_server.console.visit"
"""The key of the visit in the scope of a request."""

MOST_UNANSWERED: Final = 50
"""How many replies that nobody has answered are looked at to say how many numbers wait."""

_SAID: Final = "done"
"""The parameter of a page's URL that names the action that was done."""


class MissingRight(HTTPException):
    """A person does not have a right.

    Attributes:
        right: The right.
    """

    def __init__(self, right: Right, message: str) -> None:
        super().__init__(403, message)
        self.right = right


class RefusedForm(HTTPException):
    """A form does not come from a page that this console has shown in the same session."""

    def __init__(self, message: str) -> None:
        super().__init__(403, message)


@attrs.frozen(kw_only=True, eq=False)
class Console:
    """One console, with the parts that its requests share.

    Attributes:
        get_engine: Returns the engine while it is open.
        identify: Returns the person who sends a request.
        actor_kind: The text before a person's id in the audit trail: `user`, or `host` for ids of the host.
        title: Its title.
        sign_out_url: Where people sign out; empty if there is no such address.
        sign_in_url: Where they sign in; empty to answer 401.
        has_login: Whether it has logins of its own.
        pages: The pages that it has, by name.
        known: The names of all pages.
        docs_url: The address of the site that `make docs` builds; empty without one: pages then name files of docs.
        server: The server beside it, which reads lists in turns; None in other applications.
        form_keys: The keys of `FormTokens`; empty to take them from the engine at the first page.
        make_key: Makes the keys of forms.
    """

    get_engine: Callable[[], Outreach]
    identify: Identify
    actor_kind: str
    title: str
    sign_out_url: str
    sign_in_url: str
    pages: Mapping[str, Route]
    known: Set[str]
    has_login: bool = False
    docs_url: str = ""
    server: Server | None = None
    form_keys: Sequence[bytes] = attrs.field(default=(), repr=False)
    make_key: Callable[[], str] = attrs.field(default=secrets.token_urlsafe)
    templates: Templates = attrs.field(factory=Templates)
    static: StaticFiles = attrs.field(factory=StaticFiles)
    streams: LiveStreams = attrs.field(factory=LiveStreams)
    fan_out: FanOut = attrs.field(factory=FanOut)
    _kept: dict[str, Any] = attrs.field(factory=dict, init=False, repr=False)

    @property
    def engine(self) -> Outreach:
        """The open engine.

        Raises:
            ConfigError: It is not open.
        """
        return self.get_engine()

    @property
    def tokens(self) -> FormTokens:
        """The tokens of forms.

        Raises:
            ConfigError: The engine has no key to make them with; the message says what to do.
        """
        return self._once(
            "tokens", lambda: FormTokens(keys=self.form_keys or derived_keys_of(self.engine, "console forms"))
        )

    @property
    def lists(self) -> Server:
        """The server that reads lists: the one beside the console, else one for lists alone."""
        if self.server is not None:
            return self.server
        # Its engine may have been opened anew.
        return attrs.evolve(self._once("lists", _reader_of_lists), open_engine=self.engine)

    @property
    def status(self) -> WorkspaceCache[EngineStatus]:
        """The status of workspaces."""
        return self._once(
            "status", lambda: WorkspaceCache(clock_of(self.engine), lambda engine, workspace: engine.status(workspace))
        )

    @property
    def unanswered(self) -> WorkspaceCache[Page[InboundMessage]]:
        """The newest replies of workspaces that nobody has answered."""

        async def read(engine: Outreach, workspace: str) -> Page[InboundMessage]:
            return await engine.messages.list_inbound(workspace, unanswered=True, limit=MOST_UNANSWERED)

        return self._once("unanswered", lambda: WorkspaceCache(clock_of(self.engine), read))

    @property
    def activities(self) -> WorkspaceCache[Mapping[str, Activity]]:
        """The activity of each campaign that sends, by workspace."""

        async def read(engine: Outreach, workspace: str) -> Mapping[str, Activity]:
            return await activities_of(engine, self.figures, await self.status.of(engine, workspace), workspace)

        return self._once("activities", lambda: WorkspaceCache(clock_of(self.engine), read))

    @property
    def figures(self) -> FigureReader:
        """The figures of campaigns."""
        return self._once("figures", lambda: FigureReader(clock_of(self.engine)))

    @property
    def throttle(self) -> SessionThrottle:
        """The counts of requests."""
        return self._once("throttle", lambda: SessionThrottle(clock_of(self.engine)))

    @property
    def public_url(self) -> str | None:
        """The URL under which people reach the server, if it is configured."""
        return public_url_of(self.engine)

    @cached_property
    def first_page(self) -> str:
        """The name of the first page of a workspace."""
        pages = self.pages.items()
        return next(name for name, one in pages if part_of(one) and set(one.param_convertors) == {"workspace"})

    def has_workspace(self, page: str) -> bool:
        """Return whether the address of a page names a workspace."""
        return page in self.pages and "workspace" in self.pages[page].param_convertors

    def now(self) -> datetime:
        """Return the present moment."""
        return clock_of(self.engine).now()

    def _once(self, name: str, make: Callable[[], T]) -> T:
        """Return something that needs the engine, which may not be open yet when the console is made."""
        if name not in self._kept:
            self._kept[name] = make()
        kept: T = self._kept[name]
        return kept


@attrs.define(kw_only=True, eq=False, slots=False)
class Visit:
    """One request by a person who is signed in.

    Attributes:
        console: The console.
        request: The request.
        user: The person.
        workspace: The workspace of the path; None outside of one.
        campaign: The campaign of the path; None outside of one.
        role: The person's role in it.
        form: The fields of the form that was sent; empty for a GET.
        file: The file that the form has; None without one.
        notices: The notices above the content of every page.
        waiting: How many things need a person in the workspace, by the page where they are decided.
    """

    console: Console
    request: Request
    user: ConsoleUser
    workspace: Workspace | None = None
    campaign: Campaign | None = None
    role: Role | None = None
    form: Mapping[str, str] = attrs.field(factory=dict)
    file: UploadFile | None = None
    notices: Sequence[Notice] = ()
    waiting: Mapping[str, int] = attrs.field(factory=dict)

    @property
    def engine(self) -> Outreach:
        """The open engine."""
        return self.console.engine

    @property
    def place(self) -> Workspace:
        """The workspace of the path, in pages that have one."""
        assert self.workspace is not None  # noqa: S101 - the route has a workspace
        return self.workspace

    @property
    def subject(self) -> Campaign:
        """The campaign of the path, in pages that have one."""
        assert self.campaign is not None  # noqa: S101 - the route has a campaign
        return self.campaign

    @property
    def actor(self) -> str:
        """The person, as the audit trail names it."""
        return f"{self.console.actor_kind}:{self.user.id}"

    @cached_property
    def now(self) -> datetime:
        """The moment of the request."""
        return self.console.now()

    def zone(self, zone: str = "UTC") -> str:
        """Return the IANA zone of times: the person's, else the one that is given."""
        return self.user.time_zone or zone

    def clocks(self, zone: str = "UTC") -> Clocks:
        """Return the clocks of a page: by `zone`, in the style of this browser."""
        return Clocks(self.zone(zone), self.look.dates)

    @cached_property
    def look(self) -> Look:
        """The choices for this browser."""
        return look_of(self.request)

    def may(self, right: Right) -> bool:
        """Return whether the person has a right in the workspace, or on the server."""
        return self.user.operator if right is Right.OPERATE else may(self.role, right, self.workspace)

    def require(self, right: Right) -> None:
        """Check that the person has a right in the workspace.

        Raises:
            MissingRight: The role does not have it; the message names the roles that have.
        """
        if not self.may(right) and right is Right.OPERATE:
            raise MissingRight(right, "This takes an operator of the server.")
        if not self.may(right):
            roles = " or ".join(roles_with(right, self.workspace))
            raise MissingRight(right, f"This takes the role {roles} in this workspace; yours is {self.role}.")

    def url(self, name: str, query: Mapping[str, object] | None = None, **path: object) -> str:
        """Return the address of a page below the mount, in this workspace where the page has one."""
        if self.workspace is not None and self.console.has_workspace(name):
            path = {"workspace": self.workspace.id, **path}
        return url_of(self.console, self.request, name, query, **path)

    def has(self, name: str) -> bool:
        """Return whether a page of this name exists here: in this console, and in a workspace if it is of one."""
        return name in self.console.pages and (self.workspace is not None or not self.console.has_workspace(name))

    def first_url(self, workspace: str = "") -> str:
        """Return the address of the first page of a workspace; of this one, if none is given."""
        if workspace:
            return url_of(self.console, self.request, self.console.first_page, workspace=workspace)
        return self.url(self.console.first_page)

    def page(
        self,
        template: str,
        *,
        title: str,
        current: str = "",
        status: int = 200,
        live: bool = False,
        **values: object,
    ) -> Response:
        """Return a page.

        Args:
            template: Its template.
            title: Its title, without numbers.
            current: The entry of the menu that it belongs to.
            status: The HTTP status.
            live: Whether it changes by itself.
            values: The values that the template shows.
        """
        frame = self._frame(title, current, live)
        done = self.request.query_params.get(_SAID, "")
        action = ACTIONS.get(done) or FORM_ACTIONS.get(done)
        said = words.ACCOUNT_DONE.get(done, "") if action is None else action.done
        if done in ACTIONS and self.campaign is not None and ACTIONS[done].is_possible(self.campaign):
            # Somebody has reversed it since, and the address of the page still names it.
            said = ""
        text = self.console.templates.render(
            f"pages/{template}.html",
            {**template_helpers(self.console, self.request, self.url), "frame": frame, "said": said, **values},
        )
        return HTMLResponse(text, status)

    def part(self, template: str, **values: object) -> str:
        """Return a part of a page."""
        helpers = template_helpers(self.console, self.request, self.url)
        return self.console.templates.render(f"parts/{template}.html", {**helpers, **values})

    def go(self, name: str, *, said: str = "", query: Mapping[str, object] | None = None, **path: object) -> Response:
        """Return the answer to a form that has done something: the address of what it made or changed."""
        if name not in self.console.pages:
            return RedirectResponse(self.first_url(), 303)
        said_so = {_SAID: said} if said else {}
        return RedirectResponse(self.url(name, {**(query or {}), **said_so} or None, **path), 303)

    def lead(self, url: str) -> Response:
        """Return the answer that leads to an address of this console."""
        return RedirectResponse(url, 303)

    def chosen(self, *names: str) -> str:
        """Return which of some actions of `FORM_ACTIONS` the form is for.

        Raises:
            HTTPException: It is for another one, or the person may not do it.
        """
        name = self.form.get(ACTION_FIELD, "")
        if name not in names:
            raise HTTPException(400, words.NO_SUCH_ACTION)
        self.require(FORM_ACTIONS[name].right)
        return name

    def shown_number(self, field: str) -> int:
        """Return a whole number that a page has put into its own form.

        Raises:
            HTTPException: The form has none: it is not what the page made.
        """
        text = self.form.get(field, "")
        if not (text.isascii() and text.isdecimal() and len(text) < 10):
            raise HTTPException(400)
        return int(text)

    def new_key(self) -> str:
        """Return the key of a form: sent twice, the form does nothing the second time."""
        return self.console.make_key()

    def _frame(self, title: str, current: str, live: bool) -> Frame:
        several = self.user.operator or len(self.user.workspaces) > 1
        menu = [one for one in self._menu(current) if one.url != ABSENT]
        return Frame(
            title=title if self.workspace is None else f"{title} · {words.visible(self.workspace.name)}",
            product=self.console.title,
            home_url=self.url("home") if self.workspace is None else self.first_url(),
            person=self.user.name,
            sign_out_url=self.url("logout") if self.console.has_login else self.console.sign_out_url,
            account_url=self.url("account" if self.console.has_login else "look"),
            workspace="" if self.workspace is None else self.workspace.name,
            all_workspaces_url=self.url("home") if several else "",
            sandbox=self.workspace is not None and self.workspace.mode is WorkspaceMode.SANDBOX,
            menu=menu,
            notices=self.notices,
            token=self.console.tokens.token(self.user.subject, self.now),
            live=live,
            look=self.look,
            search_url=self.url("search") if self.has("search") else "",
            searched=self.request.query_params.get("q", "") if current == "search" else "",
            keys=self._keys(menu) if self.look.keys else (),
        )

    def _keys(self, menu: Sequence[Link]) -> Sequence[KeyView]:
        may_draft = self.may(Right.DRAFT) and self.has("new")
        pages = {self.url(page): page for page in GO if self.has(page)}
        return keys_of(menu, self.url("new") if may_draft else "", pages, can_search=self.has("search"))

    def _menu(self, current: str) -> Sequence[Link]:
        if self.workspace is None:
            return ()
        return [
            Link(name=name, icon=icon, url=self.url(page), current=page == current, count=self.waiting.get(page, 0))
            for name, icon, page, right in (
                ("Overview", "house", "overview", Right.SEE),
                ("Campaigns", "send", "campaigns", Right.SEE),
                ("Replies", "inbox", "inbox", Right.REPLY),
                ("Calls", "phone", "calls", Right.SEE),
                ("Unknown", "circle-help", "unknown", Right.DECIDE),
                ("Opt-outs", "ban", "register", Right.DECIDE),
                ("Workspace settings", "key-round", "settings", Right.FLOWS),
            )
            if self.may(right)
        ]


def _reader_of_lists() -> Server:
    return Server(max_body_bytes=MAX_UPLOAD_BYTES, helper=default_command())


def url_of(
    console: Console, request: Request, name: str, query: Mapping[str, object] | None = None, **path: object
) -> str:
    """Return the address of a page, with the path under which the console is mounted and nothing before it.

    It is `ABSENT` for a page that this console does not have.
    """
    if name in console.known and name not in console.pages:
        return ABSENT
    inner = str(console.pages[name].url_path_for(name, **path))
    given = {key: value for key, value in (query or {}).items() if value not in {None, ""}}
    root: str = request.scope.get("root_path", "")
    return root.rstrip("/") + inner + (f"?{urlencode(given)}" if given else "")


def template_helpers(console: Console, request: Request, url: Callable[..., str]) -> dict[str, Any]:
    """Return the functions that templates call."""

    def asset(name: str) -> str:
        return url_of(console, request, "static", hash=console.static.hashes[name], file=name)

    def docs(page: str) -> DocsLink:
        return docs_link(page, console.docs_url)

    return {"url": url, "asset": asset, "docs": docs}


def visit_of(request: Request) -> Visit | None:
    """Return the visit of a request; None if nobody is signed in."""
    visit = request.scope.get(VISIT)
    return visit if isinstance(visit, Visit) else None


def not_found() -> HTTPException:
    """Return the error of a page that does not exist, or not for this person."""
    return HTTPException(404)
