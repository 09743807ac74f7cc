from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from fair import FairDispatcher
from gateway import Gateway
from heron import ADAPTERS, HeronCarrier, HeronVoice, Verdict
from starlette.requests import Request

from outreach import (
    EngineConfig,
    NewAgent,
    NewCallCampaign,
    NewNumber,
    NewRecipient,
    NewSmsCampaign,
    NewWorkspace,
    Outreach,
    WorkspaceMode,
)
from outreach.errors import CallbackRejected
from outreach.protocols import Connection, SystemClock
from outreach.testing.carrier_contract import CarrierContract
from outreach.testing.fault_server import FaultServer
from outreach.testing.http_harness import HttpHarness
from outreach.testing.voice_contract import VoiceContract
from outreach.testing.waiting import campaign_ended, until
from outreach_server import Identity, create_app, running


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def connection(http: httpx.AsyncClient, url: str) -> Connection:
    credentials = {"url": url, "token": "t0ken"}
    return Connection(workspace_id="w", account_id="a", credentials=credentials, http=http, clock=SystemClock())


@pytest.mark.anyio
class TestHeronCarrier(CarrierContract):
    @pytest.fixture
    async def harness(self) -> AsyncIterator[HttpHarness]:
        gateway = Gateway()
        async with FaultServer(gateway.accept) as server, httpx.AsyncClient() as http:
            yield HttpHarness(server, gateway, lambda url: HeronCarrier(connection(http, url)))


@pytest.mark.anyio
class TestHeronVoice(VoiceContract):
    @pytest.fixture
    async def harness(self) -> AsyncIterator[HttpHarness]:
        gateway = Gateway()
        async with FaultServer(gateway.accept) as server, httpx.AsyncClient() as http:
            yield HttpHarness(server, gateway, lambda url: HeronVoice(connection(http, url)))


@pytest.mark.anyio
async def test_a_campaign_of_texts_and_one_of_calls(tmp_path: Path) -> None:
    gateway = Gateway()
    async with (
        FaultServer(gateway.accept) as server,
        Outreach.open(
            f"sqlite:///{tmp_path / 'platform.db'}",
            dispatch=True,
            adapters=ADAPTERS,
            analyser=Verdict(),
            dispatcher=lambda parts: FairDispatcher(parts, slices=4, slices_each=2),
            config=EngineConfig(call_poll_seconds=0.1),
        ) as engine,
    ):
        workspace = await engine.workspaces.create(
            NewWorkspace(name="Tenant", mode=WorkspaceMode.LIVE, default_region="US", contact_hours=False)
        )
        credentials = {"url": server.url, "token": "t0ken"}
        account = await engine.accounts.connect(workspace.id, "heron", credentials)
        await engine.accounts.connect(workspace.id, "heron-voice", credentials)
        assert (await engine.accounts.check(workspace.id, account.id)).ok
        await engine.numbers.create(workspace.id, NewNumber(phone="+12125550199", carrier="heron"))
        people = [NewRecipient(phone_number=f"+1212555010{n}", first_name="Ada") for n in range(3)]
        texts = await engine.campaigns.create_sms(
            workspace.id,
            NewSmsCampaign(
                name="T", body="Hi {{first_name}}", carrier="heron", from_number="+12125550199", rate_per_minute=600
            ),
            people,
        )
        agent = await engine.agents.create(
            workspace.id,
            NewAgent(
                name="Ann",
                provider="heron-voice",
                provider_agent_id="ann-1",
                allow_outbound=True,
                from_number="+12125550199",
            ),
        )
        calls = await engine.campaigns.create_call(workspace.id, NewCallCampaign(name="C", agent_id=agent.id), people)
        for campaign in (texts.campaign, calls.campaign):
            started = await engine.campaigns.start(workspace.id, campaign.id)
            ended = await campaign_ended(engine, started)
            assert ended.counters.successful == 3
        assert {call.outcome for call in await engine.calls.list(workspace.id)} == {"positive"}
        status = await engine.status(workspace.id)
        assert engine.health().dispatching, status

        # The tenant does the same over HTTP, and names the platform's own gateway there.
        async def sign_in(request: Request) -> Identity | None:
            known = request.headers.get("x-tenant") == "tenant"
            return Identity(workspace_id=workspace.id, scopes=("send", "manage")) if known else None

        api = create_app(engine=engine, authenticate=sign_in, carriers=["heron"])
        transport = httpx.ASGITransport(api)
        async with running(api), httpx.AsyncClient(transport=transport, base_url="http://platform") as client:
            body = {
                "name": "Over HTTP",
                "message_body": "Hi {{first_name}}",
                "sms_carrier": "heron",
                "sms_from_number": "+12125550199",
                "recipients": [{"phone_number": "(212) 555-0107", "first_name": "Grace"}],
            }
            assert (await client.post("/sms-campaigns", json=body)).status_code == 401
            made = await client.post("/sms-campaigns", json=body, headers={"x-tenant": "tenant"})
            assert made.status_code == 201, made.text
            answer = await client.post(f"/manage/campaigns/{made.json()['id']}/start", headers={"x-tenant": "tenant"})
            assert answer.status_code == 200, answer.text
        await campaign_ended(engine, await engine.campaigns.get(workspace.id, made.json()["id"]))
        assert gateway.taken.popitem()[1]["to"] == "+12125550107"

        key, taken = next(iter(gateway.taken.items()))
        at = time.time()
        events = [
            {"id": "e1", "type": "delivered", "key": key, "message": taken["id"], "at": at},
            {
                "id": "e2",
                "type": "text",
                "from": "+12125550100",
                "to": "+12125550199",
                "text": "STOP",
                "at": time.time(),
            },
        ]
        raw = json.dumps(events).encode()
        signature = hmac.new(b"t0ken", raw, hashlib.sha256).hexdigest()
        with pytest.raises(CallbackRejected):
            await engine.callbacks.receive(account.id, url="https://o/webhooks/a", headers={}, body=raw)
        await engine.callbacks.receive(
            account.id, url="https://o/webhooks/a", headers={"Heron-Signature": signature}, body=raw
        )

        async def stopped() -> bool:
            return bool(await engine.unsubscribes.list(workspace.id))

        assert await until(stopped)
