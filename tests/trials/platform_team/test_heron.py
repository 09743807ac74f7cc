from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from fair import FairDispatcher
from gateway import Gateway
from heron import ADAPTER, HeronVoice, Verdict
from starlette.requests import Request

from outreach import (
    EngineConfig,
    NewAgent,
    NewWorkspace,
    Outreach,
    WorkspaceMode,
)
from outreach.errors import CallbackRejected
from outreach.protocols import Connection, SystemClock
from outreach.testing.fault_server import FaultServer
from outreach.testing.http_harness import HttpHarness
from outreach.testing.voice_contract import VoiceContract
from outreach.testing.waiting import campaign_ended
from outreach_server import Identity, create_app, running


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def connection(http: httpx.AsyncClient, url: str) -> Connection:
    credentials = {"url": url, "token": "t0ken"}
    return Connection(workspace_id="w", account_id="a", credentials=credentials, http=http, clock=SystemClock())


@pytest.mark.anyio
class TestHeronVoice(VoiceContract):
    @pytest.fixture
    async def harness(self) -> AsyncIterator[HttpHarness]:
        gateway = Gateway()
        async with FaultServer(gateway.accept) as server, httpx.AsyncClient() as http:
            yield HttpHarness(server, gateway, lambda url: HeronVoice(connection(http, url)))


@pytest.mark.anyio
async def test_a_campaign_of_calls(tmp_path: Path) -> None:
    gateway = Gateway()
    async with (
        FaultServer(gateway.accept) as server,
        Outreach.open(
            f"sqlite:///{tmp_path / 'platform.db'}",
            dispatch=True,
            adapters=[ADAPTER],
            analyser=Verdict(),
            dispatcher=lambda parts: FairDispatcher(parts, slices=4, slices_each=2),
            config=EngineConfig(call_poll_seconds=0.1),
        ) as engine,
    ):
        workspace = await engine.workspaces.create(
            NewWorkspace(name="Tenant", mode=WorkspaceMode.LIVE, default_region="US", contact_hours=False)
        )
        account = await engine.accounts.connect(workspace.id, "heron-voice", {"url": server.url, "token": "t0ken"})
        assert (await engine.accounts.check(workspace.id, account.id)).ok
        new = NewAgent(
            name="Ann",
            provider="heron-voice",
            provider_agent_id="ann-1",
            allow_outbound=True,
            from_number="+12125550199",
        )
        agent = await engine.agents.create(workspace.id, new)

        # The tenant does it over HTTP.
        async def sign_in(request: Request) -> Identity | None:
            known = request.headers.get("x-tenant") == "tenant"
            return Identity(workspace_id=workspace.id, scopes=("send", "manage")) if known else None

        api = create_app(engine=engine, authenticate=sign_in)
        transport = httpx.ASGITransport(api)
        async with running(api), httpx.AsyncClient(transport=transport, base_url="http://platform") as client:
            people = [{"phone_number": f"(212) 555-010{n}"} for n in range(3)]
            body = {"name": "C", "agent_id": agent.id, "recipients": people}
            assert (await client.post("/campaigns", json=body)).status_code == 401
            made = await client.post("/campaigns", json=body, headers={"x-tenant": "tenant"})
            assert made.status_code == 201, made.text
            answer = await client.post(f"/manage/campaigns/{made.json()['id']}/start", headers={"x-tenant": "tenant"})
            assert answer.status_code == 200, answer.text
        ended = await campaign_ended(engine, await engine.campaigns.get(workspace.id, made.json()["id"]))
        assert ended.counters.successful == 3
        assert {call.outcome for call in await engine.calls.list(workspace.id)} == {"positive"}
        assert engine.health().dispatching

        raw = json.dumps([{"id": "e1"}]).encode()
        with pytest.raises(CallbackRejected):
            await engine.callbacks.receive(account.id, url="https://o/webhooks/a", headers={}, body=raw)
        signature = hmac.new(b"t0ken", raw, hashlib.sha256).hexdigest()
        await engine.callbacks.receive(
            account.id, url="https://o/webhooks/a", headers={"Heron-Signature": signature}, body=raw
        )
        assert [record.event_id for record in await engine.callbacks.list(workspace.id)] == ["e1"]
