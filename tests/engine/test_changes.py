from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import date, timedelta
from typing import Any

import attrs
import pytest

from outreach import (
    UNSET,
    AgentUpdate,
    BusinessHours,
    CallSettingsUpdate,
    CampaignUpdate,
    Conflict,
    InvalidRequest,
    NewAgent,
    NewCallCampaign,
    NewNumber,
    NewRecipient,
    NewWorkspace,
    Outreach,
    ReplySettingsUpdate,
    SmsSettingsUpdate,
    TimeWindow,
    WorkspaceUpdate,
)
from outreach.core.clock import SystemClock
from outreach.models import CallerIdAllocation, Holiday, HolidayCalendar
from tests.engine.rig import given_campaign, given_workspace

pytestmark = pytest.mark.virtual_time

Update = Callable[[Any], Awaitable[Any]]

STORED_AS = {"body": "body"}

APPROVALS = ("approve_over_contacts", "approve_over_amount")

CLEARABLE: dict[type[Any], dict[str, Any]] = {
    WorkspaceUpdate: dict.fromkeys(
        ("request_limit", "default_region", "frequency_cap", "retention_days", *APPROVALS), None
    ),
    AgentUpdate: dict.fromkeys(
        ("from_number", "provider_agent_id", "placeholders", "voicemail", "max_call_seconds"), None
    ),
    CampaignUpdate: dict.fromkeys(
        (
            *("body", "carrier", "from_number", "flow_id", "description"),
            *("scheduled_start_at", "scheduled_expires_at", "business_hours", "holidays"),
        ),
        None,
    ),
    SmsSettingsUpdate: {},
    CallSettingsUpdate: {},
    ReplySettingsUpdate: dict.fromkeys(("stop_text", "start_text", "help_text"), ""),
}
"""What can be cleared, and what it is then."""

NOW = SystemClock().now()

WHEN = CampaignUpdate(
    description="For us",
    scheduled_start_at=NOW + timedelta(days=1),
    scheduled_expires_at=NOW + timedelta(days=2),
    business_hours=BusinessHours(
        enabled=True,
        timezone="Europe/Oslo",
        schedule={"monday": (TimeWindow(start_minute=540, end_minute=1020),)},
        batch_concurrency=5,
    ),
    holidays=HolidayCalendar(country="NO", holidays=(Holiday(date=date(2026, 12, 24), name="", enabled=True),)),
)

TOGETHER = {"voicemail_message", "agent_id", "cli_group"}
"""Cleared only under a condition of its own, which other tests look at."""


async def given(engine: Outreach, change: type[Any]) -> tuple[Any, Update]:
    """Return a thing whose every field is set, and what changes it."""
    workspace = await engine.workspaces.create(
        NewWorkspace(name="Acme", request_limit=10, default_region="US", frequency_cap=3, contact_hours=True)
    )
    if change is WorkspaceUpdate:
        return workspace, lambda some: engine.workspaces.update(workspace.id, some)
    if change is AgentUpdate:
        agent = await engine.agents.create(
            workspace.id,
            NewAgent(
                name="Ada",
                from_number="+14155550100",
                provider_agent_id="a1",
                placeholders=["name"],
                voicemail="leave_message",
                voicemail_message="Hello",
                max_call_seconds=60,
            ),
        )
        return agent, lambda some: engine.agents.update(workspace.id, agent.id, some)
    if change is CampaignUpdate:
        campaign = await given_campaign(engine, workspace)
        campaign = await engine.campaigns.update(workspace.id, campaign.id, WHEN)
        return campaign, lambda some: engine.campaigns.update(workspace.id, campaign.id, some)
    if change is ReplySettingsUpdate:
        texts = ReplySettingsUpdate(stop_text="Bye", start_text="Hi", help_text="Ask", enabled=False)
        return await engine.reply_settings.update(workspace.id, texts), lambda some: engine.reply_settings.update(
            workspace.id, some
        )
    service: Any = engine.sms_settings if change is SmsSettingsUpdate else engine.call_settings
    return await service.get(workspace.id), lambda some: service.update(workspace.id, some)


@pytest.mark.parametrize("change", CLEARABLE)
async def test_a_change_of_nothing_leaves_all_as_it_is(engine: Outreach, change: type[Any]) -> None:
    """`UNSET`, the default of every field, leaves it."""
    assert all(field.default is UNSET for field in attrs.fields(change))
    before, update = await given(engine, change)
    after = await update(change())
    kept = {"revision", "updated_at"}
    assert attrs.asdict(after, filter=lambda a, _: a.name not in kept) == attrs.asdict(
        before, filter=lambda a, _: a.name not in kept
    )


@pytest.mark.parametrize(
    ("change", "name"),
    [(change, field.name) for change in CLEARABLE for field in attrs.fields(change) if field.name not in TOGETHER],
)
async def test_none_clears_a_field_or_is_refused_by_its_name(engine: Outreach, change: type[Any], name: str) -> None:
    """Nothing takes None for "leave it"."""
    _, update = await given(engine, change)
    if name in CLEARABLE[change]:
        after = await update(change(**{name: None}))
        assert getattr(after, STORED_AS.get(name, name)) == CLEARABLE[change][name]
        return
    with pytest.raises(InvalidRequest, match="cannot be cleared") as caught:
        await update(change(**{name: None}))
    assert [detail.path for detail in caught.value.details] == [name]


async def test_what_is_said_to_machines_goes_with_the_policy_that_leaves_it(engine: Outreach) -> None:
    """One cannot be there without the other."""
    agent, update = await given(engine, AgentUpdate)
    with pytest.raises(InvalidRequest, match="voicemail_message"):
        await update(AgentUpdate(voicemail_message=None))
    after = await update(AgentUpdate(voicemail=None))
    assert (agent.voicemail_message, after.voicemail, after.voicemail_message) == ("Hello", None, None)


async def test_a_campaign_from_which_something_is_taken_is_a_draft(engine: Outreach) -> None:
    """By the condition of docs/interface.md#3."""
    workspace = await given_workspace(engine)
    campaign = await given_campaign(engine, workspace)
    assert campaign.status == "ready"
    for name in ("from_number", "carrier", "body"):
        cleared: dict[str, Any] = {name: None}
        changed = await engine.campaigns.update(workspace.id, campaign.id, CampaignUpdate(**cleared))
        assert changed.status == "draft"


async def test_what_was_changed_meanwhile_is_neither_changed_nor_started(engine: Outreach) -> None:
    """Where the caller names the revision that it has seen."""
    workspace = await given_workspace(engine)
    seen = await given_campaign(engine, workspace)
    place = (workspace.id, seen.id)
    changed = await engine.campaigns.update(*place, CampaignUpdate(body="Their text"), revision=seen.revision)
    with pytest.raises(Conflict, match="changed meanwhile"):
        await engine.campaigns.update(*place, CampaignUpdate(body="My text"), revision=seen.revision)
    with pytest.raises(Conflict, match="changed meanwhile"):
        await engine.campaigns.start(*place, revision=seen.revision)
    assert await engine.campaigns.get(*place) == changed
    await engine.campaigns.start(*place, revision=changed.revision)


async def test_a_campaign_runs_when_it_is_changed_to(engine: Outreach) -> None:
    """A start ahead makes it a scheduled one, none an immediate one; all of it is kept."""
    _, update = await given(engine, CampaignUpdate)
    changed = await update(CampaignUpdate(name="Later"))
    fields = ("description", "scheduled_start_at", "scheduled_expires_at", "business_hours", "holidays")
    assert [getattr(changed, name) for name in fields] == [getattr(WHEN, name) for name in fields]
    assert changed.schedule_type == "scheduled"
    assert (await engine.campaigns.start(changed.workspace_id, changed.id)).status == "scheduled"
    await engine.campaigns.unschedule(changed.workspace_id, changed.id)
    assert (await update(CampaignUpdate(scheduled_start_at=None))).schedule_type == "immediate"
    assert (await engine.campaigns.start(changed.workspace_id, changed.id)).status == "active"


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"scheduled_expires_at": NOW + timedelta(hours=1)}, "scheduled_expires_at"),
        ({"scheduled_start_at": NOW + timedelta(days=3)}, "scheduled_expires_at"),
    ],
)
async def test_a_time_that_cannot_be_is_refused_by_its_path(engine: Outreach, wrong: dict[str, Any], path: str) -> None:
    """By the rules of a new campaign, and together with what is there already; nothing is changed then."""
    before, update = await given(engine, CampaignUpdate)
    with pytest.raises(InvalidRequest) as caught:
        await update(CampaignUpdate(**wrong))
    assert [detail.path for detail in caught.value.details] == [path]
    assert await engine.campaigns.get(before.workspace_id, before.id) == before


async def test_unset_says_its_name_and_is_nothing() -> None:
    """As it stands in the representation of a change."""
    assert repr(CallSettingsUpdate()) == "CallSettingsUpdate(retry_max_attempts=UNSET, retry_delay_minutes=UNSET)"
    assert not UNSET


async def test_the_caller_ids_of_a_calling_campaign_are_changed_before_its_start(engine: Outreach) -> None:
    """The mode follows them; an empty list is as none, and a campaign that has begun keeps them."""
    workspace = await engine.workspaces.create(NewWorkspace(name="Acme"))
    agent = await engine.agents.create(
        workspace.id, NewAgent(name="Ada", provider="simulator", direction="outbound", from_number="+14155550100")
    )
    number = await engine.numbers.create(workspace.id, NewNumber(phone="+14155550101"))
    new = NewCallCampaign(name="Calls", agent_id=agent.id)
    people = [NewRecipient(phone_number="+14155550102")]
    campaign = (await engine.campaigns.create_call(workspace.id, new, people)).campaign
    turns = [CallerIdAllocation(number_id=number.id, phone=number.phone, count=20)]
    place = (workspace.id, campaign.id)
    changed = await engine.campaigns.update(*place, CampaignUpdate(cli_group=turns, retry_voicemail=True))
    assert (changed.cli_group, changed.cli_mode, changed.retry_voicemail) == (tuple(turns), "group", True)
    changed = await engine.campaigns.update(*place, CampaignUpdate(cli_group=None, retry_voicemail=False))
    assert (changed.cli_group, changed.cli_mode, changed.retry_voicemail) == (None, "default", False)
    changed = await engine.campaigns.update(*place, CampaignUpdate(cli_group=[]))
    assert (changed.cli_group, changed.cli_mode) == (None, "default")
    await engine.campaigns.start(*place)
    with pytest.raises(Conflict, match="its caller IDs"):
        await engine.campaigns.update(*place, CampaignUpdate(cli_group=turns))
    sms = await given_campaign(engine, workspace)
    for change in (CampaignUpdate(cli_group=turns), CampaignUpdate(retry_voicemail=True)):
        with pytest.raises(InvalidRequest, match="channel sms"):
            await engine.campaigns.update(workspace.id, sms.id, change)
