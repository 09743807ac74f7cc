"""A new campaign leaves out contacts of other campaigns and people who were contacted lately, and counts overlaps."""

from __future__ import annotations

import tracemalloc
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import attrs
import pytest

from outreach import (
    Conflict,
    EngineConfig,
    InvalidRequest,
    NewCallCampaign,
    NewRecipient,
    NewSmsCampaign,
    NotFound,
    Outreach,
)
from outreach.models import AudienceCounts, CampaignCreated, LeaveOut, NewFollowUp
from outreach.models.campaign import Campaign
from outreach.models.states import CampaignStatus, DispatchState, RecipientStatus
from outreach.protocols.storage import Storage
from outreach.storage.sqlite.memory import MemoryStorage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import NOW, make_agent, make_campaign, make_dispatch, make_prepared, new_id
from outreach.testing.clock import ManualClock
from outreach.testing.storage_tables.base_contract import OTHER_WORKSPACE, THIS_WORKSPACE, pending, publish
from tests.engine.conftest import OpenStorage, given_workspaces
from tests.engine.rig import given_workspace

pytestmark = pytest.mark.anyio

DAY = timedelta(days=1)
CHUNK = 5
NEW = NewSmsCampaign(name="New", body="Hi", carrier="twilio", from_number="+14155550100")


def phone(index: int) -> str:
    """Return one of many numbers."""
    return f"+1415{5550000 + index}"


def listed(indexes: Iterable[int]) -> list[NewRecipient]:
    """Return contacts with these numbers."""
    return [NewRecipient(phone_number=phone(index)) for index in indexes]


@pytest.fixture(name="storage")
def _storage(open_storage: OpenStorage, clock: ManualClock) -> Storage:
    """Return a storage that the engine opens."""
    return open_storage(clock)


@pytest.fixture(name="writing")
async def _writing(storage: Storage, clock: ManualClock) -> AsyncIterator[Outreach]:
    """Open an engine that does not dispatch and loads in small chunks."""
    async with Outreach(storage, clock=clock, config=EngineConfig(insert_batch_size=CHUNK)) as engine:
        await given_workspaces(storage)
        yield engine


async def made(engine: Outreach, name: str, contacts: Sequence[NewRecipient], **more: Any) -> CampaignCreated:
    """Create a campaign."""
    return await engine.campaigns.create_sms(THIS_WORKSPACE, attrs.evolve(NEW, name=name), contacts, **more)


async def numbers_of(engine: Outreach, campaign: Campaign) -> list[str]:
    """Return the numbers that a campaign contacts, in their order."""
    found = [one async for one in engine.campaigns.iter_recipients(campaign.workspace_id, campaign.id)]
    return [one.phone_number for one in found if one.status is RecipientStatus.PENDING]


def people(counts: AudienceCounts | None) -> dict[str, tuple[int, bool]]:
    """Return the people of each campaign, and whether they are left out."""
    assert counts is not None
    return {one.name: (one.people, one.left_out) for one in counts.campaigns}


async def given_contacted(
    storage: Storage, number: str, ago: timedelta, *, workspace_id: str = THIS_WORKSPACE, **changes: Any
) -> None:
    """Write a request to a number, of a campaign that nobody counts."""
    fields = {"state": DispatchState.ACCEPTED, "provider_id": new_id(), **changes}
    campaign = make_campaign(name="Earlier", workspace_id=workspace_id, created_at=NOW - 9000 * DAY)

    def write(tx: Transaction) -> None:
        publish(tx, campaign, pending(make_prepared(phone_number="x", phone=None)))
        place: dict[str, Any] = {"campaign_id": campaign.id, "position": 0, "workspace_id": workspace_id}
        tx.dispatches.insert(make_dispatch(to=number, created_at=NOW - ago, **place, **fields))

    await storage.write(write)


@pytest.mark.parametrize("size", [4, 23])
async def test_contacts_of_named_campaigns_are_left_out(writing: Outreach, size: int) -> None:
    """Loaded at once or in chunks; each person counts once in each campaign; repeated people are dropped."""
    first = (await made(writing, "First", listed([0, 1]))).campaign
    second = (await made(writing, "Second", listed([1, 3]))).campaign
    await made(writing, "Third", listed([2, 3, 90]))
    given = [*listed(range(size)), *listed([0, 2])]
    created = await made(writing, "New", given, leave_out=LeaveOut(campaigns=[first.id, second.id]))
    assert await numbers_of(writing, created.campaign) == [phone(2), *map(phone, range(4, size))]
    counts = created.audience
    assert people(counts) == {"First": (2, True), "Second": (2, True), "Third": (2, False)}
    assert counts is not None
    assert (counts.contacts, counts.people, counts.left_out, counts.contacted) == (size + 2, size, 4, None)
    assert counts.contacts == created.campaign.counters.total + created.opted_out_excluded + counts.left_out


async def test_all_contacts_of_a_campaign_count(writing: Outreach, storage: Storage) -> None:
    """In whatever state they are, and the campaign too; every spelling of a number is the same person."""
    other = (await made(writing, "Other", [NewRecipient(phone_number="+5215512345678"), *listed([1, 1])])).campaign

    def end(tx: Transaction) -> None:
        recipient = tx.recipients.get(THIS_WORKSPACE, other.id, 1)
        assert recipient is not None
        tx.recipients.put(
            THIS_WORKSPACE, attrs.evolve(recipient, status=RecipientStatus.FAILED, reason="unreachable", ended_at=NOW)
        )

    await storage.write(end)
    await writing.campaigns.cancel(THIS_WORKSPACE, other.id)
    given = [NewRecipient(phone_number="+525512345678"), *listed([1, 2]), NewRecipient(phone_number="none")]
    created = await made(writing, "New", given, leave_out=LeaveOut(campaigns=[other.id]))
    assert await numbers_of(writing, created.campaign) == [phone(2)]
    assert created.audience is not None
    assert (created.audience.people, created.audience.left_out) == (3, 2)


async def test_people_who_were_contacted_lately_are_left_out(writing: Outreach, storage: Storage) -> None:
    """By requests less than so many days old in the workspace, unless they certainly reached nobody."""
    await given_contacted(storage, phone(0), 30 * DAY - timedelta(seconds=1))
    await given_contacted(storage, phone(1), 30 * DAY)
    await given_contacted(storage, phone(2), DAY, state=DispatchState.REFUSED, reason="unreachable")
    await given_contacted(storage, phone(3), DAY, state=DispatchState.NOT_SENT)
    await given_contacted(storage, phone(4), DAY, workspace_id=OTHER_WORKSPACE)
    await given_contacted(storage, "+5215512345678", DAY, state=DispatchState.UNKNOWN)
    given = [*listed(range(6)), NewRecipient(phone_number="+525512345678")]
    created = await made(writing, "New", given, leave_out=LeaveOut(contacted_within_days=30))
    assert await numbers_of(writing, created.campaign) == [phone(1), phone(3), phone(4), phone(5)]
    assert created.audience is not None
    assert (created.audience.contacted, created.audience.left_out) == (3, 3)


async def test_an_audience_is_counted_before_its_campaign_exists(writing: Outreach, storage: Storage) -> None:
    """As a creation counts it, and a preflight; nothing is created."""
    first = (await made(writing, "First", listed(range(20)))).campaign
    await given_contacted(storage, phone(25), DAY)
    given = [*listed(range(10, 30)), *listed([10])]
    leave_out = LeaveOut(campaigns=[first.id], contacted_within_days=7)
    counts = await writing.campaigns.count_audience(THIS_WORKSPACE, given, leave_out=leave_out)
    assert people(counts) == {"First": (10, True), "Earlier": (0, False)}
    assert (counts.contacts, counts.people, counts.left_out, counts.contacted) == (21, 20, 12, 1)
    assert (await writing.campaigns.list(THIS_WORKSPACE)).total == 2
    found = await writing.campaigns.preflight_new(THIS_WORKSPACE, NEW, given, leave_out=leave_out)
    assert found.audience == counts
    assert {one.rule: one.count for one in found.left_out} == {"in_other_campaign": 11, "contacted_recently": 1}
    assert found.contacted == 9
    assert (await writing.campaigns.preflight_new(THIS_WORKSPACE, NEW, given)).audience is None
    created = await made(writing, "New", given, leave_out=leave_out)
    assert created.audience == counts
    assert (await made(writing, "All", given)).audience is None


async def test_the_newest_campaigns_are_counted_without_being_named(writing: Outreach, clock: ManualClock) -> None:
    """Ten at most, the newest first; a named older one comes before them, and counts once."""
    campaigns = []
    for number in range(12):
        clock.advance(1)
        campaigns.append((await made(writing, f"C{number}", listed(range(number + 1)))).campaign.id)
    counts = await writing.campaigns.count_audience(THIS_WORKSPACE, listed(range(100)))
    assert [one.name for one in counts.campaigns] == [f"C{number}" for number in range(11, 1, -1)]
    assert people(counts)["C11"] == (12, False)
    leave_out = LeaveOut(campaigns=[campaigns[0], campaigns[-1], campaigns[0]])
    named = await writing.campaigns.count_audience(THIS_WORKSPACE, [], leave_out=leave_out)
    assert [one.name for one in named.campaigns] == ["C0", "C11", *(f"C{number}" for number in range(10, 1, -1))]


async def test_a_list_of_which_everybody_is_left_out_says_why(writing: Outreach, storage: Storage) -> None:
    """And creates nothing."""
    first = (await made(writing, "First", listed(range(20)))).campaign
    await given_contacted(storage, phone(20), DAY)
    leave_out = LeaveOut(campaigns=[first.id], contacted_within_days=2)
    with pytest.raises(InvalidRequest, match=r"every contact: 20 in 'First', 1 contacted within the days"):
        await made(writing, "New", listed(range(21)), leave_out=leave_out)
    with pytest.raises(InvalidRequest, match="at least 1 element"):
        await made(writing, "New", [], leave_out=leave_out)
    assert (await writing.campaigns.list(THIS_WORKSPACE)).total == 2


async def test_a_campaign_that_cannot_be_looked_up_is_refused(writing: Outreach, storage: Storage) -> None:
    """One of another workspace and an erased one; its place is named."""
    erased = make_campaign(status=CampaignStatus.COMPLETED, completed_at=NOW, erased_at=NOW, name="Erased")
    theirs = make_campaign(workspace_id=OTHER_WORKSPACE)

    def write(tx: Transaction) -> None:
        for campaign in (erased, theirs):
            publish(tx, campaign, pending(make_prepared()))

    await storage.write(write)
    ours = (await made(writing, "Ours", listed([1]))).campaign
    for campaign, match in ((erased, "erased"), (theirs, "no such campaign")):
        with pytest.raises(InvalidRequest, match=rf"leave_out\.campaigns\[1\]: .*{match}"):
            await made(writing, "New", listed([2]), leave_out=LeaveOut(campaigns=[ours.id, campaign.id]))
    counts = await writing.campaigns.count_audience(THIS_WORKSPACE, listed([1]))
    assert people(counts) == {"Ours": (1, False)}
    with pytest.raises(NotFound):
        await writing.campaigns.count_audience(new_id(), listed([1]))


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"campaigns": ["x"] * 21}, "campaigns"),
        ({"campaigns": "x"}, "campaigns"),
        ({"contacted_within_days": 0}, "contacted_within_days"),
        ({"contacted_within_days": 3651}, "contacted_within_days"),
    ],
)
def test_whom_to_leave_out_has_bounds(fields: dict[str, Any], path: str) -> None:
    """A string is no list of ids."""
    with pytest.raises(InvalidRequest, match=path):
        LeaveOut(**fields)


async def test_clones_and_follow_ups_leave_contacts_out_too(writing: Outreach, storage: Storage) -> None:
    """Their own source is not one of the other campaigns, and cannot be named."""
    source = (await made(writing, "Source", listed(range(6)))).campaign
    other = (await made(writing, "Other", listed([0, 1]))).campaign
    leave_out = LeaveOut(campaigns=[other.id])
    clone = await writing.campaigns.clone(THIS_WORKSPACE, source.id, leave_out=leave_out)
    assert await numbers_of(writing, clone.campaign) == [phone(index) for index in range(2, 6)]
    assert people(clone.audience) == {"Other": (2, True)}
    await writing.campaigns.delete(THIS_WORKSPACE, clone.campaign.id)
    with pytest.raises(InvalidRequest, match="is the campaign itself"):
        await writing.campaigns.clone(THIS_WORKSPACE, source.id, leave_out=LeaveOut(campaigns=[source.id]))

    def fail(tx: Transaction) -> None:
        for position in range(3):
            recipient = tx.recipients.get(THIS_WORKSPACE, source.id, position)
            assert recipient is not None
            ended = attrs.evolve(recipient, status=RecipientStatus.FAILED, reason="unreachable", ended_at=NOW)
            tx.recipients.put(THIS_WORKSPACE, ended)

    await storage.write(fail)
    new = NewFollowUp(results=["failed"], leave_out=leave_out)
    followed = await writing.campaigns.follow_up(THIS_WORKSPACE, source.id, new)
    assert await numbers_of(writing, followed.created.campaign) == [phone(2)]
    assert followed.selected == 3
    assert people(followed.created.audience) == {"Other": (2, True)}
    everybody = (await made(writing, "All", listed(range(6)))).campaign
    with pytest.raises((InvalidRequest, Conflict), match="leaves out every contact: 3 in 'All'"):
        await writing.campaigns.follow_up(
            THIS_WORKSPACE, source.id, attrs.evolve(new, leave_out=LeaveOut(campaigns=[everybody.id]))
        )


async def test_a_calling_campaign_leaves_contacts_out(writing: Outreach, storage: Storage) -> None:
    """Of campaigns of either channel."""
    agent = make_agent()
    await storage.write(lambda tx: tx.agents.insert(agent))
    other = (await made(writing, "Other", listed([0]))).campaign
    new = NewCallCampaign(name="Calls", agent_id=agent.id)
    leave_out = LeaveOut(campaigns=[other.id])
    created = await writing.campaigns.create_call(THIS_WORKSPACE, new, listed([0, 1]), leave_out=leave_out)
    assert await numbers_of(writing, created.campaign) == [phone(1)]


async def test_a_key_returns_the_counts_again(writing: Outreach, storage: Storage) -> None:
    """And refuses another choice of whom to leave out."""
    other = (await made(writing, "Other", listed([0]))).campaign
    chosen, key = LeaveOut(campaigns=[other.id], contacted_within_days=3), "order-42"
    created = await made(writing, "New", listed([0, 1]), leave_out=chosen, idempotency_key=key)
    again = await made(writing, "New", listed([0, 1]), leave_out=chosen, idempotency_key=key)
    assert again == created
    with pytest.raises(InvalidRequest, match="key"):
        await made(writing, "New", listed([0, 1]), idempotency_key=key)
    for name, leave_out in (("copy", None), ("copy 2", chosen)):
        source = created.campaign.id
        more: dict[str, Any] = {"name": name, "leave_out": leave_out, "idempotency_key": name}
        copied = await writing.campaigns.clone(THIS_WORKSPACE, source, **more)
        assert await writing.campaigns.clone(THIS_WORKSPACE, source, **more) == copied


async def test_a_long_list_is_not_held_in_memory(clock: ManualClock) -> None:
    """20,000 contacts take some megabytes, those of the set of people."""

    def many() -> Iterator[NewRecipient]:
        for index in range(20_000):
            yield NewRecipient(phone_number=f"+4930{10_000_000 + index}", first_name=f"Person {index}")

    async with Outreach(MemoryStorage(clock=clock), clock=clock) as engine:
        workspace = await given_workspace(engine)
        tracemalloc.start()
        try:
            counts = await engine.campaigns.count_audience(workspace.id, many())
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert counts.people == 20_000
    assert peak < 3_000_000
