"""A contact's text, sent to oneself."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from outreach import (
    Conflict,
    FlowStep,
    InvalidRequest,
    NewAgent,
    NewCallCampaign,
    NewFlow,
    NewRecipient,
    NotFound,
    Outreach,
    Workspace,
)
from outreach.errors import RecipientUnsubscribed
from outreach.models import BusinessHours, NewTestMessage, TimeWindow, WorkspaceUpdate
from outreach.models.settings import DAYS, SmsSettingsUpdate
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.testing.clock import ShiftedClock
from tests.engine.rig import dispatching, given_campaign, given_workspace, people, reaches, until

pytestmark = pytest.mark.virtual_time

MINE = "+14155550142"
ANA = NewRecipient(phone_number="(415) 555-0101", first_name="Ana", custom_variables={"city": "Rome"})
NIGHT_IN_NEW_YORK = datetime(2026, 7, 1, 6, tzinfo=UTC)


async def test_it_arrives_as_the_contact_would_get_it_and_counts_nowhere() -> None:
    """With the footer, from the campaign's number; then the contact, and the same number as a contact, get theirs."""
    async with dispatching(MemoryStorage(clock=ShiftedClock())) as rig:
        engine = rig.engine
        workspace = await given_workspace(engine)
        await engine.workspaces.update(workspace.id, WorkspaceUpdate(frequency_cap=1))
        mine = NewRecipient(phone_number=MINE, first_name="Me")
        campaign = await given_campaign(engine, workspace, [ANA, mine], body="Hi {{first_name}} in {{city|town}}")
        before = await engine.campaigns.get(workspace.id, campaign.id)
        sent = await engine.messages.send_test(
            workspace.id, campaign.id, NewTestMessage(contact="415-555-0101", to=MINE)
        )
        assert (sent.purpose, sent.body, sent.segments) == ("test", "Hi Ana in Rome\nReply STOP to opt out", 1)
        assert (sent.to, sent.from_number) == (MINE, campaign.from_number)
        await until(lambda: engine.messages.get(workspace.id, sent.id), lambda found: found.status == "accepted")
        assert [one.to for one in rig.carrier.requests] == [MINE]
        assert await engine.campaigns.get(workspace.id, campaign.id) == before
        assert await engine.campaigns.count_dispatches(workspace.id, campaign.id) == []
        await engine.campaigns.start(workspace.id, campaign.id)
        await reaches(engine, campaign, "completed")
        assert [one.attempts for one in await people(engine, campaign)] == [1, 1]
        assert [one.action for one in await engine.audit.list(workspace.id)].count("campaign.test") == 1


async def test_it_has_the_plain_characters_that_the_contact_gets() -> None:
    """The test, the request for the contact and its record have the same text."""
    async with dispatching(MemoryStorage(clock=ShiftedClock())) as rig:
        engine = rig.engine
        workspace = await given_workspace(engine)
        body = "Hi {{first_name}} \u2013 it\u2019s open"
        campaign = await given_campaign(engine, workspace, [ANA], body=body, replace_characters=True)
        sent = await engine.messages.send_test(
            workspace.id, campaign.id, NewTestMessage(contact=ANA.phone_number, to=MINE)
        )
        plain = "Hi Ana - it's open\nReply STOP to opt out"
        await engine.campaigns.start(workspace.id, campaign.id)
        await reaches(engine, campaign, "completed")
        (dispatch,) = await engine.campaigns.list_dispatches(workspace.id, campaign.id, 0)
        assert {sent.body, dispatch.body, *(one.body for one in rig.carrier.requests)} == {plain}
        assert (await engine.campaigns.get(workspace.id, campaign.id)).body == body


async def test_the_register_holds_for_it(engine: Outreach, workspace: Workspace) -> None:
    """Of the number that it goes to, not of the contact."""
    campaign = await given_campaign(engine, workspace, [ANA])
    await engine.unsubscribes.add(workspace.id, ANA.phone_number)
    await engine.messages.send_test(workspace.id, campaign.id, NewTestMessage(contact=ANA.phone_number, to=MINE))
    await engine.unsubscribes.add(workspace.id, MINE)
    with pytest.raises(RecipientUnsubscribed):
        await engine.messages.send_test(workspace.id, campaign.id, NewTestMessage(contact=ANA.phone_number, to=MINE))


@pytest.mark.parametrize("contact_hours", [True, False])
async def test_hours_hold_for_it_unless_it_is_asked_otherwise(contact_hours: bool) -> None:
    """Those of the campaign, and the contact hours of the number that it goes to."""
    clock = ShiftedClock(NIGHT_IN_NEW_YORK)
    window = TimeWindow(start_minute=9 * 60, end_minute=17 * 60)
    hours = BusinessHours(
        enabled=True, timezone="America/New_York", schedule=dict.fromkeys(DAYS, (window,)), batch_concurrency=1
    )
    async with Outreach(MemoryStorage(clock=clock), clock=clock) as engine:
        workspace = await given_workspace(engine)
        await engine.workspaces.update(workspace.id, WorkspaceUpdate(contact_hours=contact_hours))
        changes: dict[str, Any] = {} if contact_hours else {"business_hours": hours}
        campaign = await given_campaign(engine, workspace, [ANA], **changes)
        told = "from 2026-07-01 12:00 UTC" if contact_hours else "closed until 2026-07-01 09:00 America/New_York"
        with pytest.raises(Conflict, match=told):
            await engine.messages.send_test(
                workspace.id, campaign.id, NewTestMessage(contact=ANA.phone_number, to="+12125550100")
            )
        if contact_hours:
            with pytest.raises(Conflict, match="time zone is unknown"):
                await engine.messages.send_test(
                    workspace.id, campaign.id, NewTestMessage(contact=ANA.phone_number, to="+999123456")
                )
        sent = await engine.messages.send_test(
            workspace.id, campaign.id, NewTestMessage(contact=ANA.phone_number, to="+12125550100", at_any_hour=True)
        )
        assert sent.status == "queued"


async def test_any_message_of_a_flow_can_be_tried(engine: Outreach, workspace: Workspace) -> None:
    """Counted from 1, waits left out."""
    steps = (
        FlowStep(kind="send", body="One"),
        FlowStep(kind="wait", wait_minutes=5),
        FlowStep(kind="send", body="Two {{first_name}}"),
    )
    flow = await engine.flows.create(workspace.id, NewFlow(name="Flow", steps=steps))
    campaign = await given_campaign(engine, workspace, [ANA], body=None, message_source="flow", flow_id=flow.id)
    sent = await engine.messages.send_test(
        workspace.id, campaign.id, NewTestMessage(contact=ANA.phone_number, to=MINE, message=2)
    )
    assert sent.body.startswith("Two Ana\n")
    with pytest.raises(InvalidRequest, match="has 2 messages"):
        await engine.messages.send_test(
            workspace.id, campaign.id, NewTestMessage(contact=ANA.phone_number, to=MINE, message=3)
        )
    single = await given_campaign(engine, workspace, [ANA])
    with pytest.raises(InvalidRequest, match=r"has 1 message$"):
        await engine.messages.send_test(
            workspace.id, single.id, NewTestMessage(contact=ANA.phone_number, to=MINE, message=2)
        )


async def test_what_cannot_be_sent_is_said(engine: Outreach, workspace: Workspace) -> None:
    """An empty text, one over the cap, a contact that is not there, a number that is none, and calls."""
    await engine.sms_settings.update(workspace.id, SmsSettingsUpdate(max_segments=1))
    nobody = NewRecipient(phone_number="+14155550102")
    long = NewRecipient(phone_number="not a number", first_name="x" * 200)
    campaign = await given_campaign(engine, workspace, [ANA, nobody, long], body="{{first_name}}")
    for contact, to, error in (
        (nobody.phone_number, MINE, "contact: gets an empty text"),
        (long.phone_number, MINE, "contact: gets a text over the segment cap"),
        (ANA.phone_number, "me", "to: is not a phone number"),
    ):
        with pytest.raises(InvalidRequest, match=error):
            await engine.messages.send_test(workspace.id, campaign.id, NewTestMessage(contact=contact, to=to))
    with pytest.raises(NotFound):
        await engine.messages.send_test(workspace.id, campaign.id, NewTestMessage(contact="+14155550777", to=MINE))
    agent = await engine.agents.create(workspace.id, NewAgent(name="Ada", provider="simulator", direction="outbound"))
    calls = await engine.campaigns.create_call(workspace.id, NewCallCampaign(name="C", agent_id=agent.id), [ANA])
    with pytest.raises(Conflict, match="no messages"):
        await engine.messages.send_test(
            workspace.id, calls.campaign.id, NewTestMessage(contact=ANA.phone_number, to=MINE)
        )
