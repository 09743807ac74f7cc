from __future__ import annotations

from typing import Any

import pytest

from outreach import CampaignUpdate, Conflict, EngineConfig, FlowStep, InvalidRequest, NewFlow, NotFound, Outreach
from outreach.models import FlowUpdate
from outreach.models.campaign import Campaign
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.conftest import OpenStorage
from tests.engine.rig import dispatching, given_campaign, given_workspace, until

pytestmark = pytest.mark.virtual_time

HELLO = FlowStep(kind="send", body="Hello {{first_name}}")
WAIT = FlowStep(kind="wait", wait_minutes=60)
AGAIN = FlowStep(kind="send", body="Are you there?")


async def given_flow_campaign(engine: Outreach, *steps: FlowStep, count: int = 3, **changes: Any) -> Campaign:
    """Create a campaign that a flow drives, ready to start."""
    workspace = await given_workspace(engine)
    flow = await engine.flows.create(workspace.id, NewFlow(name="Reminder", steps=steps))
    return await given_campaign(engine, workspace, count, message_source="flow", flow_id=flow.id, **changes)


@pytest.mark.parametrize(
    "steps",
    [
        [],
        [WAIT],
        [HELLO] * 51,
        [FlowStep(kind="send", body=" ")],
        [HELLO, FlowStep(kind="wait", wait_minutes=0)],
        [HELLO, FlowStep(kind="wait")],
    ],
)
def test_a_flow_is_checked_when_it_is_made(steps: list[FlowStep]) -> None:
    """What could not be run is refused."""
    with pytest.raises(InvalidRequest):
        NewFlow(name="Reminder", steps=steps)


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        (FlowStep(kind="send", body="Hi\x00"), "must not contain NUL or half of a surrogate pair"),
        (FlowStep(kind="send", body="\ud800"), "must not contain NUL or half of a surrogate pair"),
        (FlowStep(kind="wait", wait_minutes=5, body="\x00"), "must not contain NUL or half of a surrogate pair"),
        (FlowStep(kind="send", body="x" * 1601), "must have 1 to 1600 characters, has 1601"),
    ],
)
def test_a_text_that_cannot_be_kept_is_named_with_its_step(step: FlowStep, problem: str) -> None:
    """docs/interface.md#text: what cannot be stored everywhere is refused where it comes in."""
    with pytest.raises(InvalidRequest) as raised:
        NewFlow(name="Reminder", steps=[HELLO, step])
    assert [(detail.path, detail.message) for detail in raised.value.details] == [("steps[1].body", problem)]


async def test_a_flow_is_not_in_use_by_a_campaign_that_got_a_text_instead(engine: Outreach) -> None:
    """As the refusal to remove it advises; a copy of that campaign needs no flow either."""
    campaign = await given_flow_campaign(engine, HELLO, WAIT, FlowStep(kind="stop_if_replied"), AGAIN)
    workspace_id, flow_id = campaign.workspace_id, campaign.flow_id
    assert flow_id is not None
    with pytest.raises(Conflict, match="give it a text"):
        await engine.flows.remove(workspace_id, flow_id)
    await engine.campaigns.update(workspace_id, campaign.id, CampaignUpdate(body="Hello"))
    await engine.campaigns.start(workspace_id, campaign.id)
    await engine.flows.update(workspace_id, flow_id, FlowUpdate(steps=(AGAIN,)))
    await engine.flows.remove(workspace_id, flow_id)
    copy = (await engine.campaigns.clone(workspace_id, campaign.id)).campaign
    assert (copy.status, copy.body, copy.message_source) == ("ready", "Hello", "custom")


async def test_contacts_are_counted_at_each_step(open_storage: OpenStorage) -> None:
    """Those in a wait stand at the wait, those to come at the first step, and those who have ended nowhere."""
    minute = FlowStep(kind="wait", wait_minutes=1)
    async with dispatching(open_storage(clock_of_loop()), config=EngineConfig()) as rig:
        engine = rig.engine
        campaign = await given_flow_campaign(engine, HELLO, minute, AGAIN, minute, count=3)
        workspace_id, flow_id = campaign.workspace_id, campaign.flow_id
        assert flow_id is not None

        async def counts() -> list[int]:
            found = await engine.flows.count_contacts(workspace_id, flow_id)
            assert [one.step for one in found] == [0, 1, 2, 3]
            return [one.contacts for one in found]

        async def are(*wanted: int) -> bool:
            return await counts() == list(wanted)

        assert await counts() == [3, 0, 0, 0]
        await engine.campaigns.skip_recipient(workspace_id, campaign.id, 0)
        await engine.campaigns.start(workspace_id, campaign.id)
        await until(lambda: are(0, 2, 0, 0))
        await until(lambda: are(0, 0, 0, 2), timeout_seconds=90)
        await engine.campaigns.cancel(workspace_id, campaign.id)
        await until(lambda: are(0, 0, 0, 0))
        other = await given_workspace(engine)
        with pytest.raises(NotFound):
            await engine.flows.count_contacts(other.id, flow_id)
