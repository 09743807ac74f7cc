"""The link of the demonstration, which signs a browser in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from starlette.applications import Starlette

from outreach import NewWorkspace, Outreach
from outreach_server.app import create_app
from outreach_server.cli.serving import login_link
from outreach_server.cli.serving.login_link import LoginLink, add_login_link
from outreach_server.cli.serving.own_console import mount_console

pytestmark = pytest.mark.anyio

URL = "http://127.0.0.1:8000"


@pytest.fixture
async def app() -> AsyncIterator[Starlette]:
    """A server with its console."""
    async with Outreach.open("memory://") as engine:
        app = create_app(engine=engine)
        mount_console(app, engine)
        yield app


async def made(app: Starlette) -> LoginLink:
    """Return a link that opens the overview of a new workspace."""
    engine: Outreach = app.state.server.engine
    workspace = await engine.workspaces.create(NewWorkspace(name="Demo clinic"))
    return await add_login_link(app, engine, workspace.id, f"/w/{workspace.id}/")


def browser(app: Starlette, address: str = "127.0.0.1") -> httpx.AsyncClient:
    """Return a browser at an address."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(app, client=(address, 50_000)), base_url=URL)


async def test_the_link_signs_in_once(app: Starlette) -> None:
    """The browser then has a session; another browser gets nothing from the link any more."""
    link = await made(app)
    async with browser(app) as first, browser(app) as second:
        path = link.path
        answer = await first.get(path)
        assert (answer.status_code, answer.headers["location"]) == (303, f"/console{link.page}")
        assert "Demo clinic" in (await first.get(answer.headers["location"])).text
        for again in (path, "/console/demo/", "/console/demo/None"):
            answer = await second.get(again)
            assert answer.status_code in {303, 404}
            assert "set-cookie" not in answer.headers


async def test_a_wrong_token_does_not_use_the_link_up(app: Starlette) -> None:
    """Nor does a browser of another machine."""
    link = await made(app)
    async with browser(app) as here, browser(app, "192.0.2.7") as elsewhere:
        assert (await here.get("/console/demo/wrong")).status_code == 404
        assert (await here.get("/console/demo/%C3%A4")).status_code == 404
        assert (await elsewhere.get(link.path)).status_code == 404
        assert (await here.get(link.path)).status_code == 303


async def test_an_old_link_is_not_valid(app: Starlette, monkeypatch: pytest.MonkeyPatch) -> None:
    """After its minutes."""
    monkeypatch.setattr(login_link, "VALID_FOR", timedelta(0))
    link = await made(app)
    async with browser(app) as late:
        answer = await late.get(link.path)
        assert answer.status_code == 404
        assert "older than 15 minutes" in answer.text


def test_the_token_is_in_no_representation() -> None:
    """Logs show none."""
    link = LoginLink(user_id="u", page="/", until=datetime.now(UTC))
    assert link.path.rpartition("/")[2] not in repr(link)
