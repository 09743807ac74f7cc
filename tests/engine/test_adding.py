"""Contacts that are added to campaigns that exist."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

import anyio
import attrs
import pytest

from outreach import (
    CampaignStatus,
    CampaignUpdate,
    Conflict,
    EngineConfig,
    InvalidRequest,
    NewRecipient,
    NotFound,
    Outreach,
    WorkspaceUpdate,
)
from outreach.errors import RequestInProgress, SmsCampaignsDisabled, StorageError
from outreach.models import LeaveOut, RecipientsAdded
from outreach.models.campaign import Campaign, Counters
from outreach.models.states import TrailStepKind
from outreach.protocols.storage import Storage
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.conftest import OpenStorage
from tests.engine.rig import (
    QUICK,
    Rig,
    WatchedStorage,
    contacts,
    dispatching,
    given_campaign,
    given_workspace,
    people,
    reaches,
    sending,
    start_campaign,
    until,
)

pytestmark = pytest.mark.virtual_time

S = CampaignStatus
SMALL = attrs.evolve(QUICK, insert_batch_size=10, change_poll_seconds=1.0, heartbeat_interval_seconds=2.0)
"""Ten contacts are loaded out of sight first."""
CALM = EngineConfig(insert_batch_size=10)
"""Looks around seldom, so that days of virtual time pass fast."""


@pytest.fixture
def storage(open_storage: OpenStorage) -> Storage:
    """Return a database that the engine opens."""
    return open_storage(clock_of_loop())


@pytest.fixture
async def writing(storage: Storage) -> AsyncIterator[Outreach]:
    """Open an engine that does not dispatch."""
    async with Outreach(storage, clock=clock_of_loop(), config=CALM) as engine:
        yield engine


async def counted(engine: Outreach, campaign: Campaign) -> Counters:
    """Return a campaign's counters, which equal a recount."""
    found = await engine.campaigns.get(campaign.workspace_id, campaign.id)
    assert found.counters == await engine.campaigns.recount(campaign.workspace_id, campaign.id)
    return found.counters


async def states(engine: Outreach, campaign: Campaign) -> list[tuple[int, str, str | None]]:
    """Return each contact's position, state and reason."""
    return [(one.position, one.status.value, one.reason) for one in await people(engine, campaign)]


@pytest.mark.parametrize("count", [4, 35])
async def test_added_contacts_of_a_running_campaign_are_contacted(storage: Storage, count: int) -> None:
    """In one transaction or in slices: each gets one message, and the campaign then completes."""
    async with sending(storage, 200, config=SMALL) as (rig, campaign):
        added = await rig.engine.campaigns.add_recipients(
            campaign.workspace_id, campaign.id, contacts(count, first=500)
        )
        assert added == RecipientsAdded(campaign_id=campaign.id, added=count, skipped=0, opted_out_excluded=0)
        done = await reaches(rig.engine, campaign, "completed")
        assert done.counters == Counters(total=200 + count, completed=200 + count, successful=200 + count)
        assert len({request.to for request in rig.carrier.requests}) == 200 + count == len(rig.carrier.requests)


@pytest.mark.parametrize("count", [2, 25])
async def test_duplicates_invalid_numbers_and_the_register_count_as_in_a_creation(
    writing: Outreach, count: int
) -> None:
    """Also a number that the campaign has in another spelling."""
    workspace = await given_workspace(writing)
    campaign = await given_campaign(writing, workspace, 3)
    await writing.unsubscribes.add(workspace.id, "+14155550900")
    odd = [NewRecipient(phone_number=one) for one in ("(415) 555-0001", "call me", "+14155550900", "+14155550500")]
    added = await writing.campaigns.add_recipients(workspace.id, campaign.id, [*contacts(count, first=500), *odd])
    assert added == RecipientsAdded(campaign_id=campaign.id, added=count + 3, skipped=3, opted_out_excluded=1)
    assert await counted(writing, campaign) == Counters(total=count + 6, pending=count + 3, open=count + 3)
    assert (await states(writing, campaign))[count + 3 :] == [
        (count + 3, "skipped", "duplicate"),
        (count + 4, "skipped", "invalid_number"),
        (count + 5, "skipped", "duplicate"),
    ]


async def test_an_unsubscribed_contact_alone_is_no_error(writing: Outreach) -> None:
    """An application adds each person who signs up, whatever the register says."""
    workspace = await given_workspace(writing)
    campaign = await given_campaign(writing, workspace, 3)
    await writing.unsubscribes.add(workspace.id, "+14155550500")
    added = await writing.campaigns.add_recipients(workspace.id, campaign.id, contacts(1, first=500))
    assert (added.added, added.opted_out_excluded) == (0, 1)
    assert (await counted(writing, campaign)).total == 3


async def test_nobody_to_add_is_an_error(writing: Outreach) -> None:
    """As in a creation."""
    workspace = await given_workspace(writing)
    campaign = await given_campaign(writing, workspace, 3)
    with pytest.raises(InvalidRequest, match="at least 1 element"):
        await writing.campaigns.add_recipients(workspace.id, campaign.id, [])


async def _bring_to(engine: Outreach, campaign: Campaign, status: CampaignStatus) -> None:
    campaigns, names = engine.campaigns, (campaign.workspace_id, campaign.id)
    match status:
        case S.DRAFT:
            await campaigns.update(*names, CampaignUpdate(from_number=None))
        case S.SCHEDULED:
            start = engine.now() + timedelta(days=1)
            await campaigns.update(*names, CampaignUpdate(scheduled_start_at=start))
            await campaigns.start(*names)
        case S.ACTIVE:
            await campaigns.start(*names)
        case S.PAUSED:
            await campaigns.start(*names)
            await campaigns.pause(*names)
        case S.CANCELLED:
            await campaigns.cancel(*names)
        case S.COMPLETED:
            await campaigns.start(*names)
            for one in await people(engine, campaign):
                await campaigns.skip_recipient(*names, one.position)
        case _:
            pass


@pytest.mark.parametrize("count", [1, 25])
@pytest.mark.parametrize("status", [S.DRAFT, S.READY, S.SCHEDULED, S.ACTIVE, S.PAUSED])
async def test_a_campaign_that_has_not_ended_takes_contacts(
    writing: Outreach, status: CampaignStatus, count: int
) -> None:
    """Its state stays, and the revision too: what is planned stays valid."""
    workspace = await given_workspace(writing)
    campaign = await given_campaign(writing, workspace, 3)
    await _bring_to(writing, campaign, status)
    before = await writing.campaigns.get(workspace.id, campaign.id)
    await writing.campaigns.add_recipients(workspace.id, campaign.id, contacts(count, first=500))
    after = await writing.campaigns.get(workspace.id, campaign.id)
    assert (after.status, after.revision) == (status, before.revision)
    assert (await counted(writing, campaign)).open == 3 + count


@pytest.mark.parametrize("count", [1, 25])
@pytest.mark.parametrize("status", [S.CANCELLED, S.COMPLETED])
async def test_a_campaign_that_has_ended_takes_no_contacts(
    writing: Outreach, status: CampaignStatus, count: int
) -> None:
    """It does not open again by itself."""
    workspace = await given_workspace(writing)
    campaign = await given_campaign(writing, workspace, 3)
    await _bring_to(writing, campaign, status)
    with pytest.raises(Conflict, match=f"is {status} and takes no contacts"):
        await writing.campaigns.add_recipients(workspace.id, campaign.id, contacts(count, first=500))
    assert (await counted(writing, campaign)).total == 3
    assert (await writing.campaigns.get(workspace.id, campaign.id)).status is status


async def test_a_campaign_that_ends_during_the_load_takes_none_of_it(writing: Outreach, storage: Storage) -> None:
    """What was loaded out of sight is deleted."""
    workspace = await given_workspace(writing)
    campaign = await given_campaign(writing, workspace, 3)

    async def ending() -> AsyncIterator[NewRecipient]:
        for index, one in enumerate(contacts(25, first=500)):
            if index == 15:
                await writing.campaigns.cancel(workspace.id, campaign.id)
            yield one

    with pytest.raises(Conflict, match="cancelled"):
        await writing.campaigns.add_recipients(workspace.id, campaign.id, ending())
    assert (await counted(writing, campaign)).total == 3
    assert not await _leftovers(storage)


async def _leftovers(storage: Storage) -> Sequence[tuple[str, str]]:
    later = clock_of_loop().now() + timedelta(days=1)
    return await storage.read(lambda tx: list(tx.campaigns.leftovers(later)))


async def test_an_error_in_a_long_list_adds_nobody(writing: Outreach, storage: Storage) -> None:
    """Bad input in the 21st contact: nothing of the list is in the campaign."""
    workspace = await given_workspace(writing)
    campaign = await given_campaign(writing, workspace, 3)
    bad = [*contacts(20, first=500), NewRecipient(phone_number="")]
    with pytest.raises(InvalidRequest, match="at least 1 character") as caught:
        await writing.campaigns.add_recipients(workspace.id, campaign.id, bad)
    assert caught.value.details[0].path == "recipients[20].phone_number"
    assert (await counted(writing, campaign)).total == 3
    assert not await _leftovers(storage)


async def test_unknown_campaigns_and_those_of_others_take_nobody(writing: Outreach) -> None:
    """A foreign campaign is not found."""
    mine, other = await given_workspace(writing), await given_workspace(writing)
    campaign = await given_campaign(writing, other, 3)
    with pytest.raises(NotFound):
        await writing.campaigns.add_recipients(mine.id, campaign.id, contacts(1, first=500))


async def test_a_workspace_without_sms_campaigns_adds_nobody(writing: Outreach) -> None:
    """The same check as for a creation."""
    workspace = await given_workspace(writing)
    campaign = await given_campaign(writing, workspace, 3)
    await writing.workspaces.update(workspace.id, WorkspaceUpdate(sms_campaigns_enabled=False))
    with pytest.raises(SmsCampaignsDisabled):
        await writing.campaigns.add_recipients(workspace.id, campaign.id, contacts(1, first=500))


@pytest.mark.parametrize("count", [2, 25])
async def test_the_same_key_adds_once(writing: Outreach, count: int) -> None:
    """Another list under it is refused, as is another campaign."""
    workspace = await given_workspace(writing)
    campaign = await given_campaign(writing, workspace, 3)
    names, more = (workspace.id, campaign.id), contacts(count, first=500)
    first = await writing.campaigns.add_recipients(*names, more, idempotency_key="sign-up-42")
    assert await writing.campaigns.add_recipients(*names, more, idempotency_key="sign-up-42") == first
    assert (await counted(writing, campaign)).total == 3 + count
    with pytest.raises(InvalidRequest, match="other contacts"):
        await writing.campaigns.add_recipients(*names, more[:-1], idempotency_key="sign-up-42")
    other = await given_campaign(writing, workspace, 1)
    with pytest.raises(InvalidRequest):
        await writing.campaigns.add_recipients(workspace.id, other.id, more, idempotency_key="sign-up-42")


async def test_contacts_of_other_campaigns_can_be_left_out(writing: Outreach) -> None:
    """The counts are those of a creation, and the campaign itself is not among the others."""
    workspace = await given_workspace(writing)
    campaign, other = await given_campaign(writing, workspace, 3), await given_campaign(writing, workspace, 5)
    added = await writing.campaigns.add_recipients(
        workspace.id, campaign.id, contacts(8), leave_out=LeaveOut(campaigns=(other.id,))
    )
    assert added.audience is not None
    assert (added.added, added.audience.left_out) == (3, 5)
    assert [one.campaign_id for one in added.audience.campaigns] == [other.id]
    with pytest.raises(InvalidRequest, match="is the campaign itself"):
        await writing.campaigns.add_recipients(
            workspace.id, campaign.id, contacts(1), leave_out=LeaveOut(campaigns=(campaign.id,))
        )


async def test_variables_of_added_contacts_are_known_placeholders(writing: Outreach) -> None:
    """The names of both lists are the campaign's."""
    workspace = await given_workspace(writing)
    campaign = await given_campaign(writing, workspace, [NewRecipient(phone_number="+14155550001")])
    more = [NewRecipient(phone_number="+14155550002", custom_variables={"city": "Oakland"})]
    await writing.campaigns.add_recipients(workspace.id, campaign.id, more)
    assert (await writing.campaigns.get(workspace.id, campaign.id)).variable_names == ("city",)


@pytest.mark.parametrize("count", [1, 25])
async def test_the_history_of_an_added_contact_begins_when_it_was_added(writing: Outreach, count: int) -> None:
    """Not when its campaign was created."""
    workspace = await given_workspace(writing)
    campaign = await given_campaign(writing, workspace, 3)
    await anyio.sleep(3600)
    begun = writing.now()
    await writing.campaigns.add_recipients(workspace.id, campaign.id, contacts(count, first=500))
    first, last = (await people(writing, campaign))[0], (await people(writing, campaign))[-1]
    assert first.added_at is None
    assert last.added_at is not None
    assert last.added_at >= begun
    history = await writing.campaigns.recipient_history(workspace.id, campaign.id, last.position)
    assert [(step.what, step.at) for step in history.steps] == [(TrailStepKind.LOADED, last.added_at)]


async def test_a_campaign_that_stays_open_completes_only_once_it_is_closed(storage: Storage) -> None:
    """Nothing is open for a while, and then somebody signs up."""
    async with sending(storage, 2, config=CALM, stay_open=True) as (rig, campaign):
        campaigns, names = rig.engine.campaigns, (campaign.workspace_id, campaign.id)

        async def idle() -> bool:
            return (await campaigns.get(*names)).counters.open == 0

        await until(idle)
        await anyio.sleep(600)
        assert (await campaigns.get(*names)).status is S.ACTIVE
        await campaigns.add_recipients(*names, contacts(1, first=500))
        await until(idle)
        assert len(rig.carrier.requests) == 3
        closed = await campaigns.close(*names)
        assert (closed.status, closed.stay_open) == (S.COMPLETED, False)
        assert await campaigns.close(*names) == closed
        with pytest.raises(Conflict):
            await campaigns.add_recipients(*names, contacts(1, first=501))


async def test_a_closed_campaign_completes_with_its_last_contact(storage: Storage) -> None:
    """Closing stops nothing."""
    async with sending(storage, 50, config=SMALL, stay_open=True) as (rig, campaign):
        closed = await rig.engine.campaigns.close(campaign.workspace_id, campaign.id)
        assert closed.status is S.ACTIVE
        done = await reaches(rig.engine, campaign, "completed")
        assert done.counters.completed == 50


async def test_an_update_can_let_a_campaign_stay_open_or_not(storage: Storage) -> None:
    """Once it need not stay open, one with nothing open completes at once."""
    async with sending(storage, 20, config=CALM) as (rig, campaign):
        campaigns, names = rig.engine.campaigns, (campaign.workspace_id, campaign.id)
        assert (await campaigns.update(*names, CampaignUpdate(stay_open=True))).stay_open
        await until(lambda: campaigns.get(*names), lambda found: found.counters.open == 0)
        await anyio.sleep(600)
        assert (await campaigns.get(*names)).status is S.ACTIVE
        assert (await campaigns.update(*names, CampaignUpdate(stay_open=False))).status is S.COMPLETED


async def test_a_campaign_that_stays_open_expires(storage: Storage) -> None:
    """At its expiry, with nothing open."""
    async with dispatching(storage, config=CALM) as rig:
        workspace = await given_workspace(rig.engine)
        expiry = rig.engine.now() + timedelta(minutes=20)
        campaign = await start_campaign(rig.engine, workspace, 2, stay_open=True, scheduled_expires_at=expiry)
        await anyio.sleep(600)
        assert (await rig.engine.campaigns.get(workspace.id, campaign.id)).status is S.ACTIVE
        await anyio.sleep(605)
        assert (await rig.engine.campaigns.get(workspace.id, campaign.id)).status is S.EXPIRED
        with pytest.raises(Conflict, match="expired"):
            await rig.engine.campaigns.close(workspace.id, campaign.id)
        with pytest.raises(Conflict, match="expired"):
            await rig.engine.campaigns.add_recipients(workspace.id, campaign.id, contacts(1, first=500))


async def _dying(storage: WatchedStorage, engine: Outreach, campaign: Campaign, count: int, *, writes: int) -> None:
    """Add contacts, and fail at a write as a killed process does: nothing is cleaned up."""
    storage.writes = 0

    def before_write() -> None:
        if storage.writes > writes:
            raise StorageError("killed")

    storage.before_write = before_write
    with pytest.raises(StorageError, match="killed"):
        await engine.campaigns.add_recipients(
            campaign.workspace_id, campaign.id, contacts(count, first=500), idempotency_key="k"
        )
    storage.before_write = lambda: None


# A key's claim, the hidden campaign, four chunks, the hand-over: from then on the contacts belong to the campaign.
@pytest.mark.parametrize(
    ("writes", "handed_over"), [(1, False), (3, False), (6, False), (7, True), (8, True), (9, True)]
)
async def test_a_load_that_dies_leaves_no_half(open_storage: OpenStorage, writes: int, *, handed_over: bool) -> None:
    """Before the hand-over nothing is added; after it the same key adds the rest."""
    storage = WatchedStorage(open_storage(clock_of_loop()))
    async with Outreach(storage, clock=clock_of_loop(), config=CALM) as engine:
        workspace = await given_workspace(engine)
        campaign = await given_campaign(engine, workspace, 3)
        await _dying(storage, engine, campaign, 35, writes=writes)
        await counted(engine, campaign)
        left = await storage.read(lambda tx: tx.campaigns.has_additions(workspace.id, campaign.id))
        assert left is handed_over
        # The lease of the key.
        await anyio.sleep(600)
        again = await engine.campaigns.add_recipients(
            workspace.id, campaign.id, contacts(35, first=500), idempotency_key="k"
        )
        assert (again.added, again.skipped) == (35, 0)
        assert await counted(engine, campaign) == Counters(total=38, pending=38, open=38)


async def test_a_dispatcher_moves_what_a_dead_process_left(open_storage: OpenStorage) -> None:
    """Until then the campaign does not complete, though nothing of it is open."""
    async with sending(open_storage(clock_of_loop()), 1, config=CALM, stay_open=True) as (rig, campaign):
        with pytest.raises(StorageError, match="killed"):
            await _add_until_the_second_slice(rig, campaign)
        # Long enough for all that was moved to be contacted.
        await anyio.sleep(30)
        assert (await rig.engine.campaigns.close(campaign.workspace_id, campaign.id)).status is S.ACTIVE
        await anyio.sleep(300)
        done = await reaches(rig.engine, campaign, "completed")
        assert done.counters.completed == 36
        assert len(rig.carrier.requests) == 36


async def _add_until_the_second_slice(rig: Rig, campaign: Campaign) -> None:
    """Add contacts, and fail once the first slice was moved."""

    async def after_write(result: object) -> None:
        if isinstance(result, tuple) and isinstance(result[0], bool) and isinstance(result[1], Campaign):
            rig.storage.after_write = None
            raise StorageError("killed")

    rig.storage.after_write = after_write
    await rig.engine.campaigns.add_recipients(campaign.workspace_id, campaign.id, contacts(35, first=500))


async def test_parts_added_over_kills_are_there_once(storage: Storage) -> None:
    """Thirty parts to a running campaign, six of which die at some write: counters equal a recount, nobody twice."""
    drawn = random.Random(28)
    async with sending(storage, 3, config=SMALL, stay_open=True) as (rig, campaign):
        for part in range(30):
            more = contacts(drawn.choice([4, 25]), first=100 + 30 * part)
            dies_after = rig.storage.writes + drawn.randrange(8) if part % 5 == 0 else None

            def before_write(dies_after: int | None = dies_after) -> None:
                if dies_after is not None and rig.storage.writes > dies_after:
                    raise StorageError("killed")

            rig.storage.before_write = before_write
            added = await _until_added(rig, campaign, more, key=f"part-{part}")
            assert (added.added, added.skipped) == (len(more), 0)
            rig.storage.before_write = lambda: None
        await rig.engine.campaigns.close(campaign.workspace_id, campaign.id)
        await reaches(rig.engine, campaign, "completed")
        phones = [one.phone for one in await people(rig.engine, campaign)]
        assert len(set(phones)) == len(phones)
        sent = [request.to for request in rig.carrier.requests]
        assert sorted(set(sent)) == sorted(sent) == sorted(str(phone) for phone in phones)


async def _until_added(rig: Rig, campaign: Campaign, more: Sequence[NewRecipient], *, key: str) -> RecipientsAdded:
    """Add contacts again and again under one key, as a client does whose request failed."""
    for _ in range(10):
        try:
            return await rig.engine.campaigns.add_recipients(
                campaign.workspace_id, campaign.id, more, idempotency_key=key
            )
        except (StorageError, RequestInProgress):
            rig.storage.before_write = lambda: None
    raise AssertionError(key)
