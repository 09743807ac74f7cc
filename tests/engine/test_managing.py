"""What a console asks the engine for: pages, look-ups, and moves that are safe to repeat."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import anyio
import attrs
import pytest

from outreach import (
    Conflict,
    FlowStep,
    InvalidRequest,
    NewAgent,
    NewCall,
    NewFlow,
    NewMessage,
    NewNumber,
    NotFound,
    Outreach,
    RecipientStatus,
    Workspace,
)
from outreach.errors import IllegalTransition
from outreach.events import CampaignStatusChanged, Event, OptedOut
from outreach.http import AnswerReplayed, IdempotentRequest, StoredAnswer
from outreach.models.campaign import Campaign
from outreach.testing.builders import new_id
from tests.engine.rig import contacts, given_campaign, given_workspace

pytestmark = pytest.mark.virtual_time


def request(made: list[Any], operation: str, key: str | None = "k", digest: str = "1") -> IdempotentRequest[Any]:
    """Return a request that notes what its answer was made of."""

    def render(item: Any, *_: Any) -> StoredAnswer:
        made.append(item)
        return StoredAnswer(body=f"answer {len(made)}".encode())

    return IdempotentRequest(operation=operation, key=key, digest=digest, render=render)


async def test_a_move_with_a_key_is_made_once(engine: Outreach, workspace: Workspace) -> None:
    """The second request gets the first answer, also where the move is not allowed any more."""
    campaign = await given_campaign(engine, workspace, contacts(2))
    campaigns = engine.campaigns
    start = engine.now() + timedelta(days=1)
    later = await given_campaign(engine, workspace, 1, schedule_type="scheduled", scheduled_start_at=start)
    await campaigns.start(workspace.id, later.id)
    made: list[Any] = []
    moves: list[tuple[Any, Campaign]] = [
        *((move, campaign) for move in (campaigns.start, campaigns.pause, campaigns.resume, campaigns.cancel)),
        (campaigns.unschedule, later),
    ]
    for move, moved in moves:
        first, second = (request(made, move.__name__) for _ in range(2))
        await move(workspace.id, moved.id, idempotency_key=first)
        with pytest.raises(AnswerReplayed):
            await move(workspace.id, moved.id, idempotency_key=second)
        assert first.answer == second.answer
    assert [one.status for one in made] == ["active", "paused", "active", "cancelled", "ready"]
    with pytest.raises(IllegalTransition):
        await campaigns.start(workspace.id, campaign.id, idempotency_key=request(made, "start", key=None))
    with pytest.raises(InvalidRequest, match="other content"):
        await campaigns.start(workspace.id, campaign.id, idempotency_key=request(made, "start", digest="2"))


async def test_a_program_repeats_a_move_under_a_name_of_its_own(engine: Outreach, workspace: Workspace) -> None:
    """It gets the campaign as it is now; without the name the move is refused, with other options too."""
    campaign = await given_campaign(engine, workspace, contacts(2))
    campaigns = engine.campaigns
    await campaigns.start(workspace.id, campaign.id, idempotency_key="go")
    await campaigns.cancel(workspace.id, campaign.id)
    assert (await campaigns.start(workspace.id, campaign.id, idempotency_key="go")).status == "cancelled"
    with pytest.raises(InvalidRequest, match="other content"):
        await campaigns.start(workspace.id, campaign.id, allow_unknown_placeholders=True, idempotency_key="go")
    for name in ("put away", "put away", "again"):
        assert (await campaigns.archive(workspace.id, campaign.id, idempotency_key=name)).archived_at is not None
    await campaigns.unarchive(workspace.id, campaign.id)
    assert (await campaigns.archive(workspace.id, campaign.id, idempotency_key="again")).archived_at is None


async def test_a_program_repeats_entries_and_decisions_under_a_name_of_its_own(engine: Outreach) -> None:
    """What was taken off the register since stays off it."""
    workspace = await given_workspace(engine)
    register = engine.unsubscribes
    numbers = ("+14155550171", "+14155550172")
    entries = await register.add(workspace.id, *numbers, idempotency_key="list")
    assert await register.add(workspace.id, *numbers, idempotency_key="list") == entries
    await register.remove(workspace.id, numbers[0])
    assert await register.add(workspace.id, *numbers, idempotency_key="list") == entries[1:]
    assert await register.filter_unsubscribed(workspace.id, "sms", numbers) == {numbers[1]}
    await engine.messages.receive(workspace.id, from_number="+14155550177", to="+14155550100", body="do not stop")
    [held] = await register.list_held(workspace.id)
    decided = await register.resolve(workspace.id, held.phone, opted_out=True, idempotency_key="d")
    assert await register.resolve(workspace.id, held.phone, opted_out=True, idempotency_key="d") == decided
    with pytest.raises(InvalidRequest, match="other content"):
        await register.resolve(workspace.id, held.phone, opted_out=False, idempotency_key="d")


async def test_what_is_created_with_a_key_is_created_once(engine: Outreach, workspace: Workspace) -> None:
    """Agents, numbers, flows, entries of the register and decisions about held numbers; the answer is the first one."""
    made: list[Any] = []
    await engine.messages.receive(workspace.id, from_number="+14155550178", to="+14155550100", body="do not stop")
    flow = NewFlow(name="Welcome", steps=[FlowStep(kind="send", body="Hi")])
    create: Any
    for create, new in (
        (engine.agents.create, NewAgent(name="Ada", from_number="+14155550100")),
        (engine.numbers.create, NewNumber(phone="+14155550100", carrier="twilio")),
        (engine.flows.create, flow),
        (partial(engine.unsubscribes.add, evidence="wrote to us"), "+14155550177"),
        (partial(engine.unsubscribes.resolve, opted_out=True), "+14155550178"),
    ):
        first, second = (request(made, repr(new)) for _ in range(2))
        await create(workspace.id, new, idempotency_key=first)
        with pytest.raises(AnswerReplayed):
            await create(workspace.id, new, idempotency_key=second)
        assert first.answer == second.answer
    agent, number, known_flow, [entry], decided = made
    assert list(await engine.agents.list(workspace.id)) == [agent]
    assert list(await engine.numbers.list(workspace.id)) == [number]
    assert await engine.numbers.get(workspace.id, number.id) == number
    assert list(await engine.flows.list(workspace.id)) == [await engine.flows.get(workspace.id, known_flow.id)]
    assert list(await engine.unsubscribes.list(workspace.id)) == [entry, decided]
    assert (entry.source, entry.evidence) == ("operator", "wrote to us")


async def test_recipients_are_paged_by_state_and_reason(engine: Outreach, workspace: Workspace) -> None:
    """One that is a duplicate is skipped as it is loaded."""
    people = [*contacts(3), contacts(1)[0]]
    campaign = await given_campaign(engine, workspace, people)
    pages = engine.campaigns.list_recipients
    first = await pages(workspace.id, campaign.id, limit=2)
    assert [one.position for one in first] == [0, 1]
    rest = await pages(workspace.id, campaign.id, after=first.next)
    assert [one.position for one in rest] == [2, 3]
    assert [one.position for one in await pages(workspace.id, campaign.id, status=RecipientStatus.SKIPPED)] == [3]
    assert [one.position for one in await pages(workspace.id, campaign.id, reason="duplicate")] == [3]
    assert await engine.campaigns.get_recipient(workspace.id, campaign.id, 3) == rest.items[1]
    history = await engine.campaigns.recipient_history(workspace.id, campaign.id, 3)
    assert (history.position, history.reason) == (3, "duplicate")
    by_phone = await engine.campaigns.contact_history(workspace.id, campaign.id, people[0].phone_number)
    assert [await engine.campaigns.recipient_history(workspace.id, campaign.id, at) for at in (0, 3)] == list(by_phone)
    for missing in (engine.campaigns.get_recipient, engine.campaigns.recipient_history):
        with pytest.raises(NotFound):
            await missing(workspace.id, campaign.id, 4)
    with pytest.raises(InvalidRequest):
        await engine.campaigns.get_recipient(workspace.id, campaign.id, -1)
    wrong: list[dict[str, Any]] = [{"status": "x"}, {"reason": 1}, {"after": -2}, {"limit": 0}, {"phone": 1}]
    wrong += [{"external_id": ""}, {"external_id": "x" * 256}]
    for arguments in wrong:
        with pytest.raises(InvalidRequest):
            await pages(workspace.id, campaign.id, **arguments)


async def test_recipients_are_found_by_number_and_by_the_applications_id(engine: Outreach) -> None:
    """In any notation, also what is no number; state, reason and place narrow it down."""
    workspace = await given_workspace(engine)
    first, second, third = contacts(3)
    people = [
        attrs.evolve(first, external_id="crm-1"),
        attrs.evolve(second, external_id="crm-2"),
        attrs.evolve(first, external_id="crm-2"),
        attrs.evolve(third, phone_number="nonsense"),
    ]
    campaign = await given_campaign(engine, workspace, people)

    async def found(**given: Any) -> list[int]:
        return [one.position for one in await engine.campaigns.list_recipients(workspace.id, campaign.id, **given)]

    written = first.phone_number.removeprefix("+")
    assert await found(phone=first.phone_number) == await found(phone=f"{written[:1]} {written[1:]}") == [0, 2]
    page = await engine.campaigns.list_recipients(workspace.id, campaign.id, phone=first.phone_number, limit=1)
    assert [one.position for one in page] == [0]
    assert await found(phone=first.phone_number, after=page.next) == [2]
    assert await found(phone=first.phone_number, status=RecipientStatus.SKIPPED) == [2]
    assert await found(phone=first.phone_number, external_id="crm-2") == [2]
    assert await found(phone="nonsense") == [3]
    assert await found(phone="+14155559999") == []
    assert await found(external_id="crm-2") == [1, 2]
    assert await found(external_id="crm-2", reason="duplicate") == [2]
    assert await found(external_id="crm-9") == []
    other = await given_workspace(engine)
    with pytest.raises(NotFound):
        await engine.campaigns.list_recipients(other.id, campaign.id, phone=first.phone_number)


async def test_calls_and_inbound_messages_are_listed_newest_first(engine: Outreach, workspace: Workspace) -> None:
    """The identifier of a message is no place to go on from."""
    agent = await engine.agents.create(workspace.id, NewAgent(name="Ada"))
    calls = [await engine.calls.create(workspace.id, NewCall(agent_id=agent.id, to=f"+1415555010{n}")) for n in "123"]
    assert [one.id for one in await engine.calls.list(workspace.id)] == [call.id for call in reversed(calls)]
    campaign = await given_campaign(engine, workspace, contacts(1))
    assert list(await engine.calls.list(workspace.id, campaign_id=campaign.id)) == []
    with pytest.raises(NotFound):
        await engine.calls.list(workspace.id, campaign_id=new_id())
    for body in ("one", "two", "three"):
        await anyio.sleep(1)
        await engine.messages.receive(workspace.id, from_number="+14155550177", to="+14155550100", body=body)
    found = (await engine.messages.list_inbound(workspace.id)).items
    assert [one.body for one in found] == ["three", "two", "one"]
    assert await engine.messages.get_inbound(workspace.id, found[1].id) == found[1]
    with pytest.raises(NotFound):
        await engine.messages.get_inbound(workspace.id, new_id())
    with pytest.raises(InvalidRequest):
        await engine.messages.list_inbound(workspace.id, after=new_id())


async def test_replies_wait_until_they_are_answered(engine: Outreach, workspace: Workspace) -> None:
    """A keyword is answered by the engine; a single message to the sender answers all before it, a test does not."""
    await engine.numbers.create(workspace.id, NewNumber(phone="+14155550100", carrier="twilio"))

    async def waiting() -> list[str]:
        found = await engine.messages.list_inbound(workspace.id, unanswered=True)
        return [one.body for one in found]

    async def write(sender: str, body: str) -> None:
        await anyio.sleep(1)
        await engine.messages.receive(workspace.id, from_number=sender, to="+14155550100", body=body)

    for sender, body in (("+14155550177", "one"), ("+14155550178", "HELP"), ("+14155550179", "two")):
        await write(sender, body)
    assert await waiting() == ["two", "one"]
    assert [one.body async for one in engine.messages.iter_inbound(workspace.id, unanswered=True)] == ["two", "one"]
    page = await engine.messages.list_inbound(workspace.id, unanswered=True, limit=1)
    more = await engine.messages.list_inbound(workspace.id, unanswered=True, after=page.next)
    assert [one.body for one in (*page, *more)] == ["two", "one"]
    await engine.messages.send(workspace.id, NewMessage(to="+14155550179", body="Hi"))
    assert await waiting() == ["one"]
    await write("+14155550179", "three")
    assert await waiting() == ["three", "one"]
    await write("+14155550180", "please don't stop")
    both = await engine.messages.list_inbound(workspace.id, unclear=True, unanswered=True)
    assert [one.body for one in both] == ["please don't stop"]
    await anyio.sleep(timedelta(days=31).total_seconds())
    assert await waiting() == []


async def test_events_are_read_by_the_page(engine: Outreach) -> None:
    """From a number on, of one workspace, without waiting; the position passes over what was not asked for."""
    workspace, other = await given_workspace(engine), await given_workspace(engine)
    begin = await engine.events.page(workspace_id=workspace.id)
    assert (list(begin.events), begin.more) == ([], False)
    campaign = await given_campaign(engine, workspace, contacts(1))
    await engine.unsubscribes.add(workspace.id, "+14155550177", "+14155550178")
    await given_campaign(engine, other, contacts(1))
    whole = await engine.events.page(workspace_id=workspace.id, since=begin.position)
    kinds = [type(event) for event in whole.events]
    assert kinds.count(OptedOut) == 2
    assert CampaignStatusChanged in kinds
    assert {event.workspace_id for event in whole.events} == {workspace.id}
    assert whole.position > whole.events[-1].number
    found: list[Event] = []
    position, more = begin.position, True
    while more:
        page = await engine.events.page(OptedOut, workspace_id=workspace.id, since=position, limit=1)
        assert len(page.events) <= 1
        found += page.events
        position, more = page.position, page.more
    assert found == [event for event in whole.events if isinstance(event, OptedOut)]
    assert position == whole.position
    assert campaign.workspace_id == workspace.id
    with pytest.raises(Conflict, match="has come to event"):
        await engine.events.page(since=whole.position + 1)
    with pytest.raises(NotFound):
        await engine.events.page(workspace_id=new_id())
    wrong: list[dict[str, Any]] = [{"since": -1}, {"limit": 0}]
    for arguments in wrong:
        with pytest.raises(InvalidRequest):
            await engine.events.page(**arguments)
