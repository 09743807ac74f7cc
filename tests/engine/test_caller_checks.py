from __future__ import annotations

from typing import Any

import pytest

from outreach import NewAgent, NewNumber, NewTrunk, Outreach, WorkspaceMode
from outreach.errors import CannotStart
from outreach.models import CallerIdAllocation
from tests.engine.calling import given_calls
from tests.engine.rig import given_workspace

pytestmark = pytest.mark.virtual_time

ONE, OTHER = "+14155550191", "+14155550192"
VAPI = {"api_key": "vapi-key-0001", "webhook_secret": "a-secret-of-some-length", "phone_number_id": "number-1"}
ELEVENLABS = {"api_key": "k", "webhook_secret": "s", "phone_number_id": "number-1"}
ACCOUNTS = {"vapi": VAPI, "elevenlabs": ELEVENLABS, "retell": {"api_key": "key_1"}}


async def start(
    engine: Outreach,
    *,
    provider: str = "vapi",
    listed: str = "",
    group: bool = True,
    trunk: bool = False,
    trunk_identifier: str | None = "trunk-1",
    sender: str | None = None,
    mode: WorkspaceMode = WorkspaceMode.LIVE,
) -> list[str]:
    """Start a calling campaign; return the fields that its refusal names, none where it began."""
    workspace = await given_workspace(engine, mode=mode, contact_hours=False)
    account = {**ACCOUNTS[provider], **({"phone_numbers": listed} if listed else {})}
    await engine.accounts.connect(workspace.id, provider, account)
    options: dict[str, Any] = {"from_number": sender} if sender else {}
    agent = await engine.agents.create(
        workspace.id, NewAgent(name="Ada", provider=provider, provider_agent_id="agent-1", **options)
    )
    changes: dict[str, Any] = {"agent_id": agent.id}
    if group:
        numbers = [await engine.numbers.create(workspace.id, NewNumber(phone=phone)) for phone in (ONE, OTHER)]
        entries = [CallerIdAllocation(number_id=each.id, phone=each.phone, count=1) for each in numbers]
        changes |= {"cli_mode": "group", "cli_group": entries}
    if trunk:
        made = await engine.trunks.create(
            workspace.id, NewTrunk(name="T", address="sip.example.com", provider_trunk_id=trunk_identifier)
        )
        changes["trunk_id"] = made.id
    campaign = await given_calls(engine, workspace, **changes)
    told = [detail.path for detail in await engine.campaigns.start_problems(workspace.id, campaign.id)]
    if not told:
        assert (await engine.campaigns.start(workspace.id, campaign.id)).status == "active"
        return []
    with pytest.raises(CannotStart) as caught:
        await engine.campaigns.start(workspace.id, campaign.id)
    assert [detail.path for detail in caught.value.details] == told
    return told


@pytest.mark.parametrize("provider", ["vapi", "elevenlabs"])
@pytest.mark.parametrize("trunk", [False, True])
@pytest.mark.parametrize(
    ("listed", "refused"),
    [
        ("", ["cli_group_config[0]", "cli_group_config[1]"]),
        (f"{ONE}=number-2", ["cli_group_config[1]"]),
        (f"{ONE}=number-2, {OTHER}=number-3", []),
    ],
)
async def test_a_rotation_starts_where_each_number_has_an_identifier_at_the_provider(
    engine: Outreach, provider: str, trunk: bool, listed: str, refused: list[str]
) -> None:
    """Else calls would show the account's one number while their records name others, or be refused one by one."""
    assert await start(engine, provider=provider, trunk=trunk, listed=listed) == refused


@pytest.mark.parametrize(
    ("listed", "trunk", "refused"),
    [
        ("", False, []),
        ("", True, ["agent.from_number"]),
        (f"{OTHER}=number-2", False, ["agent.from_number"]),
        (f"{ONE}=number-2", True, []),
    ],
)
async def test_an_agents_caller_id_is_held_to_the_same(
    engine: Outreach, listed: str, trunk: bool, refused: list[str]
) -> None:
    """An account of one number, without a trunk, calls from that one, which is the agent's."""
    assert await start(engine, group=False, sender=ONE, listed=listed, trunk=trunk) == refused


async def test_who_takes_numbers_as_they_are_needs_no_identifiers(engine: Outreach) -> None:
    """Retell is told the number itself; the simulator of a sandbox whatever it is."""
    assert await start(engine, provider="retell") == []
    assert await start(engine, mode=WorkspaceMode.SANDBOX) == []


@pytest.mark.parametrize(("provider", "refused"), [("vapi", True), ("elevenlabs", True), ("retell", False)])
async def test_a_trunk_has_an_identifier_at_providers_that_know_it_by_nothing_else(
    engine: Outreach, provider: str, refused: bool
) -> None:
    """Else its calls would not go over it; a sandbox has no providers."""
    wrong: dict[str, Any] = {"provider": provider, "group": False, "trunk": True, "trunk_identifier": None}
    assert await start(engine, **wrong) == (["trunk_id"] if refused else [])
    assert await start(engine, **wrong, mode=WorkspaceMode.SANDBOX) == []


async def test_a_paused_rotation_goes_on_only_from_its_numbers(engine: Outreach) -> None:
    """What was listed when it started may have been taken off the account since."""
    assert await start(engine, listed=f"{ONE}=number-2, {OTHER}=number-3") == []
    (workspace,) = await engine.workspaces.list()
    (campaign,) = (await engine.campaigns.list(workspace.id)).items
    await engine.campaigns.pause(workspace.id, campaign.id)
    await engine.accounts.connect(workspace.id, "vapi", {**VAPI, "phone_numbers": f"{ONE}=number-2"})
    with pytest.raises(CannotStart) as caught:
        await engine.campaigns.resume(workspace.id, campaign.id)
    assert [detail.path for detail in caught.value.details] == ["cli_group_config[1]"]
    assert OTHER in caught.value.details[0].message
