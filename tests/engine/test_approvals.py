"""The start of a campaign by a person can need the approval of a second one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

import attrs
import pytest

from outreach import (
    AgentUpdate,
    Campaign,
    CampaignStatus,
    CampaignUpdate,
    Conflict,
    EngineConfig,
    FlowStep,
    FlowUpdate,
    InvalidRequest,
    NewAgent,
    NewCallCampaign,
    NewFlow,
    NewNumber,
    NewRecipient,
    NewSmsCampaign,
    NewTrunk,
    NewWorkspace,
    NotFound,
    Number,
    NumberUpdate,
    Outreach,
    SmsSettingsUpdate,
    TrunkUpdate,
    WorkspaceUpdate,
)
from outreach.errors import AwaitsApproval, CannotStart, IllegalTransition, Problem
from outreach.models import CallerIdAllocation, Price, PriceTable
from outreach.services.campaigns.adding import CampaignAdditions

pytestmark = pytest.mark.anyio

ANN, BEN = "user:ann", "host:ben"
SENDER, OTHER_SENDER = "+12025550100", "+12025550101"


@attrs.define
class Place:
    """An engine with a workspace."""

    engine: Outreach
    workspace: str

    async def campaign(self, contacts: int = 3, *, actor: str = ANN, body: str = "Hi") -> Campaign:
        """Return a ready campaign that somebody has made."""
        new = NewSmsCampaign(name="Autumn", body=body, carrier="twilio", from_number=SENDER)
        people = [NewRecipient(phone_number=f"+1303555{number:04d}") for number in range(contacts)]
        return (await self.engine.campaigns.create_sms(self.workspace, new, people, actor=actor)).campaign

    async def limit(self, **limits: Any) -> None:
        """Set from when on people need approval."""
        await self.engine.workspaces.update(self.workspace, WorkspaceUpdate(**limits))

    async def start(self, campaign: Campaign, actor: str) -> Campaign:
        """Start a campaign."""
        return await self.engine.campaigns.start(self.workspace, campaign.id, actor=actor)

    async def approve(self, campaign: Campaign, actor: str) -> None:
        """Approve a campaign as it is now."""
        now = await self.engine.campaigns.get(self.workspace, campaign.id)
        await self.engine.campaigns.approve(self.workspace, campaign.id, revision=now.revision, actor=actor)

    async def later(self, *, is_call: bool = False) -> Campaign:
        """Return a ready campaign of tomorrow, whose messages or calls come from numbers of the workspace."""
        if not is_call:
            campaign = await self.campaign()
        else:
            agent = await self.engine.agents.create(
                self.workspace, NewAgent(name="Vera", provider="simulator", from_number=SENDER)
            )
            trunk = await self.engine.trunks.create(self.workspace, NewTrunk(name="East", address="sip.example"))
            number = await self.engine.numbers.create(self.workspace, NewNumber(phone=OTHER_SENDER))
            new = NewCallCampaign(
                name="Calls",
                agent_id=agent.id,
                trunk_id=trunk.id,
                cli_mode="group",
                cli_group=[CallerIdAllocation(number_id=number.id, phone=number.phone, count=1)],
            )
            people = [NewRecipient(phone_number="+13035550100")]
            campaign = (await self.engine.campaigns.create_call(self.workspace, new, people, actor=ANN)).campaign
        times = CampaignUpdate(scheduled_start_at=self.engine.now() + timedelta(days=1))
        return await self.engine.campaigns.update(self.workspace, campaign.id, times, actor=ANN)

    async def number(self, phone: str) -> Number:
        """Return a number of the workspace."""
        found = (await self.engine.numbers.list(self.workspace)).items
        return next(one for one in found if one.phone == phone)

    async def reason(self, campaign: Campaign) -> str | None:
        """Return why it needs approval."""
        return (await self.engine.campaigns.approval(self.workspace, campaign.id)).reason


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    """An engine with a workspace."""
    async with Outreach.open("memory://") as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme"))
        await engine.numbers.create(workspace.id, NewNumber(phone=SENDER, carrier="twilio"))
        yield Place(engine, workspace.id)


async def test_nothing_needs_approval_by_default(place: Place) -> None:
    """The person who made a campaign starts it."""
    campaign = await place.campaign()
    found = await place.engine.campaigns.approval(place.workspace, campaign.id)
    assert (found.reason, found.changed_by, found.approval, found.is_missing) == (None, ANN, None, False)
    assert (await place.start(campaign, ANN)).status is CampaignStatus.ACTIVE


@pytest.mark.parametrize(("limit", "contacts", "reason"), [(0, 1, "contacts"), (3, 3, None), (2, 3, "contacts")])
async def test_contacts_over_the_limit_need_approval(
    place: Place, limit: int, contacts: int, reason: str | None
) -> None:
    """0 is for every start; as many as the limit need none."""
    await place.limit(approve_over_contacts=limit)
    campaign = await place.campaign(contacts)
    assert await place.reason(campaign) == reason
    if reason is None:
        await place.start(campaign, ANN)
    else:
        for person in (ANN, BEN):
            with pytest.raises(AwaitsApproval):
                await place.start(campaign, person)
        assert (await place.engine.campaigns.get(place.workspace, campaign.id)).status is CampaignStatus.READY


@pytest.mark.parametrize(
    ("price", "limit", "reason"),
    [("0.50", 1, "amount"), ("0.50", 2, None), (None, 2, "amount_unknown"), ("0.01", 0, "amount")],
)
async def test_costs_over_the_limit_need_approval(
    place: Place, price: str | None, limit: int, reason: str | None
) -> None:
    """By the prices of the workspace; without them nobody knows, so a person has to look."""
    if price is not None:
        table = PriceTable(currency="USD", prices=(Price(kind="sms", amount=Decimal(price)),))
        await place.engine.prices.update(place.workspace, table)
    await place.limit(approve_over_amount=limit)
    campaign = await place.campaign()
    assert await place.reason(campaign) == reason
    if reason is None:
        await place.start(campaign, ANN)
    else:
        with pytest.raises(AwaitsApproval):
            await place.start(campaign, ANN)


async def test_another_person_approves_and_then_both_may_start(place: Place) -> None:
    """The figures that were approved are kept, and who approved them is in the audit trail."""
    await place.engine.prices.update(
        place.workspace, PriceTable(currency="USD", prices=(Price(kind="sms", amount=Decimal("0.5")),))
    )
    await place.limit(approve_over_contacts=0)
    campaign = await place.campaign()
    with pytest.raises(Conflict, match="another person"):
        await place.approve(campaign, ANN)
    await place.approve(campaign, BEN)
    found = await place.engine.campaigns.approval(place.workspace, campaign.id)
    assert found.approval is not None
    figures = found.approval.figures
    assert (found.approval.approved_by, found.is_missing) == (BEN, False)
    assert (figures.contacts, figures.messages, figures.amount, figures.currency) == (3, 3, Decimal("1.5"), "USD")
    assert figures.ends_at is not None
    await place.approve(campaign, BEN)
    audit = (await place.engine.audit.list(place.workspace)).items
    assert [(one.actor, one.detail) for one in audit if one.action == "campaign.approve"] == [
        (BEN, f"revision {campaign.revision}, 3 contacts")
    ]
    assert (await place.start(campaign, ANN)).status is CampaignStatus.ACTIVE


async def test_a_later_change_takes_the_approval_away(place: Place) -> None:
    """Of the text, and of the contacts. The person who made it cannot approve."""
    await place.limit(approve_over_contacts=0)
    campaign = await place.campaign()
    await place.approve(campaign, BEN)
    await place.engine.campaigns.update(place.workspace, campaign.id, CampaignUpdate(body="Ho"), actor=BEN)
    with pytest.raises(AwaitsApproval):
        await place.start(campaign, ANN)
    with pytest.raises(Conflict, match="another person"):
        await place.approve(campaign, BEN)
    await place.approve(campaign, ANN)
    added = [NewRecipient(phone_number="+13035559999")]
    await place.engine.campaigns.add_recipients(place.workspace, campaign.id, added, actor=ANN)
    with pytest.raises(AwaitsApproval):
        await place.start(campaign, BEN)
    with pytest.raises(Conflict, match="another person"):
        await place.approve(campaign, ANN)
    await place.approve(campaign, BEN)
    assert (await place.start(campaign, ANN)).status is CampaignStatus.ACTIVE


async def test_what_was_approved_stays_while_it_is_under_way(place: Place) -> None:
    """People change neither text nor contacts of a campaign that has started; its pace they do."""
    await place.limit(approve_over_contacts=0)
    campaign = await place.campaign()
    await place.approve(campaign, BEN)
    await place.start(campaign, ANN)
    campaigns = place.engine.campaigns
    new = [NewRecipient(phone_number="+13035559999")]
    for actor in (ANN, BEN):
        with pytest.raises(AwaitsApproval, match=r"What it says .* workspace. Make another campaign"):
            await campaigns.update(place.workspace, campaign.id, CampaignUpdate(body="Ho"), actor=actor)
        with pytest.raises(AwaitsApproval, match="no contacts"):
            await campaigns.add_recipients(place.workspace, campaign.id, new, actor=actor)
    found = await campaigns.update(place.workspace, campaign.id, CampaignUpdate(rate_per_minute=7), actor=ANN)
    assert (found.body, found.counters.total, found.rate_per_minute) == ("Hi", 3, 7)
    await campaigns.pause(place.workspace, campaign.id, actor=ANN)
    assert (await campaigns.resume(place.workspace, campaign.id, actor=ANN)).status is CampaignStatus.ACTIVE


async def test_contacts_that_are_still_being_added_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a start before all of them are there, or an addition after it, would pass the limit."""

    async def killed(*_: object) -> None:
        """Leave the added contacts where they are."""

    async with Outreach.open("memory://", config=EngineConfig(insert_batch_size=2)) as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme"))
        await engine.numbers.create(workspace.id, NewNumber(phone=SENDER, carrier="twilio"))
        place, campaigns = Place(engine, workspace.id), engine.campaigns
        await place.limit(approve_over_contacts=4)
        started, waiting = await place.campaign(1), await place.campaign(1)
        new = [NewRecipient(phone_number=f"+1303556{number:04d}") for number in range(4)]
        await place.start(started, ANN)
        with pytest.raises(AwaitsApproval, match="no contacts"):
            await campaigns.add_recipients(workspace.id, started.id, new, actor=ANN)
        await campaigns.add_recipients(workspace.id, started.id, new[:1], actor=ANN)
        monkeypatch.setattr(CampaignAdditions, "_move_all", killed)
        await campaigns.add_recipients(workspace.id, waiting.id, new, actor=ANN)
        with pytest.raises(Conflict, match="still gets contacts"):
            await place.start(waiting, ANN)
        assert (await place.start(waiting, "api")).status is CampaignStatus.ACTIVE


async def test_what_was_approved_stays_while_it_is_scheduled(place: Place) -> None:
    """Its text, and the numbers that it sends from."""
    await place.limit(approve_over_contacts=0)
    campaign = await place.campaign()
    times = CampaignUpdate(scheduled_start_at=place.engine.now() + timedelta(days=1))
    await place.engine.campaigns.update(place.workspace, campaign.id, times, actor=ANN)
    await place.approve(campaign, BEN)
    assert (await place.start(campaign, ANN)).status is CampaignStatus.SCHEDULED
    for change in (CampaignUpdate(body="Ho"), CampaignUpdate(from_numbers=[SENDER])):
        with pytest.raises(AwaitsApproval, match=r"What it says .* Take its start back first"):
            await place.engine.campaigns.update(place.workspace, campaign.id, change, actor=ANN)


async def _starts_when_approved_again(
    place: Place, campaign: Campaign, other: Campaign, *, changed_by: str, approved_by: str
) -> None:
    """Check that a campaign needs another approval, by another person than who has changed it; `other` needs none."""
    with pytest.raises(AwaitsApproval):
        await place.start(campaign, ANN)
    with pytest.raises(Conflict, match="another person"):
        await place.approve(campaign, changed_by)
    await place.approve(campaign, approved_by)
    for one in (campaign, other):
        assert (await place.start(one, changed_by)).status is CampaignStatus.ACTIVE


async def test_a_change_of_its_flow_takes_the_approval_away(place: Place) -> None:
    """What it says stands there; a campaign with a text, and the flow's name, have nothing to do with it."""
    await place.limit(approve_over_contacts=0)
    flows, text = place.engine.flows, await place.campaign()
    steps = [FlowStep(kind="send", body="Hi")]
    flow = await flows.create(place.workspace, NewFlow(name="Welcome", steps=steps), actor=BEN)
    new = NewSmsCampaign(name="Autumn", message_source="flow", flow_id=flow.id, carrier="twilio", from_number=SENDER)
    people = [NewRecipient(phone_number="+13035550100")]
    campaign = (await place.engine.campaigns.create_sms(place.workspace, new, people, actor=ANN)).campaign
    for one in (campaign, text):
        await place.approve(one, BEN)
    await flows.update(place.workspace, flow.id, FlowUpdate(name="Hello", steps=steps), actor=ANN)
    assert not (await place.engine.campaigns.approval(place.workspace, campaign.id)).is_missing
    change = FlowUpdate(steps=[FlowStep(kind="send", body="Ho")])
    await flows.update(place.workspace, flow.id, change, actor=BEN)
    await _starts_when_approved_again(place, campaign, text, changed_by=BEN, approved_by=ANN)


@pytest.mark.parametrize(
    "change",
    [
        AgentUpdate(provider_agent_id="other"),
        AgentUpdate(placeholders=[]),
        AgentUpdate(from_number="+12025550101"),
        AgentUpdate(voicemail="leave_message", voicemail_message="Call us."),
        AgentUpdate(max_call_seconds=60),
    ],
)
async def test_a_change_of_its_agent_takes_the_approval_away(place: Place, change: AgentUpdate) -> None:
    """The agent says what it says; a campaign of another agent, and the agent's name, have nothing to do with it."""
    await place.limit(approve_over_contacts=0)
    engine, made = place.engine, []
    for name in ("Vera", "Otto"):
        agent = await engine.agents.create(place.workspace, NewAgent(name=name, provider="simulator"), actor=ANN)
        new, people = NewCallCampaign(name=name, agent_id=agent.id), [NewRecipient(phone_number="+13035550100")]
        made.append((await engine.campaigns.create_call(place.workspace, new, people, actor=ANN)).campaign)
        await place.approve(made[-1], BEN)
    campaign, other = made
    assert campaign.agent_id is not None
    await engine.agents.update(place.workspace, campaign.agent_id, AgentUpdate(name="Eva"), actor=ANN)
    assert not (await engine.campaigns.approval(place.workspace, campaign.id)).is_missing
    await engine.agents.update(place.workspace, campaign.agent_id, change, actor=ANN)
    await _starts_when_approved_again(place, campaign, other, changed_by=ANN, approved_by=BEN)


async def _text_changes(place: Place, campaign: Campaign) -> None:
    await place.engine.campaigns.update(place.workspace, campaign.id, CampaignUpdate(body="Ho"), actor="api:1")


async def _pool_changes(place: Place, campaign: Campaign) -> None:
    change = CampaignUpdate(from_numbers=[SENDER, OTHER_SENDER])
    await place.engine.campaigns.update(place.workspace, campaign.id, change, actor="api:1")


async def _footer_changes(place: Place, campaign: Campaign) -> None:
    change = SmsSettingsUpdate(footer_text="Write STOP to end")
    await place.engine.sms_settings.update(place.workspace, change, actor="user:eve")


async def _number_changes(place: Place, campaign: Campaign) -> None:
    number = await place.number(SENDER)
    await place.engine.numbers.update(place.workspace, number.id, NumberUpdate(carrier="vonage"), actor="user:eve")


async def _agent_changes(place: Place, campaign: Campaign) -> None:
    change = AgentUpdate(provider_agent_id="other")
    await place.engine.agents.update(place.workspace, campaign.agent_id or "", change, actor="user:eve")


async def _address_changes(place: Place, campaign: Campaign) -> None:
    change = TrunkUpdate(address="sip.other.example")
    await place.engine.trunks.update(place.workspace, campaign.trunk_id or "", change, actor="user:eve")


async def _caller_id_changes(place: Place, campaign: Campaign) -> None:
    number = await place.number(SENDER)
    change = NumberUpdate(trunk_id=campaign.trunk_id)
    await place.engine.numbers.update(place.workspace, number.id, change, actor="user:eve")


async def _group_number_changes(place: Place, campaign: Campaign) -> None:
    number = await place.number(OTHER_SENDER)
    change = NumberUpdate(trunk_id=campaign.trunk_id)
    await place.engine.numbers.update(place.workspace, number.id, change, actor="user:eve")


async def _taken_back(place: Place) -> Sequence[Problem]:
    """Return what the status says of starts that were taken back."""
    status = await place.engine.status(place.workspace)
    return [one for one in status.findings if one.code == "start_taken_back"]


@pytest.mark.parametrize("state", ["ready", "scheduled", "paused"])
@pytest.mark.parametrize(
    ("is_call", "change"),
    [
        (False, _text_changes),
        (False, _pool_changes),
        (False, _footer_changes),
        (False, _number_changes),
        (True, _agent_changes),
        (True, _address_changes),
        (True, _caller_id_changes),
        (True, _group_number_changes),
    ],
)
async def test_an_approval_ends_with_a_change_before_the_beginning(
    place: Place, state: str, is_call: bool, change: Callable[[Place, Campaign], Awaitable[None]]
) -> None:
    """What it says, or from where: its start is taken back if it lies ahead, and `now` says why."""
    await place.limit(approve_over_contacts=0)
    campaigns, made = place.engine.campaigns, await place.later(is_call=is_call)
    await place.approve(made, BEN)
    if state != "ready":
        await place.start(made, ANN)
    if state == "paused":
        await campaigns.pause(place.workspace, made.id, actor=ANN)
    await change(place, made)
    found = await campaigns.get(place.workspace, made.id)
    assert found.status is CampaignStatus.READY
    approval = await campaigns.approval(place.workspace, made.id)
    assert (approval.is_missing, approval.changed_by) == (True, found.changed_by)
    assert found.changed_by in {"api:1", "user:eve"}
    with pytest.raises(AwaitsApproval):
        await place.start(made, BEN)
    now = await campaigns.now(place.workspace, made.id)
    assert ("because what was approved has changed" in now.message) is (state != "ready")
    assert [one.path for one in await _taken_back(place)] == ([] if state == "ready" else [made.id])
    await place.approve(made, ANN)
    assert (await place.start(made, BEN)).status is CampaignStatus.SCHEDULED
    assert await _taken_back(place) == []


async def test_what_nobody_sees_leaves_an_approved_start(place: Place) -> None:
    """Names, rates, the footer of a call, and what other campaigns use."""
    await place.limit(approve_over_contacts=0)
    engine, call, text = place.engine, await place.later(is_call=True), await place.later()
    for one in (call, text):
        await place.approve(one, BEN)
        await place.start(one, ANN)
    other = await engine.agents.create(place.workspace, NewAgent(name="Otto", provider="simulator"))
    spare = await engine.numbers.create(place.workspace, NewNumber(phone="+12025550102"))
    number = await place.number(SENDER)
    await engine.agents.update(place.workspace, call.agent_id or "", AgentUpdate(name="Eva"), actor=ANN)
    await engine.agents.update(place.workspace, other.id, AgentUpdate(provider_agent_id="other"), actor=ANN)
    await engine.trunks.update(place.workspace, call.trunk_id or "", TrunkUpdate(name="West"), actor=ANN)
    await engine.numbers.update(place.workspace, number.id, NumberUpdate(rate_per_minute=7), actor=ANN)
    await engine.numbers.update(place.workspace, spare.id, NumberUpdate(trunk_id=call.trunk_id), actor=ANN)
    await engine.campaigns.update(place.workspace, text.id, CampaignUpdate(rate_per_minute=7, body="Hi"), actor="api:1")
    for one in (call, text):
        assert (await engine.campaigns.get(place.workspace, one.id)).status is CampaignStatus.SCHEDULED
    await engine.sms_settings.update(place.workspace, SmsSettingsUpdate(footer_enabled=False), actor=ANN)
    found = [(await engine.campaigns.get(place.workspace, one.id)).status for one in (call, text)]
    assert found == [CampaignStatus.SCHEDULED, CampaignStatus.READY]


@pytest.mark.parametrize("limit", [0, None])
async def test_a_start_without_approval_is_not_taken_back(place: Place, limit: int | None) -> None:
    """A program's, after a change of what was approved once; any, where no start needs approval any more."""
    await place.limit(approve_over_contacts=0)
    campaign = await place.later()
    await place.approve(campaign, BEN)
    if limit is not None:
        await place.engine.campaigns.update(place.workspace, campaign.id, CampaignUpdate(body="Hey"), actor=ANN)
    await place.start(campaign, ANN if limit is None else "api:1")
    await place.limit(approve_over_contacts=limit)
    await _text_changes(place, campaign)
    assert (await place.engine.campaigns.get(place.workspace, campaign.id)).status is CampaignStatus.SCHEDULED


async def test_what_has_begun_goes_on_when_its_agent_changes(place: Place) -> None:
    """Also while it is paused: nobody takes back what was said."""
    await place.limit(approve_over_contacts=0)
    campaigns, call = place.engine.campaigns, await place.later(is_call=True)
    await campaigns.update(place.workspace, call.id, CampaignUpdate(scheduled_start_at=None), actor=ANN)
    await place.approve(call, BEN)
    await place.start(call, ANN)
    await campaigns.pause(place.workspace, call.id, actor=ANN)
    await _agent_changes(place, call)
    with pytest.raises(IllegalTransition):
        await campaigns.unschedule(place.workspace, call.id, actor=ANN)
    assert (await campaigns.resume(place.workspace, call.id, actor=ANN)).status is CampaignStatus.ACTIVE


@pytest.mark.parametrize("actor", ["library", "api", "cli:root"])
async def test_programs_and_commands_start_without_approval(place: Place, actor: str) -> None:
    """Approval is between people."""
    await place.limit(approve_over_contacts=0)
    campaign = await place.campaign()
    assert (await place.start(campaign, actor)).status is CampaignStatus.ACTIVE


async def test_only_what_is_ready_and_as_it_was_seen_can_be_approved(place: Place) -> None:
    """A draft cannot, nor an earlier revision; a start says first what else is missing."""
    await place.limit(approve_over_contacts=0)
    draft, ready = await place.campaign(body=""), await place.campaign()
    with pytest.raises(Conflict, match="draft"):
        await place.approve(draft, BEN)
    with pytest.raises(CannotStart):
        await place.start(draft, ANN)
    campaigns = place.engine.campaigns
    with pytest.raises(Conflict, match="changed meanwhile"):
        await campaigns.approve(place.workspace, ready.id, revision=ready.revision + 1, actor=BEN)
    with pytest.raises(InvalidRequest):
        await campaigns.approve(place.workspace, ready.id, revision=-1, actor=BEN)
    other = await place.engine.workspaces.create(NewWorkspace(name="Others"))
    for call in (campaigns.approval(other.id, ready.id), campaigns.approve(other.id, ready.id, revision=0, actor=BEN)):
        with pytest.raises(NotFound):
            await call
    await place.start(ready, "api")
    with pytest.raises(Conflict, match="active"):
        await place.approve(ready, BEN)
    assert await place.reason(ready) is None
