from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from outreach import (
    AgentUpdate,
    EngineConfig,
    InvalidRequest,
    NewAgent,
    NewCallCampaign,
    NewFlow,
    NewRecipient,
    NewSmsCampaign,
    NewTrunk,
    NotFound,
    Outreach,
    Workspace,
)
from outreach.errors import CannotStart
from outreach.events import CampaignStatusChanged
from outreach.models import FlowStep
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.conftest import OpenStorage
from tests.engine.rig import contacts, given_workspace

pytestmark = pytest.mark.virtual_time


async def given_calls(engine: Outreach, workspace: Workspace, agent_id: str) -> str:
    """Create a calling campaign and return its identifier."""
    new = NewCallCampaign(name="Renewals", agent_id=agent_id)
    return (await engine.campaigns.create_call(workspace.id, new, contacts(1))).campaign.id


async def status_of(engine: Outreach, workspace: Workspace, campaign_id: str) -> str:
    """Return a campaign's status."""
    return (await engine.campaigns.get(workspace.id, campaign_id)).status


@pytest.mark.parametrize(
    ("lacking", "fixed"),
    [
        ({"is_active": False}, AgentUpdate(is_active=True)),
        ({"direction": "inbound"}, AgentUpdate(allow_outbound=True)),
    ],
)
async def test_an_agent_that_may_call_makes_its_drafts_ready(
    engine: Outreach, workspace: Workspace, lacking: dict[str, str], fixed: AgentUpdate
) -> None:
    """docs/interface.md#campaigns: ready when its agent is active and may call out."""
    agent = await engine.agents.create(workspace.id, NewAgent(name="Ada", **lacking))  # type: ignore[arg-type]
    other = await engine.agents.create(workspace.id, NewAgent(name="Bob", is_active=False))
    mine = await given_calls(engine, workspace, agent.id)
    foreign = await given_calls(engine, workspace, other.id)
    assert await status_of(engine, workspace, mine) == "draft"
    (obstacle,) = await engine.campaigns.start_problems(workspace.id, mine)
    assert obstacle.path in {"agent.is_active", "agent.allow_outbound"}
    with pytest.raises(CannotStart, match="Its agent 'Ada' is in") as caught:
        await engine.campaigns.start(workspace.id, mine)
    assert caught.value.details == (obstacle,)
    async with engine.events.subscribe(CampaignStatusChanged) as stream:
        await engine.agents.update(workspace.id, agent.id, fixed, actor="cli:ann")
        moved = await anext(stream)
    assert (moved.campaign_id, moved.status, moved.actor) == (mine, "ready", "cli:ann")
    assert await status_of(engine, workspace, mine) == "ready"
    assert await status_of(engine, workspace, foreign) == "draft"
    assert (await engine.campaigns.start(workspace.id, mine)).status == "active"


async def test_an_agent_that_may_not_call_any_more_makes_drafts_of_those_that_have_not_started(
    engine: Outreach,
    workspace: Workspace,
) -> None:
    """And ready ones again as it may; what has started, or is over, keeps its state."""
    agent = await engine.agents.create(workspace.id, NewAgent(name="Ada"))
    ready, active, over = [await given_calls(engine, workspace, agent.id) for _ in range(3)]
    await engine.campaigns.start(workspace.id, active)
    await engine.campaigns.cancel(workspace.id, over)
    campaigns = (ready, active, over)
    await engine.agents.update(workspace.id, agent.id, AgentUpdate(is_active=False))
    assert [await status_of(engine, workspace, one) for one in campaigns] == ["draft", "active", "cancelled"]
    await engine.agents.update(workspace.id, agent.id, AgentUpdate(is_active=True, name="Eve"))
    assert [await status_of(engine, workspace, one) for one in campaigns] == ["ready", "active", "cancelled"]


@pytest.mark.parametrize(("before", "after", "status"), [(False, True, "ready"), (True, False, "draft")])
async def test_an_agents_change_while_a_campaign_is_loaded_counts(
    engine: Outreach, workspace: Workspace, before: bool, after: bool, status: str
) -> None:
    """The state of a new campaign is that of its agent when it becomes visible."""
    agent = await engine.agents.create(workspace.id, NewAgent(name="Ada", is_active=before))

    async def people() -> AsyncIterator[NewRecipient]:
        for one in contacts(2):
            yield one
        await engine.agents.update(workspace.id, agent.id, AgentUpdate(is_active=after))

    new = NewCallCampaign(name="Renewals", agent_id=agent.id)
    created = await engine.campaigns.create_call(workspace.id, new, people())
    assert created.campaign.status == status
    assert [detail.path for detail in created.missing] == ([] if after else ["agent.is_active"])


@pytest.mark.parametrize("uses", ["trunk", "flow"])
async def test_what_was_removed_while_a_campaign_was_loaded_is_not_used(open_storage: OpenStorage, uses: str) -> None:
    """Nobody could see that it was in use; nothing of the campaign stays."""
    clock = clock_of_loop()
    async with Outreach(open_storage(clock), clock=clock, config=EngineConfig(insert_batch_size=2)) as engine:
        workspace = await given_workspace(engine, sms_campaigns_enabled=True)

        async def removing(remove: Callable[[], Awaitable[object]]) -> AsyncIterator[NewRecipient]:
            for one in contacts(5):
                yield one
            await remove()

        if uses == "trunk":
            agent = await engine.agents.create(workspace.id, NewAgent(name="Ada"))
            trunk = await engine.trunks.create(workspace.id, NewTrunk(name="Main", address="sip.example.com"))
            new = NewCallCampaign(name="Renewals", agent_id=agent.id, trunk_id=trunk.id)
            gone = removing(lambda: engine.trunks.remove(workspace.id, trunk.id))
            with pytest.raises(NotFound, match="trunk"):
                await engine.campaigns.create_call(workspace.id, new, gone)
        else:
            flow = await engine.flows.create(
                workspace.id, NewFlow(name="Two", steps=(FlowStep(kind="send", body="Hello"),))
            )
            text = NewSmsCampaign(name="Renewals", message_source="flow", flow_id=flow.id)
            gone = removing(lambda: engine.flows.remove(workspace.id, flow.id))
            with pytest.raises(InvalidRequest, match="flow"):
                await engine.campaigns.create_sms(workspace.id, text, gone)
        assert list(await engine.campaigns.list(workspace.id)) == []
