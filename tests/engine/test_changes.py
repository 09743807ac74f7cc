from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import pytest

from outreach import (
    UNSET,
    AgentChange,
    CallSettingsChange,
    CampaignUpdate,
    InvalidRequest,
    Outreach,
    ReplySettingsChange,
    SmsSettingsChange,
    WorkspaceChange,
)
from tests.engine.rig import given_campaign, given_workspace

pytestmark = pytest.mark.anyio

Update = Callable[[Any], Awaitable[Any]]

STORED_AS = {"message_body": "sms_message_body"}

CLEARABLE: dict[type[Any], dict[str, Any]] = {
    WorkspaceChange: {"request_limit": None, "default_region": None, "frequency_cap": None},
    AgentChange: dict.fromkeys(
        ("from_number", "provider_agent_id", "placeholders", "voicemail", "max_call_seconds"), None
    ),
    CampaignUpdate: dict.fromkeys(("message_body", "sms_carrier", "sms_from_number", "sms_flow_id"), None),
    SmsSettingsChange: {},
    CallSettingsChange: {},
    ReplySettingsChange: dict.fromkeys(("stop_text", "start_text", "help_text"), ""),
}
"""What can be cleared, and what it is then."""

TOGETHER = {"voicemail_message", "agent_id"}
"""Cleared only under a condition of its own, which other tests look at."""


async def given(engine: Outreach, change: type[Any]) -> tuple[Any, Update]:
    """Return a thing whose every field is set, and what changes it."""
    workspace = await engine.workspaces.create(
        "Acme", request_limit=10, default_region="US", frequency_cap=3, contact_hours=True
    )
    if change is WorkspaceChange:
        return workspace, lambda some: engine.workspaces.update(workspace.id, some)
    if change is AgentChange:
        agent = await engine.agents.create(
            workspace.id,
            "Ada",
            from_number="+14155550100",
            provider_agent_id="a1",
            placeholders=["name"],
            voicemail="leave_message",
            voicemail_message="Hello",
            max_call_seconds=60,
        )
        return agent, lambda some: engine.agents.update(workspace.id, agent.id, some)
    if change is CampaignUpdate:
        campaign = await given_campaign(engine, workspace)
        return campaign, lambda some: engine.campaigns.update(workspace.id, campaign.id, some)
    if change is ReplySettingsChange:
        texts = ReplySettingsChange(stop_text="Bye", start_text="Hi", help_text="Ask", enabled=False)
        return await engine.replies.update(workspace.id, texts), lambda some: engine.replies.update(workspace.id, some)
    service: Any = engine.settings if change is SmsSettingsChange else engine.call_settings
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
    agent, update = await given(engine, AgentChange)
    with pytest.raises(InvalidRequest, match="voicemail_message"):
        await update(AgentChange(voicemail_message=None))
    after = await update(AgentChange(voicemail=None))
    assert (agent.voicemail_message, after.voicemail, after.voicemail_message) == ("Hello", None, None)


async def test_a_campaign_from_which_something_is_taken_is_a_draft(engine: Outreach) -> None:
    """By the condition of the interface, section 3."""
    workspace = await given_workspace(engine)
    campaign = await given_campaign(engine, workspace)
    assert campaign.status == "ready"
    for name in ("sms_from_number", "sms_carrier", "message_body"):
        cleared: dict[str, Any] = {name: None}
        changed = await engine.campaigns.update(workspace.id, campaign.id, CampaignUpdate(**cleared))
        assert changed.status == "draft"


async def test_unset_says_its_name_and_is_nothing() -> None:
    """As it stands in the representation of a change."""
    assert repr(CallSettingsChange()) == "CallSettingsChange(retry_max_attempts=UNSET, retry_delay_minutes=UNSET)"
    assert not UNSET
