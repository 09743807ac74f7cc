from __future__ import annotations

import json
from typing import Any

import pytest

from outreach import (
    CampaignUpdate,
    FlowStep,
    NewAgent,
    NewCallCampaign,
    NewFlow,
    NewMessage,
    NewRecipient,
    NewSmsCampaign,
    Outreach,
    SmsSettingsUpdate,
    Workspace,
)
from outreach.errors import CannotStart
from outreach.ledger.campaigns.adding import MAX_NAMES
from outreach.models.campaign import CampaignCreated
from outreach.services.campaigns.contacts import VariableNameCollector, prepare_recipient
from outreach.storage.sqlite.memory import MemoryStorage
from tests.engine.calling import CALLS, given_agent, given_calls
from tests.engine.rig import dispatching, given_campaign, given_workspace, reaches, until_true

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
    engine: Outreach, workspace: Workspace, text: str, unknown: tuple[str, ...]
) -> None:
    """No field, no variable of any of the contacts; a fallback fills."""
    created = await create(engine, workspace, text)
    assert created.unknown_placeholders == unknown
    assert created.campaign.status == "ready"
    stored = await engine.campaigns.get(workspace.id, created.campaign.id)
    assert stored.variable_names == ("Plan", "Slot", "größe")


async def test_a_declared_variable_is_known(engine: Outreach, workspace: Workspace) -> None:
    """The workspace says that it means it, with or without a value."""
    await engine.sms_settings.update(workspace.id, SmsSettingsUpdate(custom_variables=["voucher"]))
    assert (await create(engine, workspace, "{{voucher}}")).unknown_placeholders == ()


async def test_every_message_of_a_flow_is_looked_at(engine: Outreach, workspace: Workspace) -> None:
    """In the order of its steps."""
    steps = [
        FlowStep(kind="send", body="{{Slot}} {{one}}"),
        FlowStep(kind="wait", wait_minutes=5),
        FlowStep(kind="send", body="{{two}} {{one}}"),
    ]
    flow = await engine.flows.create(workspace.id, NewFlow(name="F", steps=steps))
    assert (await create(engine, workspace, None, flow.id)).unknown_placeholders == ("one", "two")


async def test_a_campaign_with_blanks_starts_only_where_that_is_allowed(engine: Outreach, workspace: Workspace) -> None:
    """`Hi ` goes to nobody by a slip; what is corrected, or meant, starts."""
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


async def test_the_placeholders_of_an_agent_are_looked_at_too(engine: Outreach, workspace: Workspace) -> None:
    """An agent would say a blank; the engine's own variables are filled by the engine."""
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


LISTED = [
    NewRecipient(phone_number="+14155550101", first_name="Ann", custom_variables={"Plan": "pro"}),
    NewRecipient(phone_number="+14155550102", custom_variables={"Plan": "pro"}),
]


@pytest.mark.parametrize("flow", [False, True])
async def test_a_text_names_the_columns_that_fields_came_from(flow: bool) -> None:
    """As the campaign keeps them; what is sent, tried and foreseen is the same."""
    async with dispatching(MemoryStorage()) as rig:
        workspace = await given_workspace(rig.engine)
        text = "Hallo {{Vorname|du}}, {{Plan}}"
        steps = [FlowStep(kind="send", body=text)]
        made_flow = await rig.engine.flows.create(workspace.id, NewFlow(name="F", steps=steps))
        source: dict[str, Any] = {"message_source": "flow", "flow_id": made_flow.id, "body": None} if flow else {}
        campaign = await given_campaign(
            rig.engine, workspace, LISTED, csv_column_headers=("Telefon", "Vorname", "Plan"), **{"body": text, **source}
        )
        foreseen = await rig.engine.campaigns.preflight(workspace.id, campaign.id)
        assert (foreseen.unknown_placeholders, foreseen.placeholder_problems) == ((), ())
        texts = [one.messages[0].text for one in foreseen.samples]
        await rig.engine.campaigns.start(workspace.id, campaign.id)
        await reaches(rig.engine, campaign, "completed")
        assert [one.body for one in rig.carrier.requests] == texts
        assert [one.splitlines()[0] for one in texts] == ["Hallo Ann, pro", "Hallo du, pro"]


async def test_an_agent_gets_the_columns_that_it_expects() -> None:
    """By their own names, beside the names of the fields; who has none is counted before the start."""
    async with dispatching(MemoryStorage(), config=CALLS) as rig:
        workspace = await given_workspace(rig.engine)
        agent = await given_agent(rig.engine, workspace, placeholders=["Vorname", "Plan"])
        campaign = await given_calls(
            rig.engine, workspace, LISTED, agent_id=agent, csv_column_headers=("Telefon", "Vorname", "Plan")
        )
        foreseen = await rig.engine.campaigns.preflight(workspace.id, campaign.id)
        checked = await rig.engine.campaigns.check_start(workspace.id, campaign.id)
        for problems in (foreseen.placeholder_problems, checked.placeholder_problems):
            assert [(one.name, one.count) for one in problems] == [("Vorname", 1)]
        await rig.engine.campaigns.start(workspace.id, campaign.id)
        await until_true(lambda: len(rig.voice.requests) == len(LISTED))
        assert [one.variables.get("Vorname") for one in rig.voice.requests] == ["Ann", None]


async def test_texts_and_contacts_of_a_program_are_composed(engine: Outreach, workspace: Workspace) -> None:
    """Also where the program is no list: names, values, headers and the text."""
    people = [
        NewRecipient(
            phone_number="+14155550101",
            first_name="Jose\u0301",
            custom_variables={"Gro\u0308\u00dfe": ["Pen\u0303a\n\u0303", {"e\u0301": 1}]},
        )
    ]
    campaign = await given_campaign(
        engine, workspace, people, body="{{Gr\u00f6\u00dfe}} e\u0301", csv_column_headers=("Gro\u0308\u00dfe",)
    )
    assert campaign.body == "{{Gr\u00f6\u00dfe}} \u00e9"
    assert campaign.csv_column_headers == ("Gr\u00f6\u00dfe",)
    assert campaign.variable_names == ("Gr\u00f6\u00dfe",)
    (contact,) = [one async for one in engine.campaigns.iter_recipients(workspace.id, campaign.id)]
    assert contact.first_name == "Jos\u00e9"
    assert contact.custom_variables == {"Gr\u00f6\u00dfe": ["Pe\u00f1a\n\u0303", {"\u00e9": 1}]}
    changed = await engine.campaigns.update(workspace.id, campaign.id, CampaignUpdate(body="e\u0301"))
    assert changed.body == "\u00e9"
    message = await engine.messages.send(
        workspace.id, NewMessage(to="+14155550102", body="e\u0301", from_number="+14155550199", carrier="twilio")
    )
    assert (message.body, message.segments) == ("\u00e9", 1)


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


async def test_nothing_is_reported_where_the_names_are_not_known(engine: Outreach, workspace: Workspace) -> None:
    """Who has too many, and who was loaded by an earlier version."""
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
