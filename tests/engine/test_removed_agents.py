from __future__ import annotations

import pytest

from outreach import AgentUpdate, Conflict, NewAgent, NewCall, NewCallCampaign, NotFound, Outreach
from tests.engine.rig import contacts, given_workspace

pytestmark = pytest.mark.virtual_time


async def test_a_removed_agent_is_gone_and_stays_in_what_is_over(engine: Outreach) -> None:
    """Nobody finds it, changes it or calls with it; the campaign that it called for still names it."""
    workspace = await given_workspace(engine)
    agent = await engine.agents.create(workspace.id, NewAgent(name="Ada"), idempotency_key="ada")
    other = await engine.agents.create(workspace.id, NewAgent(name="Bob"))
    new = NewCallCampaign(name="Renewals", agent_id=agent.id)
    campaign = (await engine.campaigns.create_call(workspace.id, new, contacts(1))).campaign
    await engine.campaigns.cancel(workspace.id, campaign.id)
    gone = await engine.agents.remove(workspace.id, agent.id, actor="cli:ann")
    assert (gone.id, gone.is_active) == (agent.id, False)
    assert gone.removed_at is not None
    assert list(await engine.agents.list(workspace.id)) == [other]
    for asked in (
        engine.agents.get(workspace.id, agent.id),
        engine.agents.update(workspace.id, agent.id, AgentUpdate(name="Eve")),
        engine.agents.remove(workspace.id, agent.id),
        engine.agents.create(workspace.id, NewAgent(name="Ada"), idempotency_key="ada"),
        engine.calls.create(workspace.id, NewCall(agent_id=agent.id, to="+14155550101")),
        engine.campaigns.create_call(workspace.id, new, contacts(1)),
        engine.campaigns.clone(workspace.id, campaign.id),
    ):
        with pytest.raises(NotFound, match="agent"):
            await asked
    kept = await engine.campaigns.get(workspace.id, campaign.id)
    assert (kept.agent_id, kept.agent and kept.agent.name) == (agent.id, "Ada")
    entry = (await engine.audit.list(workspace.id)).items[0]
    assert (entry.action, entry.actor, entry.subject) == ("agent.remove", "cli:ann", agent.id)


async def test_an_agent_in_use_is_not_removed(engine: Outreach) -> None:
    """By a campaign that has not ended, a draft too, or by a call; the error names what uses it, and what to do."""
    workspace = await given_workspace(engine)
    agent = await engine.agents.create(workspace.id, NewAgent(name="Ada"))
    call = await engine.calls.create(workspace.id, NewCall(agent_id=agent.id, to="+14155550101"))
    with pytest.raises(Conflict, match=f"Agent 'Ada' is in use by call {call.id}"):
        await engine.agents.remove(workspace.id, agent.id)
    busy = await engine.agents.create(workspace.id, NewAgent(name="Bob", is_active=False))
    new = NewCallCampaign(name="Renewals", agent_id=busy.id)
    await engine.campaigns.create_call(workspace.id, new, contacts(1))
    with pytest.raises(Conflict, match=r"in use by campaign 'Renewals' \(draft\)\. Cancel that campaign"):
        await engine.agents.remove(workspace.id, busy.id)
    assert len(await engine.agents.list(workspace.id)) == 2
