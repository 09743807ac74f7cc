from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from app import Shop, make_app

from outreach import Outreach, Workspace

pytest_plugins = ["outreach.testing.plugin"]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "shop.db")


@pytest.fixture
async def client(
    shop: Shop, outreach_engine: Outreach, outreach_workspace: Workspace
) -> AsyncIterator[httpx.AsyncClient]:
    shop.ask("INSERT INTO staff VALUES ('boss', ?, 1), ('clerk', ?, 0)", outreach_workspace.id, outreach_workspace.id)
    app = make_app(outreach_engine, shop, opens_engine=False)
    transport = httpx.ASGITransport(app)
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url="http://shop") as http:
        yield http
