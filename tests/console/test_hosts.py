"""Every page of the console in other applications: FastAPI, Django, behind a proxy, and two in one process."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.sessions.backends.signed_cookies import SessionStore
from django.core.asgi import get_asgi_application
from django.http import HttpRequest, HttpResponse
from django.urls import path as django_path
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from outreach import Outreach
from outreach_server.console import ConsoleUser, create_console
from tests.console.conftest import ORIGIN
from tests.console.furniture import addresses, furnished
from tests.console.page import Page, parse
from tests.own_adapter import OwnAdapter

pytestmark = pytest.mark.anyio

LINKS: Final = ("href", "src", "action", "formaction", "hx-sse:connect")
COOKIE: Final = "sessionid"


async def walk(client: httpx.AsyncClient, prefix: str, console: Starlette, things: Mapping[str, str]) -> None:
    """Open every page of a console, and check that all that it names is below a prefix, and there."""
    named: set[str] = set()
    for _, path in addresses(console, things):
        answer = await client.get(prefix + path)
        assert answer.status_code == 200, (path, answer.text)
        page = parse(answer.text)
        assert page.problems == [], path
        named |= set(_named(page))
    assert [one for one in named if not one.startswith(f"{prefix}/")] == []
    files = {urlsplit(one).path for one in named if "/static/" in one}
    assert len(files) == 6
    for path in files:
        assert (await client.get(path)).status_code == 200, path


def _named(page: Page) -> Iterator[str]:
    for one in page.root:
        for name in LINKS:
            value = one.attributes.get(name, "").partition("#")[0]
            if value:
                yield value


def unthrottled(console: Starlette) -> Starlette:
    """Let one person open as many pages as a test does."""
    console.state.console.throttle.admits = lambda subject: True
    return console


def client_of(app: ASGIApp, **cookies: str) -> httpx.AsyncClient:
    """Return a browser."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ORIGIN, cookies=cookies)


async def operator(request: Request) -> ConsoleUser | None:
    """Identify everybody as an operator."""
    return ConsoleUser(id="ann", name="Ann", operator=True)


@pytest.fixture(autouse=True)
def a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key that credentials are encrypted with."""
    monkeypatch.setenv("OUTREACH_SECRET_KEY", "A" * 43 + "=")


def opened() -> Outreach:
    """Return an engine in memory with a carrier of its own."""
    return Outreach.open("memory://", adapters=[OwnAdapter()])


async def test_every_page_works_in_fastapi() -> None:
    """Mounted, beside the host's own pages."""
    async with opened() as engine:
        things, console = await furnished(engine), create_console(engine=engine, identify=operator)
        app = FastAPI()
        app.mount("/a/b", unthrottled(console))
        async with client_of(app) as client:
            await walk(client, "/a/b", console, things)


def django() -> Any:
    """Return a Django site that signs Ann in."""
    if not settings.configured:
        settings.configure(
            SECRET_KEY="of-a-test",
            ROOT_URLCONF=__name__,
            ALLOWED_HOSTS=["*"],
            MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware"],
            SESSION_ENGINE="django.contrib.sessions.backends.signed_cookies",
        )
    return get_asgi_application()


def sign_in(request: HttpRequest) -> HttpResponse:
    """Sign Ann in."""
    request.session["person"] = "ann"
    return HttpResponse("Welcome")


urlpatterns = [django_path("sign-in", sign_in)]


async def test_every_page_works_beside_django_with_its_sessions() -> None:
    """Who is signed in there is signed in here, and nobody else."""

    async def identify(request: Request) -> ConsoleUser | None:
        session = SessionStore(session_key=request.cookies.get(COOKIE, ""))
        person = await sync_to_async(session.get)("person")
        return ConsoleUser(id=person, name="Ann", operator=True) if person else None

    site = django()
    async with opened() as engine:
        things = await furnished(engine)
        console = create_console(engine=engine, identify=identify, sign_in_url="/sign-in")
        app = Starlette(routes=[Mount("/a/b", unthrottled(console)), Mount("/", site)])
        async with client_of(app) as client:
            away = await client.get("/a/b/")
            assert (away.status_code, away.headers["location"]) == (303, "/sign-in")
            assert (await client.get(away.headers["location"])).text == "Welcome"
            await walk(client, "/a/b", console, things)


@pytest.mark.parametrize("keeps", [True, False])
async def test_every_page_works_behind_a_proxy_that_strips_the_prefix(keeps: bool) -> None:
    """Of servers that are told the prefix some put it before the path again, as uvicorn does, and some do not."""
    async with opened() as engine:
        things, console = await furnished(engine), create_console(engine=engine, identify=operator)
        unthrottled(console)

        async def proxy(scope: Scope, receive: Receive, send: Send) -> None:
            assert scope["path"].startswith("/a/b/")
            path = scope["path"].removeprefix("/a/b")
            await console({**scope, "root_path": "/a/b", "path": f"/a/b{path}" if keeps else path}, receive, send)

        async with client_of(proxy) as client:
            await walk(client, "/a/b", console, things)


async def test_two_consoles_in_one_process_have_pages_of_their_own() -> None:
    """Walked at the same time, each stays below its own path, and shows nothing of the other."""
    async with opened() as one, opened() as two:
        both = [await furnished(one), await furnished(two)]
        consoles = [create_console(engine=engine, identify=operator) for engine in (one, two)]
        app = Starlette(routes=[Mount("/a/b", unthrottled(consoles[0])), Mount("/c", unthrottled(consoles[1]))])
        async with client_of(app) as client:
            await asyncio.gather(walk(client, "/a/b", consoles[0], both[0]), walk(client, "/c", consoles[1], both[1]))
            for prefix, other in (("/a/b", both[1]), ("/c", both[0])):
                assert other["workspace"] not in (await client.get(f"{prefix}/")).text
                assert (await client.get(f"{prefix}/w/{other['workspace']}/")).status_code == 404
