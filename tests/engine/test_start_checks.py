from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from outreach import (
    Campaign,
    CampaignUpdate,
    FlowStep,
    NewAgent,
    NewCallCampaign,
    NewFlow,
    NewNumber,
    NewRecipient,
    Outreach,
    SmsSettingsUpdate,
    Workspace,
)
from outreach.errors import CannotStart, InvalidRequest
from outreach.models import StartCheck
from outreach.rules.readiness import CampaignTexts
from outreach.services.campaigns import moves
from tests.engine.rig import contacts, given_campaign, given_workspace

pytestmark = pytest.mark.virtual_time

LONG = "x" * 200
"""Two segments."""


async def given(engine: Outreach, people: int | Sequence[NewRecipient], **changes: Any) -> tuple[Workspace, Campaign]:
    """Make a campaign in a workspace that has its sending number, and whose messages may take one segment."""
    workspace = await given_workspace(engine)
    await engine.numbers.create(workspace.id, NewNumber(phone="+14155550199"))
    await engine.sms_settings.update(workspace.id, SmsSettingsUpdate(max_segments=1))
    return workspace, await given_campaign(engine, workspace, people, **changes)


def named(*names: str) -> list[NewRecipient]:
    """Return contacts with these first names."""
    return [NewRecipient(phone_number=f"+1415555{number:04d}", first_name=name) for number, name in enumerate(names)]


@pytest.mark.parametrize("text", [LONG, "{{first_name}}" + "x" * 160])
async def test_a_text_that_is_too_long_for_everybody_is_refused(engine: Outreach, text: str) -> None:
    """Nothing was started, and the reason names the setting; a higher cap, or a shorter text, lets it start."""
    workspace, campaign = await given(engine, 3, body=text)
    with pytest.raises(CannotStart) as caught:
        await engine.campaigns.start(workspace.id, campaign.id)
    assert [detail.path for detail in caught.value.details] == ["max_segments"]
    assert (await engine.campaigns.get(workspace.id, campaign.id)).status == "ready"
    await engine.sms_settings.update(workspace.id, SmsSettingsUpdate(max_segments=2))
    assert (await engine.campaigns.start(workspace.id, campaign.id)).status == "active"


async def test_the_footer_counts(engine: Outreach) -> None:
    """It goes out with every message."""
    workspace, campaign = await given(engine, 3, body="x" * 150)
    with pytest.raises(CannotStart, match="with the footer"):
        await engine.campaigns.start(workspace.id, campaign.id)
    await engine.sms_settings.update(workspace.id, SmsSettingsUpdate(footer_enabled=False))
    assert (await engine.campaigns.start(workspace.id, campaign.id)).status == "active"


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (SmsSettingsUpdate(footer_text="Acme Ltd, 12 High Street. Reply STOP to opt out"), "footer_text"),
        (SmsSettingsUpdate(max_segments=1), "max_segments"),
    ],
)
async def test_settings_by_which_a_campaign_under_way_would_fit_nobody_are_refused(
    engine: Outreach, change: SmsSettingsUpdate, path: str
) -> None:
    """Everybody who is left would fail. The error names the campaign, and no other one; nothing has changed."""
    workspace = await given_workspace(engine)
    segments = 1 if path == "footer_text" else 2
    before = await engine.sms_settings.update(workspace.id, SmsSettingsUpdate(max_segments=segments))
    text = "x" * (150 * segments - 20)
    running = await given_campaign(engine, workspace, 3, name="Spring", body=text)
    await given_campaign(engine, workspace, 3, name="Draft", body=text)
    short = await given_campaign(engine, workspace, 3, name="Short", body="Hi")
    for campaign in (running, short):
        await engine.campaigns.start(workspace.id, campaign.id)
    with pytest.raises(InvalidRequest) as caught:
        await engine.sms_settings.update(workspace.id, change)
    (problem,) = caught.value.details
    assert problem.path == path
    assert "of campaign 'Spring' (active): shorten" in problem.message
    assert await engine.sms_settings.get(workspace.id) == before
    await engine.campaigns.cancel(workspace.id, running.id)
    await engine.sms_settings.update(workspace.id, change)


async def test_how_many_will_fail_is_reported_and_the_others_are_reached(engine: Outreach) -> None:
    """One that fits is enough for a start; duplicates and impossible numbers are not counted."""
    people = [*named("Ann", LONG, "Bob", LONG), *named("Ann"), NewRecipient(phone_number="nobody")]
    workspace, campaign = await given(engine, people, body="Hi {{first_name}}")
    checked = await engine.campaigns.check_start(workspace.id, campaign.id)
    assert checked == StartCheck(contacts=4, checked=4, failures_by_reason={"over_segment_cap": 2})
    assert (await engine.campaigns.start(workspace.id, campaign.id)).status == "active"


async def test_a_text_that_is_empty_for_everybody_is_refused(engine: Outreach) -> None:
    """It would fail for each of them as well."""
    workspace, campaign = await given(engine, named("", " "), body="{{first_name}}")
    with pytest.raises(CannotStart, match="empty for every contact"):
        await engine.campaigns.start(workspace.id, campaign.id)
    workspace, campaign = await given(engine, named("", "Ann"), body="{{first_name}}")
    checked = await engine.campaigns.check_start(workspace.id, campaign.id)
    assert (checked.failing, dict(checked.failures_by_reason)) == (1, {"empty_message": 1})
    assert (await engine.campaigns.start(workspace.id, campaign.id)).status == "active"


async def test_every_message_of_a_flow_has_to_fit(engine: Outreach) -> None:
    """Who gets the first one and fails with the second has failed."""
    workspace = await given_workspace(engine)
    await engine.sms_settings.update(workspace.id, SmsSettingsUpdate(max_segments=1))
    steps = [FlowStep(kind="send", body="Hi"), FlowStep(kind="send", body=LONG)]
    flow = await engine.flows.create(workspace.id, NewFlow(name="F", steps=steps))
    source: dict[str, Any] = {"message_source": "flow", "flow_id": flow.id, "body": None}
    campaign = await given_campaign(engine, workspace, 2, **source)
    with pytest.raises(CannotStart, match="max_segments"):
        await engine.campaigns.start(workspace.id, campaign.id)


@pytest.mark.parametrize(("text", "refused"), [(LONG, True), ("{{first_name}}", False)])
async def test_a_large_campaign_is_looked_at_in_part(
    engine: Outreach, monkeypatch: pytest.MonkeyPatch, text: str, refused: bool
) -> None:
    """It does not render a million texts: it refuses one that is too long by itself, and checks a part of the rest."""
    monkeypatch.setattr(moves, "MAX_LOOKED_AT", 10)
    monkeypatch.setattr(moves, "_SLICE", 5)
    monkeypatch.setattr(moves, "_FIRST_SLICE", 2)
    workspace, campaign = await given(engine, named(*[LONG] * 30, "Ann"), body=text)
    checked = await engine.campaigns.check_start(workspace.id, campaign.id)
    assert checked == StartCheck(contacts=31, checked=10, failures_by_reason={"over_segment_cap": 10})
    if refused:
        with pytest.raises(CannotStart):
            await engine.campaigns.start(workspace.id, campaign.id)
    else:
        assert (await engine.campaigns.start(workspace.id, campaign.id)).status == "active"


async def test_calls_have_no_text_to_look_at(engine: Outreach) -> None:
    """Their agent speaks."""
    workspace, campaign = await given(engine, contacts(2))
    assert (await engine.campaigns.check_start(workspace.id, campaign.id)).checked == 2
    agent = await engine.agents.create(workspace.id, NewAgent(name="Ada"))
    created = await engine.campaigns.create_call(
        workspace.id, NewCallCampaign(name="C", agent_id=agent.id), contacts(2)
    )
    assert (await engine.campaigns.check_start(workspace.id, created.campaign.id)).checked == 0
    assert (await engine.campaigns.start(workspace.id, created.campaign.id)).status == "active"


@pytest.mark.parametrize(
    ("template", "footer", "nobody"),
    [
        ("x" * 160, None, False),
        ("x" * 161, None, True),
        ("x" * 150, "y" * 20, True),
        ("{{" + "n" * 300 + "}}", "y" * 20, False),
        ("{{a|" + "f" * 300 + "}}", None, False),
        ("{{a}}" + "x" * 161, None, True),
    ],
)
def test_the_text_outside_of_placeholders_decides_whether_a_body_can_suit_anybody(
    template: str, footer: str | None, nobody: bool
) -> None:
    """Values, and fallbacks, only make it longer."""
    assert CampaignTexts(templates=[template], footer=footer, max_segments=1).fits_no_contact() is nobody


@pytest.mark.parametrize(("replaces", "reason"), [(True, None), (False, "over_segment_cap")])
def test_plain_characters_decide_whether_a_text_fits(replaces: bool, reason: str | None) -> None:
    """A curly apostrophe halves what a segment takes, unless it is replaced."""
    texts = CampaignTexts(templates=["It\u2019s " + "x" * 150], footer=None, max_segments=1, replaces=replaces)
    assert texts.unsendable_reason({}) == reason
    assert texts.fits_no_contact() is (not replaces)


async def test_obstacles_are_what_the_start_says(engine: Outreach) -> None:
    """The text that suits nobody and the placeholders too; of a draft without a text only that it has none."""
    workspace, campaign = await given(engine, 3, body="{{first_nam}}" + LONG)
    obstacles = await engine.campaigns.start_problems(workspace.id, campaign.id)
    assert [detail.path for detail in obstacles] == ["max_segments", "placeholders"]
    with pytest.raises(CannotStart) as caught:
        await engine.campaigns.start(workspace.id, campaign.id)
    assert caught.value.details == obstacles
    await engine.campaigns.update(workspace.id, campaign.id, CampaignUpdate(body=None))
    obstacles = await engine.campaigns.start_problems(workspace.id, campaign.id)
    assert [detail.path for detail in obstacles] == ["body"]
