from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from outreach import Outreach, Workspace
from outreach_server import create_app, running


@pytest.fixture
async def client(outreach_engine: Outreach, outreach_workspace: Workspace) -> AsyncIterator[httpx.AsyncClient]:
    """Return a client of the HTTP interface, over the engine that the plugin has opened."""
    api = create_app(engine=outreach_engine)
    key = await outreach_engine.api_keys.create(outreach_workspace.id)
    headers = {"Authorization": f"Bearer {key.api_key}"}
    transport = httpx.ASGITransport(api)
    async with running(api), httpx.AsyncClient(transport=transport, base_url="http://app", headers=headers) as http:
        yield http


@pytest.mark.virtual_time
async def test_a_message_is_taken(client: httpx.AsyncClient) -> None:
    sent = await client.post("/sms", json={"to": "+14155550102", "body": "Hi!"})
    assert sent.status_code == 201, sent.text
