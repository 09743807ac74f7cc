"""A stand-in over HTTP: it answers the adapter's requests, and sends the callbacks that follow."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import anyio
from anyio.abc import TaskGroup
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from outreach_server.listening.proxies import is_loopback_host
from outreach_server.stand_ins.base import UNAUTHORIZED, Outgoing, Request, StandIn

if TYPE_CHECKING:
    import httpx

_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
_MAX_OPEN: Final = 10_000
"""Callbacks that wait for their time; what follows from more requests is dropped, and logged."""

_TRIES: Final = 5
_RETRY_SECONDS: Final = 1.0
"""How often a callback is sent that is not accepted, and how long after another; providers do so too."""

_log = logging.getLogger("outreach_server")


class Callbacks:
    """Has callbacks recorded at their time, and sends them, to this machine alone.

    Args:
        stand_in: Signs them.
        http: The client.
        account_url: Returns the callback URL that an operator would set at the provider; None if it is unknown.
    """

    def __init__(
        self, stand_in: StandIn, http: httpx.AsyncClient, account_url: Callable[[], Awaitable[str | None]]
    ) -> None:
        self._stand_in = stand_in
        self._http = http
        self._account_url = account_url
        self._open = 0

    def schedule(self, tasks: TaskGroup, callback: Outgoing) -> None:
        """Send a callback when it is due."""
        if self._open >= _MAX_OPEN:
            _log.warning(
                "%d callbacks wait already: another one is dropped.",
                self._open,
                extra={"action": "stand_in_callback_lost"},
            )
            return
        self._open += 1
        tasks.start_soon(self._send, callback)

    async def _send(self, callback: Outgoing) -> None:
        try:
            await anyio.sleep(callback.after)
            self._stand_in.record(callback.content)
            url = await self._account_url() if callback.url is None else callback.url
            if url == "":
                return
            if url is None:
                _log.warning(
                    "There is no account with this stand-in's api_base and a public URL: no callback is sent.",
                    extra={"action": "stand_in_callback_lost"},
                )
            elif not is_loopback(url):
                _log.warning(
                    "The callback URL %s is not on this machine: no callback is sent.",
                    urlsplit(url).netloc,
                    extra={"action": "stand_in_callback_lost"},
                )
            else:
                await self._post(url, callback)
        finally:
            self._open -= 1

    async def _post(self, url: str, callback: Outgoing) -> None:
        import httpx

        said = "no answer"
        for again in range(_TRIES):
            if again:
                await anyio.sleep(_RETRY_SECONDS)
            signed = self._stand_in.sign(url, callback.content, datetime.now(UTC))
            try:
                answer = await self._http.post(url, headers=dict(signed.headers), content=signed.body)
            except httpx.HTTPError as error:
                said = type(error).__name__
                continue
            if answer.is_success:
                return
            said = str(answer.status_code)
        _log.warning(
            "A callback was not accepted by %s (%s).",
            urlsplit(url).netloc,
            said,
            extra={"action": "stand_in_callback_lost"},
        )


def is_loopback(url: str) -> bool:
    """Return whether a URL leads to this machine."""
    return is_loopback_host(urlsplit(url).hostname or "")


def stand_in_app(stand_in: StandIn, account_url: Callable[[], Awaitable[str | None]]) -> Starlette:
    """Return an app that plays a provider; see `Callbacks` for the arguments."""
    import httpx

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        # The environment's proxy would take callbacks off this machine.
        async with httpx.AsyncClient(trust_env=False) as http, anyio.create_task_group() as tasks:
            callbacks = Callbacks(stand_in, http, account_url)
            app.state.schedule = lambda one: callbacks.schedule(tasks, one)
            yield
            tasks.cancel_scope.cancel()

    async def answer(request: HttpRequest) -> Response:
        received = Request(
            method=request.method,
            path=request.url.path,
            query=dict(request.query_params),
            body=await request.body(),
        )
        try:
            found = stand_in.answer(received) if stand_in.admits(request.headers) else UNAUTHORIZED
        except (KeyError, TypeError, AttributeError, ValueError):
            # What no adapter of ours asks.
            return Response(b"{}", status_code=400, media_type="application/json")
        for callback in found.callbacks:
            request.app.state.schedule(callback)
        return Response(found.body, status_code=found.status, media_type="application/json")

    return Starlette(routes=[Route("/{path:path}", answer, methods=list(_METHODS))], lifespan=lifespan)
