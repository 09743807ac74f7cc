from __future__ import annotations

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import anyio
import httpx
import pytest
from app import Shop, make_app

from outreach import NewWorkspace, Outreach, Workspace
from outreach.protocols import Clock
from outreach.testing.scripted import ScriptedCarrier, accept, refuse
from outreach.testing.waiting import campaign_ended

NEW_YORK = ZoneInfo("America/New_York")
BOSS = {"Authorization": "Shop boss"}
CLERK = {"Authorization": "Shop clerk"}


def order(shop: Shop, workspace: Workspace, batch: str, count: int) -> None:
    for n in range(count):
        row = (f"{batch}-{n}", batch, workspace.id, f"+1212555{n:04}", "Ada")
        shop.ask("INSERT INTO orders VALUES (?, ?, ?, ?, ?)", *row)


@pytest.mark.virtual_time(start=datetime(2026, 3, 3, 16, 30, tzinfo=NEW_YORK))
async def test_a_batch_goes_on_in_the_morning(
    client: httpx.AsyncClient,
    shop: Shop,
    outreach_engine: Outreach,
    outreach_workspace: Workspace,
    outreach_carrier: ScriptedCarrier,
    outreach_clock: Clock,
) -> None:
    order(shop, outreach_workspace, "b1", 120)
    shipped = await client.post("/batches/b1/ship", json={"per_minute": 1}, headers=BOSS)
    assert shipped.status_code == 200, shipped.text
    again = await client.post("/batches/b1/ship", json={"per_minute": 1}, headers=BOSS)
    assert again.json() == shipped.json() | {"status": "active"}
    campaign = await outreach_engine.campaigns.get(outreach_workspace.id, shipped.json()["campaign"])
    ended = await campaign_ended(outreach_engine, campaign)
    assert ended.counters.successful == 120
    assert {moment.astimezone(NEW_YORK).hour for moment in outreach_carrier.requested_at} == {16, 17, 9}
    assert outreach_clock.now() > datetime(2026, 3, 4, 9, 0, tzinfo=NEW_YORK)
    await anyio.sleep(60)
    assert dict(shop.ask("SELECT kind || ' ' || status, count(*) FROM notices GROUP BY 1")) == {
        "CampaignStatusChanged active": 1,
        "CampaignStatusChanged completed": 1,
        "CampaignStatusChanged ready": 1,
        "MessageStatusChanged delivered": 120,
        "RecipientEnded completed": 120,
    }
    report = await client.get(f"/outreach/manage/campaigns/{ended.id}/report", headers=CLERK)
    assert report.status_code == 200, report.text


@pytest.mark.virtual_time(start=datetime(2026, 3, 3, 11, 0, tzinfo=NEW_YORK))
async def test_who_answers_stop_and_who_cannot_be_reached(
    client: httpx.AsyncClient,
    shop: Shop,
    outreach_engine: Outreach,
    outreach_workspace: Workspace,
    outreach_carrier: ScriptedCarrier,
) -> None:
    order(shop, outreach_workspace, "b1", 3)
    outreach_carrier.script([accept().delivered().replied("STOP"), refuse("invalid_number")])
    shipped = await client.post("/batches/b1/ship", json={}, headers=BOSS)
    campaign = await outreach_engine.campaigns.get(outreach_workspace.id, shipped.json()["campaign"])
    await campaign_ended(outreach_engine, campaign)
    await anyio.sleep(600)
    found = shop.ask("SELECT order_number, status FROM notices WHERE kind = 'RecipientEnded' ORDER BY 1")
    assert found == [("b1-0", "completed"), ("b1-1", "failed"), ("b1-2", "completed")]
    assert shop.ask("SELECT count(*) FROM notices WHERE kind = 'OptedOut'") == [(1,)]
    order(shop, outreach_workspace, "b2", 2)
    assert (await client.post("/batches/b2/ship", json={}, headers=BOSS)).json()["opted_out"] == 1


@pytest.mark.virtual_time
async def test_who_may_do_what(client: httpx.AsyncClient) -> None:
    asked = [({}, 401), ({"Authorization": "Bearer boss"}, 401), (CLERK, 200), (BOSS, 200)]
    for headers, status in asked:
        assert (await client.get("/outreach/campaigns", headers=headers)).status_code == status
    assert (await client.post("/outreach/sms", json={}, headers=CLERK)).status_code == 403
    assert (await client.post("/batches/b1/ship", json={}, headers=CLERK)).status_code == 403


@pytest.mark.virtual_time
async def test_what_is_wrong_is_reported(client: httpx.AsyncClient, shop: Shop, outreach_workspace: Workspace) -> None:
    empty = await client.post("/batches/none/ship", json={}, headers=BOSS)
    assert (empty.status_code, empty.json()["wrong"]) == (400, {"recipients": "must have at least 1 element"})
    order(shop, outreach_workspace, "b1", 1)
    slip = await client.post("/batches/b1/ship", json={"text": "Hi {{frist_name}}"}, headers=BOSS)
    assert slip.status_code == 409
    assert "{{frist_name}}" in slip.json()["wrong"]["placeholders"]


@pytest.mark.virtual_time(start=datetime(2026, 3, 3, 11, 0, tzinfo=NEW_YORK))
async def test_a_restart_loses_no_event_and_writes_none_twice(
    shop: Shop, outreach_clock: Clock, tmp_path: Path
) -> None:
    def opened() -> Outreach:
        return Outreach.open(f"sqlite:///{tmp_path / 'outreach.db'}", dispatch=True, clock=outreach_clock)

    engine = opened()
    app = make_app(engine, shop)
    async with app.router.lifespan_context(app):
        workspace = await engine.workspaces.create(NewWorkspace(name="Shop", default_region="US"))
        order(shop, workspace, "b1", 4)
        shop.ask("INSERT INTO staff VALUES ('boss', ?, 1)", workspace.id)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
            shipped = await client.post("/batches/b1/ship", json={"per_minute": 1}, headers=BOSS)
    engine = opened()
    app = make_app(engine, shop)
    async with app.router.lifespan_context(app):
        await campaign_ended(engine, await engine.campaigns.get(workspace.id, shipped.json()["campaign"]))
        await anyio.sleep(5)
    ended = "SELECT order_number FROM notices WHERE kind = 'RecipientEnded' ORDER BY 1"
    assert shop.ask(ended) == [("b1-0",), ("b1-1",), ("b1-2",), ("b1-3",)]
