"""Events that are gone before an endpoint has received them, over both databases and a real receiver."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from outreach import NewWorkspace, Outreach
from outreach.core.config import EngineConfig
from outreach.core.secret_keys import SECRET_KEY_VARIABLE
from outreach.ledger import webhooks
from outreach.models import NewWebhook
from outreach.services.tenants.webhook_listening import Listener
from outreach.testing.fault_server import Answer, FaultServer
from tests import postgres

pytestmark = pytest.mark.anyio

CONFIG = EngineConfig(webhook_allow="127.0.0.0/8", webhook_allow_http=True, change_poll_seconds=0.05)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty database, and the key that all processes of a server's need."""
    monkeypatch.setenv(SECRET_KEY_VARIABLE, "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
    return f"sqlite:///{tmp_path / 'a.db'}" if request.param == "sqlite" else postgres.empty_database()


def _delete(url: str, first: int, last: int) -> None:
    """Delete entries of the trail, as somebody does who removes old rows from the database."""
    statement = f"DELETE FROM trail WHERE number BETWEEN {first} AND {last}"  # noqa: S608 - numbers of this test
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
            connection.execute(statement)
        return
    with psycopg.connect(url, options="-c search_path=outreach") as opened:
        opened.execute(statement)


def _bodies(server: FaultServer) -> Sequence[Any]:
    return [json.loads(one.body) for one in server.requests]


async def _delivered(server: FaultServer, count: int) -> None:
    async with asyncio.timeout(60):
        while len(server.requests) < count:  # noqa: ASYNC110 - a receiver tells nobody
            await asyncio.sleep(0.05)


async def test_one_notice_stands_for_all_that_is_gone_before_what_is_left(url: str) -> None:
    """With the numbers; what comes afterwards follows, and the notice does not come again, after a restart either."""
    async with FaultServer(lambda _: Answer()) as server:
        async with Outreach.open(url, config=CONFIG) as engine:
            workspace = (await engine.workspaces.create(NewWorkspace(name="Acme"))).id
            made = await engine.webhooks.create(workspace, NewWebhook(url=server.url, payload="full", concurrency=1))
            behind = (await engine.webhooks.cursor(workspace, made.webhook.id)).position
            for person in range(8):
                await engine.unsubscribes.add(workspace, f"+1212555{person:04}")
        _delete(url, behind + 1, behind + 5)
        async with Outreach.open(url, dispatch=True, config=CONFIG) as engine:
            await _delivered(server, 4)
            await engine.unsubscribes.add(workspace, "+12125550008")
            await _delivered(server, 5)
        async with Outreach.open(url, dispatch=True, config=CONFIG) as engine:
            await engine.unsubscribes.add(workspace, "+12125550009")
            await _delivered(server, 6)

    notice, *others = _bodies(server)
    assert notice["type"] == "events.gap"
    assert (notice["data"]["first"], notice["data"]["last"]) == (behind + 1, behind + 5)
    assert [one["data"]["phone"][-1] for one in others] == list("56789")
    assert len({one.headers["webhook-id"] for one in server.requests}) == 6


async def test_erasure_leaves_no_gap(url: str) -> None:
    """The engine keeps the numbers of what it erases: the event comes without the person's number."""
    async with FaultServer(lambda _: Answer()) as server:
        async with Outreach.open(url, config=CONFIG) as engine:
            workspace = (await engine.workspaces.create(NewWorkspace(name="Acme"))).id
            await engine.webhooks.create(workspace, NewWebhook(url=server.url, payload="full", concurrency=1))
            for person in range(3):
                await engine.unsubscribes.add(workspace, f"+1212555{person:04}")
            await engine.erasure.purge(workspace, "+12125550001")
        async with Outreach.open(url, dispatch=True, config=CONFIG):
            await _delivered(server, 3)

    assert {one["type"] for one in _bodies(server)} == {"contact.opted_out"}
    assert b"+12125550001" not in b"".join(one.body for one in server.requests)
    assert sorted(b"+1212555" in one.body for one in server.requests) == [False, True, True]


async def test_a_notice_that_comes_again_has_the_same_id(tmp_path: Path) -> None:
    """After a kill between the delivery and the storing of the position, the notice is read from there again."""
    async with Outreach.open(f"sqlite:///{tmp_path / 'a.db'}", config=CONFIG) as engine:
        workspace = (await engine.workspaces.create(NewWorkspace(name="Acme"))).id
        for person in range(3):
            await engine.unsubscribes.add(workspace, f"+1212555{person:04}")
    _delete(f"sqlite:///{tmp_path / 'a.db'}", 1, 2)
    async with Outreach.open(f"sqlite:///{tmp_path / 'a.db'}", config=CONFIG) as engine:
        storage, now = engine.webhooks._context.storage, engine.now()
        listener = Listener(workspace_id=workspace)

        async def ids(at: datetime) -> Sequence[str]:
            found = await storage.read(lambda tx: webhooks.read(tx, listener, 0, gap_until=0, now=at))
            return [one.id for one in found[0]]

        first = await ids(now)
        assert first[0] == f"evt_{workspace}_gap_1_2"
        assert len(set(first)) == len(first) > 1
        assert await ids(now + timedelta(minutes=1)) == first
