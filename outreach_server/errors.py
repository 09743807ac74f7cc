"""JSON responses, and one envelope for everything that is not 2xx.

Only this module maps errors to statuses.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final, TypeVar

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from outreach import Conflict, InvalidRequest, NotFound, OutreachError
from outreach.errors import (
    CannotStart,
    Forbidden,
    LoginThrottled,
    Problem,
    RateLimited,
    RequestInProgress,
    StorageBusy,
    StorageError,
    StorageFull,
    StorageUnreachable,
    Unauthorized,
)
from outreach.http import AnswerReplayed, IdempotentRequest, StoredAnswer
from outreach.server_support import FILES_GONE, log_error, log_throttle_of
from outreach_server.bodies.body import Body
from outreach_server.context import request_state_of, server_of
from outreach_server.endpoints.callbacks.misdirection import note_misdirection
from outreach_server.listening.refusal_counter import RefusalCounter

JSON: Final = "application/json"

M = TypeVar("M")


def json_response(content: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON response."""
    return Response(orjson.dumps(content), status_code=status, headers=headers, media_type=JSON)


async def answer_once(
    body: Body,
    operation: str,
    make: Callable[[IdempotentRequest[M]], Awaitable[M]],
    write: Callable[[M], Any],
    *,
    location: Callable[[M], str] | None = None,
    status: int = 201,
    kept: Callable[[M], M] | None = None,
) -> Response:
    """Return the response to a POST: the first one, where its key was used before.

    Args:
        body: The body with its key.
        operation: The operation's name, which scopes its keys.
        make: Carries out the request; the argument is its `idempotency_key`.
        write: Makes the JSON of the response.
        location: Makes the header `Location`; None for none.
        status: The status of the response.
        kept: Returns what a repeated request is answered with, where the response has a secret; None for the same.
    """

    def render(made: M) -> StoredAnswer:
        shown = made if kept is None else kept(made)
        return StoredAnswer(body=orjson.dumps(write(shown)), location=None if location is None else location(made))

    request = IdempotentRequest(
        operation=operation, key=body.key, digest=body.digest, render=render, idempotency_days=body.key_days
    )
    with suppress(AnswerReplayed):
        made = await make(request)
        if kept is not None:
            return Response(orjson.dumps(write(made)), status_code=status, media_type=JSON)
    headers = {} if request.answer.location is None else {"Location": request.answer.location}
    return Response(request.answer.body, status_code=status, headers=headers, media_type=JSON)


STATUS_BY_ERROR: Final[Mapping[type[OutreachError], int]] = {
    InvalidRequest: 400,
    Unauthorized: 401,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    RateLimited: 429,
    LoginThrottled: 429,
    RequestInProgress: 429,
    StorageBusy: 503,
    StorageFull: 503,
    StorageUnreachable: 503,
}
"""An error has the status of its nearest ancestor here; others are a 500."""

_CODES: Final = {400: "invalid_request", 401: "unauthorized", 404: "not_found", 405: "method_not_allowed"}
_MAX_MESSAGE_LENGTH: Final = 1000
_MAX_PATH_LENGTH: Final = 300
_OUR_FAULT: Final = "Something went wrong on our side. The server's log has it under this request id."

_NO_DATABASE: Final = "The database cannot be used at the moment; the server's log says why. Try again later."
_NO_ROOM: Final = (
    "The disk of the database is full, and nothing was changed. Make room on the server's disk, and send this again."
)
_NO_ROOM_FOR_BODY: Final = (
    "The disk of the server is full: there is no room for this request. Make room on it, and send this again."
)
_NOT_NOW: Final = "The database cannot be written at the moment, and nothing was changed. Try again in a moment."

_TOO_MANY: Final = (
    "Too many large bodies or exports are in work, and nothing was changed. Send this request again later."
)

_STOPPING: Final = (
    "The server is stopping before it has a response. With an Idempotency-Key it is safe to send this again."
)

_log = logging.getLogger("outreach_server")
_crowded = RefusalCounter(_log, "no_turn", "large body or export answered 503: too many are in work")
_busy = RefusalCounter(_log, "storage_busy", "request answered 503: another process holds the database")


def status_of(error: OutreachError) -> int:
    """Return the HTTP status of an error, such as 404 for `NotFound`, also for a host's own routes."""
    return next((STATUS_BY_ERROR[cls] for cls in type(error).__mro__ if cls in STATUS_BY_ERROR), 500)


def error_response(
    request: Request,
    status: int,
    code: str,
    message: str,
    *,
    details: Sequence[Problem] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return an error response in the envelope."""
    content = envelope(code, message, request_id=request_state_of(request).request_id, details=details)
    return json_response(content, status=status, headers=headers)


def envelope(code: str, message: str, *, request_id: str, details: Sequence[Problem] = ()) -> dict[str, Any]:
    """Return the envelope of every response that is not 2xx (docs/interface.md#error-envelope)."""
    return {
        "error": {
            "code": code,
            "message": _printable(message, _MAX_MESSAGE_LENGTH),
            "request_id": request_id,
            "details": [
                {
                    "path": _printable(detail.path, _MAX_PATH_LENGTH),
                    "message": _printable(detail.message, _MAX_MESSAGE_LENGTH),
                }
                for detail in details
            ],
        }
    }


async def answer_outreach_error(request: Request, error: Exception) -> Response:
    """Return the response to an error of the engine."""
    assert isinstance(error, OutreachError)  # noqa: S101 - the handler's registered type
    if isinstance(error, StorageBusy):
        return answer_busy(request)
    status = status_of(error)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return answer_fault(request, error)
    headers = {}
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, RateLimited | LoginThrottled | RequestInProgress):
        headers["Retry-After"] = str(error.retry_after_seconds)
    details = error.details if isinstance(error, InvalidRequest | CannotStart) else ()
    return error_response(request, status, error.code, error.message, details=details, headers=headers)


async def answer_http_exception(request: Request, error: Exception) -> Response:
    """Return the response to an unknown path or method."""
    assert isinstance(error, HTTPException)  # noqa: S101 - the handler's registered type
    status = error.status_code
    match status:
        case HTTPStatus.NOT_FOUND:
            message = "This path does not exist. The operations are described at /docs."
            try:
                await note_misdirection(request, "path")
            except OutreachError as problem:
                return await answer_outreach_error(request, problem)
        case HTTPStatus.METHOD_NOT_ALLOWED:
            message = f"This path does not support {request.method[:20]}. The header Allow lists its methods."
        case _:
            message = str(error.detail)
    code = _CODES.get(status, "invalid_request" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "internal_error")
    return error_response(request, status, code, message, headers=error.headers)


def answer_busy(request: Request) -> Response:
    """Return the 503 response for a database that is not writable for a while; nothing was changed."""
    _busy.add()
    return error_response(request, 503, "internal_error", _NOT_NOW, headers={"Retry-After": "1"})


async def answer_overloaded(request: Request, _: Exception) -> Response:
    """Return the 503 response to a large body, or an export as XLSX, that got no turn."""
    _crowded.add()
    # A body was not read, so the connection cannot be reused.
    request_state_of(request).closes = True
    return error_response(request, 503, "internal_error", _TOO_MANY, headers={"Retry-After": "30"})


def answer_stopping(request: Request) -> Response:
    """Return the 503 response to a request that the server's stop ends; it is unknown what the request has changed."""
    request_state_of(request).closes = True
    return error_response(request, 503, "internal_error", _STOPPING, headers={"Retry-After": "1"})


def answer_fault(request: Request, error: Exception) -> Response:
    """Return the 500 response to an unexpected error, which is logged and not shown; a 503 where it may pass by."""
    if isinstance(error, StorageError) and (engine := server_of(request).open_engine) is not None:
        # A storage error fails every request: logged once, and counted.
        log_throttle_of(engine).failure(
            "request_failed", error, "request failed", request_id=request_state_of(request).request_id
        )
        if isinstance(error, StorageFull):
            # Somebody has to make room first.
            return error_response(request, 503, "internal_error", _NO_ROOM, headers={"Retry-After": "30"})
        passes = isinstance(error, StorageUnreachable)
        status, headers = (503, {"Retry-After": "1"}) if passes else (500, {})
        message = FILES_GONE.get(error.code, _NO_DATABASE)
        return error_response(request, status, "internal_error", message, headers=headers)
    log_error(
        _log,
        logging.ERROR,
        "request %s failed",
        request_state_of(request).request_id,
        error=error,
        extra={"action": "request_failed", "request_id": request_state_of(request).request_id},
    )
    if isinstance(error, OSError) and error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return error_response(request, 503, "internal_error", _NO_ROOM_FOR_BODY, headers={"Retry-After": "30"})
    return error_response(request, 500, "internal_error", _OUR_FAULT)


class FaultMiddleware:
    """Answers unexpected errors, also where the host's own middleware would not.

    Args:
        app: The wrapped app.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def send_watched(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, send_watched)
        except ClientDisconnect:
            # The client has gone.
            return
        except Exception as error:
            response = answer_fault(Request(scope), error)
            if started:
                raise
            await response(scope, receive, send)


def _printable(text: str, longest: int) -> str:
    """Return a text cut to a length, without characters that UTF-8 cannot encode."""
    cut = text if len(text) <= longest else text[:longest] + "..."
    return cut.encode("utf-8", "backslashreplace").decode()
