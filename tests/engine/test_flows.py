from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from outreach import CampaignUpdate, Conflict, FlowStep, InvalidRequest, NewFlow, Outreach
from outreach.models import FlowUpdate
from outreach.models.campaign import Campaign
from outreach.models.states import RecipientStatus
from outreach.storage.sqlite import SqliteStorage
from outreach.testing.clock import ShiftedClock
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.conftest import OpenStorage
from tests.engine.rig import Rig, dispatching, given_campaign, given_workspace, people, reaches, until

pytestmark = pytest.mark.virtual_time

HELLO = FlowStep(kind="send", body="Hello {{first_name}}")
WAIT = FlowStep(kind="wait", wait_minutes=60)
STOP = FlowStep(kind="stop_if_replied")
AGAIN = FlowStep(kind="send", body="Are you there?")
HOUR = timedelta(minutes=61)
FOOTER = "\nReply STOP to opt out"


async def given_flow_campaign(engine: Outreach, *steps: FlowStep, count: int = 3, **changes: Any) -> Campaign:
    """Create a campaign that a flow drives, ready to start."""
    workspace = await given_workspace(engine)
    flow = await engine.flows.create(workspace.id, NewFlow(name="Reminder", steps=steps))
    return await given_campaign(engine, workspace, count, message_source="flow", flow_id=flow.id, **changes)


async def all_wait(rig: Rig, campaign: Campaign) -> None:
    """Wait until every recipient is within a wait of its flow."""

    async def there() -> bool:
        return all(one.reason == "flow_wait" for one in await people(rig.engine, campaign))

    await until(there)


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
    campaign = await given_flow_campaign(engine, HELLO, WAIT, AGAIN)
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


async def test_who_has_replied_gets_no_second_message(open_storage: OpenStorage) -> None:
    """docs/rules.md#flows: a reply since the start stops; one from before it does not."""
    clock = ShiftedClock()
    async with dispatching(open_storage(clock), clock=clock) as rig:
        campaign = await given_flow_campaign(rig.engine, HELLO, WAIT, STOP, AGAIN)
        workspace_id = campaign.workspace_id
        await rig.engine.messages.receive(workspace_id, from_number="+14155550000", to="+14155550199", body="Early")
        clock.shift(timedelta(seconds=1))
        await rig.engine.campaigns.start(workspace_id, campaign.id)
        await all_wait(rig, campaign)
        await rig.engine.messages.receive(workspace_id, from_number="4155550001", to="+14155550199", body="Yes")
        await rig.engine.unsubscribes.add(workspace_id, "+14155550002")
        clock.shift(HOUR)
        done = await reaches(rig.engine, campaign, "completed")
        assert [(one.status, one.reason) for one in await people(rig.engine, campaign)] == [
            (RecipientStatus.COMPLETED, None),
            (RecipientStatus.COMPLETED, "replied"),
            (RecipientStatus.SKIPPED, "opted_out"),
        ]
        assert sorted((message.to[-1], message.body) for message in rig.carrier.requests) == [
            ("0", "Are you there?" + FOOTER),
            ("0", "Hello N0" + FOOTER),
            ("1", "Hello N1" + FOOTER),
            ("2", "Hello N2" + FOOTER),
        ]
        assert (done.counters.completed, done.counters.successful) == (3, 3)


@pytest.mark.parametrize(
    ("way", "status"), [("cancelled", RecipientStatus.CANCELED), ("expired", RecipientStatus.EXPIRED)]
)
async def test_a_campaign_that_ends_during_a_wait_sends_no_more(
    open_storage: OpenStorage, way: str, status: RecipientStatus
) -> None:
    """docs/states.md#recipients: open recipients close with their campaign; what was sent still counts."""
    clock = ShiftedClock()
    async with dispatching(open_storage(clock), clock=clock) as rig:
        expiry = clock_of_loop().now() + timedelta(minutes=30)
        changes: dict[str, Any] = {"scheduled_expires_at": expiry} if way == "expired" else {}
        campaign = await given_flow_campaign(rig.engine, HELLO, WAIT, AGAIN, **changes)
        await rig.engine.campaigns.start(campaign.workspace_id, campaign.id)
        await all_wait(rig, campaign)
        if way == "cancelled":
            await rig.engine.campaigns.cancel(campaign.workspace_id, campaign.id)
        clock.shift(HOUR)

        async def closed() -> bool:
            return {one.status for one in await people(rig.engine, campaign)} == {status}

        await until(closed)
        done = await reaches(rig.engine, campaign, way)
        assert (len(rig.carrier.requests), done.counters.completed, done.counters.successful) == (3, 3, 3)


async def test_a_wait_survives_a_restart(tmp_path: Path) -> None:
    """docs/rules.md#flows: the due time of a wait is stored."""
    clock = ShiftedClock()
    async with dispatching(SqliteStorage(tmp_path / "flow.db", clock=clock), clock=clock) as rig:
        campaign = await given_flow_campaign(rig.engine, HELLO, WAIT, AGAIN)
        await rig.engine.campaigns.start(campaign.workspace_id, campaign.id)
        await all_wait(rig, campaign)
        before = await people(rig.engine, campaign)
    later = ShiftedClock(clock_of_loop().now() + timedelta(minutes=1))
    async with dispatching(SqliteStorage(tmp_path / "flow.db", clock=later), clock=later) as rig:
        assert await people(rig.engine, campaign) == before
        later.shift(HOUR)
        await reaches(rig.engine, campaign, "completed")
        assert [message.body for message in rig.carrier.requests] == ["Are you there?" + FOOTER] * 3
