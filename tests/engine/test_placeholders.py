from __future__ import annotations

import json

import pytest

from outreach import (
    FlowStep,
    NewAgent,
    NewCallCampaign,
    NewFlow,
    NewRecipient,
    NewSmsCampaign,
    Outreach,
    SmsSettingsUpdate,
    Workspace,
)
from outreach.errors import CannotStart
from outreach.models.campaign import CampaignCreated
from outreach.services.contacts import MAX_NAMES, VariableNameCollector, prepare_recipient
from tests.engine.rig import given_workspace

pytestmark = pytest.mark.virtual_time

PEOPLE = [
    NewRecipient(phone_number="+14155550101", first_name="Ann", custom_variables={"Slot": "9:00"}),
    NewRecipient(phone_number="+14155550102", custom_variables={" Plan ": "pro", "größe": None}),
    NewRecipient(phone_number="+14155550103"),
]


async def create(
    engine: Outreach, workspace: Workspace, text: str | None, flow_id: str | None = None
) -> CampaignCreated:
    """Make an SMS campaign that is ready."""
    new = NewSmsCampaign(
        name="Spring",
        body=text,
        message_source="custom" if flow_id is None else "flow",
        flow_id=flow_id,
        carrier="twilio",
        from_number="+14155550199",
    )
    return await engine.campaigns.create_sms(workspace.id, new, PEOPLE)


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("Hi {{first_name}} {{last_name}} {{email}} {{company}} {{phone_number}}", ()),
        ("{{Slot}} {{Plan}} {{größe}}", ()),
        ("Hi {{first_nam}} {{slot}} {{first_nam}}", ("first_nam", "slot")),
        ("Hi {{first_nam|there}} {{nick|}}", ()),
        ("Hi", ()),
    ],
)
async def test_names_that_nothing_fills_are_reported_at_creation(
    engine: Outreach, text: str, unknown: tuple[str, ...]
) -> None:
    """No field, no variable of any of the contacts; a fallback fills."""
    workspace = await given_workspace(engine)
    created = await create(engine, workspace, text)
    assert created.unknown_placeholders == unknown
    assert created.campaign.status == "ready"
    stored = await engine.campaigns.get(workspace.id, created.campaign.id)
    assert stored.variable_names == ("Plan", "Slot", "größe")


async def test_a_declared_variable_is_known(engine: Outreach) -> None:
    """The workspace says that it means it, with or without a value."""
    workspace = await given_workspace(engine)
    await engine.sms_settings.update(workspace.id, SmsSettingsUpdate(custom_variables=["voucher"]))
    assert (await create(engine, workspace, "{{voucher}}")).unknown_placeholders == ()


async def test_every_message_of_a_flow_is_looked_at(engine: Outreach) -> None:
    """In the order of its steps."""
    workspace = await given_workspace(engine)
    steps = [
        FlowStep(kind="send", body="{{Slot}} {{one}}"),
        FlowStep(kind="wait", wait_minutes=5),
        FlowStep(kind="send", body="{{two}} {{one}}"),
    ]
    flow = await engine.flows.create(workspace.id, NewFlow(name="F", steps=steps))
    assert (await create(engine, workspace, None, flow.id)).unknown_placeholders == ("one", "two")


async def test_a_campaign_with_blanks_starts_only_where_that_is_allowed(engine: Outreach) -> None:
    """`Hi ` goes to nobody by a slip; what is corrected, or meant, starts."""
    workspace = await given_workspace(engine)
    slip = (await create(engine, workspace, "Hi {{first_nam}}")).campaign
    with pytest.raises(CannotStart) as caught:
        await engine.campaigns.start(workspace.id, slip.id)
    assert [detail.path for detail in caught.value.details] == ["placeholders"]
    assert caught.value.reasons == ("No value for {{first_nam}}: a blank would be sent in its place.",)
    started = await engine.campaigns.start(workspace.id, slip.id, allow_unknown_placeholders=True)
    assert started.status == "active"
    declared = (await create(engine, workspace, "Hi {{nick}}")).campaign
    await engine.sms_settings.update(workspace.id, SmsSettingsUpdate(custom_variables=["nick"]))
    assert (await engine.campaigns.start(workspace.id, declared.id)).status == "active"


async def test_the_placeholders_of_an_agent_are_looked_at_too(engine: Outreach) -> None:
    """An agent would say a blank; the engine's own variables are filled by the engine."""
    workspace = await given_workspace(engine)
    agent = await engine.agents.create(
        workspace.id, NewAgent(name="Ada", placeholders=["Slot", "offer", "_ivr_navigation"])
    )
    new = NewCallCampaign(name="Calls", agent_id=agent.id)
    created = await engine.campaigns.create_call(workspace.id, new, PEOPLE)
    assert created.unknown_placeholders == ("offer",)
    with pytest.raises(CannotStart, match="offer"):
        await engine.campaigns.start(workspace.id, created.campaign.id)
    any_agent = await engine.agents.create(workspace.id, NewAgent(name="Bob"))
    new = NewCallCampaign(name="Calls", agent_id=any_agent.id)
    assert (await engine.campaigns.create_call(workspace.id, new, PEOPLE)).unknown_placeholders == ()


def test_too_many_names_are_not_known() -> None:
    """Contacts that have each their own are no list with columns; nothing is told wrongly then."""
    names = VariableNameCollector()
    names.see(
        [
            prepare_recipient(
                NewRecipient(phone_number="1", custom_variables={str(n): n for n in range(MAX_NAMES)}), None
            )
        ]
    )
    assert len(names.names() or ()) == MAX_NAMES
    names.see([prepare_recipient(NewRecipient(phone_number="1", custom_variables={"one more": 1}), None)])
    assert names.names() is None
    names.see([prepare_recipient(NewRecipient(phone_number="1", custom_variables={"x": 1}), None)])
    assert names.names() is None


async def test_nothing_is_reported_where_the_names_are_not_known(engine: Outreach) -> None:
    """Who has too many, and who was loaded by an earlier version."""
    workspace = await given_workspace(engine)
    many = [NewRecipient(phone_number="+14155550101", custom_variables={str(n): n for n in range(MAX_NAMES + 1)})]
    new = NewSmsCampaign(name="C", body="Hi {{x}}", carrier="twilio", from_number="+14155550199")
    created = await engine.campaigns.create_sms(workspace.id, new, many)
    assert (created.campaign.variable_names, created.unknown_placeholders) == (None, ())
    assert (await engine.campaigns.start(workspace.id, created.campaign.id)).status == "active"


def test_awkward_names_are_gathered_as_they_are() -> None:
    """Names from spreadsheets hold anything that JSON holds."""
    names = VariableNameCollector()
    awkward = {'a"b': 1, "c,d": [{"inner": 1}], "e\\f": {"g": 2}, "": 3, "|": 4}
    names.see([prepare_recipient(NewRecipient(phone_number="1", custom_variables=awkward), None)])
    assert set(names.names() or ()) == set(json.loads(json.dumps(awkward)))
