"""Error pages: what was wrong and what to do, with the request's id and never a trace."""

from __future__ import annotations

import logging
import re
from http import HTTPStatus
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from outreach import InvalidRequest, OutreachError
from outreach.errors import StorageError
from outreach.server_support import log_error
from outreach_server.console import words
from outreach_server.console.access import Right, may
from outreach_server.console.context import (
    Console,
    MissingRight,
    RefusedForm,
    Visit,
    template_helpers,
    url_of,
    visit_of,
)
from outreach_server.console.frame import Frame
from outreach_server.console.look import look_of
from outreach_server.console.sent_again import as_of_form
from outreach_server.context import request_id_of
from outreach_server.errors import status_of
from outreach_server.request_id import REQUEST_ID, choose_request_id

_MOST_READ: Final = 100
_MOST_NAMED: Final = 3

_ID: Final = "outreach_server.console.request_id"

_log = logging.getLogger("outreach_server.console")


class ConsoleMiddleware:
    """Gives each request its id, and answers what nothing else has answered.

    Args:
        app: The wrapped app.
        console: The console.
    """

    def __init__(self, app: ASGIApp, console: Console) -> None:
        self._app = app
        self._console = console

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = request_id_of(scope)
        scope[_ID] = given or choose_request_id(scope["headers"])
        started = False

        async def send_with_id(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
            if message["type"] == "http.response.start" and given is None:
                message["headers"] = [*message["headers"], (REQUEST_ID, scope[_ID].encode())]
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except ClientDisconnect:
            return
        except Exception as error:
            extra = {"action": "request_failed", "request_id": scope[_ID]}
            log_error(_log, logging.ERROR, "request %s failed", scope[_ID], error=error, extra=extra)
            if started:
                raise
            await self._page(scope)(scope, receive, send_with_id)

    def _page(self, scope: Scope) -> Response:
        try:
            return error_page(self._console, Request(scope), 500)
        except Exception:  # what failed may be what the page needs, such as the key of forms
            return PlainTextResponse(f"{words.ERRORS[500][0]}. Request {scope[_ID]}.", 500)


TYPED: Final = "outreach_server.console.typed"
"""The key of the fields of a refused form in the scope of a request."""

_LONG_FIELD: Final = re.compile(
    r"body\d*|numbers|summary|description|\w+_text|voicemail_message|dates|except_dates|prices|narrower_hours"
    r"|custom_variables|placeholders"
)
"""The fields of several lines, which take a while to type: the page of a refused form shows what they had."""


def error_page(
    console: Console, request: Request, status: int, message: str = "", *, wrong: str = "", to_do: str = ""
) -> Response:
    """Return the page of an error.

    Args:
        console: The console.
        request: The request.
        status: The HTTP status.
        message: What was wrong, in sentences; empty for the words of the status.
        wrong: The heading; empty for that of the status.
        to_do: What the person can do; empty for what the status says.
    """
    usual = words.ERRORS.get(status, words.ERRORS[500 if status >= 500 else 400])
    wrong, to_do = wrong or usual[0], to_do or usual[1]
    values = {"code": status, "wrong": wrong, "message": message, "to_do": to_do, "request_id": request.scope[_ID]}
    # The page of a form that was refused. Two slashes at the begin of a link would name another host.
    path = request.url.path
    if status == HTTPStatus.UNAUTHORIZED and console.has_login and request.method == "POST":
        values["to_do"] = words.SIGN_IN_AGAIN
    typed = request.scope.get(TYPED, {})
    values["typed"] = [text for name, text in typed.items() if text and _LONG_FIELD.fullmatch(name)]
    values["again"] = path if request.method == "POST" and not path.startswith("//") else ""
    visit = visit_of(request)
    if visit is not None:
        return visit.page("error", title=wrong, status=status, **values)
    home = url_of(console, request, "home")
    frame = Frame(title=wrong, product=console.title, home_url=home, look=look_of(request))
    helpers = template_helpers(console, request, lambda name, **path: url_of(console, request, name, **path))
    return HTMLResponse(
        console.templates.render("pages/error.html", {**helpers, "frame": frame, "said": "", **values}), status
    )


async def _who_may(visit: Visit, right: Right) -> str:
    """Return a sentence that says whom to ask for what takes a right; empty where the console does not know them."""
    if right is Right.OPERATE:
        return words.ASK_OPERATOR
    if visit.workspace is None or not visit.console.has_login:
        return ""
    try:
        members = (await visit.engine.users.list_members(visit.place.id, limit=_MOST_READ)).items
    except OutreachError:
        # The page says the rest all the same.
        return ""
    named = [one.user.name for one in members if may(one.role, right, visit.workspace) and one.user.disabled_at is None]
    return f"Ask {' or '.join(words.visible(name) for name in named[:_MOST_NAMED])}." if named else ""


class ErrorHandlers:
    """Answers errors of the engine and of routes with pages.

    Args:
        console: The console.
    """

    def __init__(self, console: Console) -> None:
        self._console = console

    async def of_engine(self, request: Request, error: Exception) -> Response:
        """Return the page of an error of the engine."""
        assert isinstance(error, OutreachError)  # noqa: S101 - the handler's registered type
        status = status_of(error)
        if isinstance(error, StorageError) or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            extra = {"action": "request_failed", "request_id": request.scope[_ID]}
            log_error(_log, logging.ERROR, "request %s failed", request.scope[_ID], error=error, extra=extra)
            return error_page(self._console, request, 503 if isinstance(error, StorageError) else status)
        if isinstance(error, InvalidRequest):
            error = as_of_form(error)
        # The console itself refuses people without a right. What the engine forbids is forbidden to everybody, such as
        # a start in a suspended workspace.
        wrong, to_do = words.ERRORS[409] if status == HTTPStatus.FORBIDDEN else ("", "")
        message = "" if status == HTTPStatus.NOT_FOUND else error.message
        return error_page(self._console, request, status, message, wrong=wrong, to_do=to_do)

    async def of_http(self, request: Request, error: Exception) -> Response:
        """Return the page of an unknown path or method, or of something that the console refuses."""
        assert isinstance(error, HTTPException)  # noqa: S101 - the handler's registered type
        detail = "" if error.detail == HTTPStatus(error.status_code).phrase else str(error.detail)
        wrong = to_do = ""
        if isinstance(error, RefusedForm):
            wrong, to_do = words.FORM_REFUSED, words.SEND_FROM_PAGE
        elif isinstance(error, MissingRight) and (visit := visit_of(request)) is not None:
            to_do = await _who_may(visit, error.right)
        answer = error_page(self._console, request, error.status_code, detail, wrong=wrong, to_do=to_do)
        for name, value in (error.headers or {}).items():
            answer.headers[name] = value
        return answer
