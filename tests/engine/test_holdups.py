from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import attrs
import pytest

from outreach import BusinessHours, Campaign, Outreach, TimeWindow, WorkspaceStatus, WorkspaceUpdate
from outreach.models import Holiday, HolidayCalendar
from outreach.models.states import DispatchState, RecipientStatus
from outreach.models.work import Lease, WorkerLease
from outreach.protocols.storage import Storage
from outreach.testing.builders import make_dispatch, make_provider_throttle
from outreach.testing.clock import ManualClock
from tests.engine.conftest import OpenStorage
from tests.engine.rig import given_campaign, given_workspace

pytestmark = pytest.mark.virtual_time

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
MORNINGS = BusinessHours(
    enabled=True,
    timezone="UTC",
    schedule={"wednesday": (TimeWindow(start_minute=9 * 60, end_minute=10 * 60),)},
    batch_concurrency=10,
)
TODAY = HolidayCalendar(country=None, holidays=(Holiday(date=NOON.date(), name="", enabled=True),))


@pytest.fixture
def clock() -> ManualClock:
    """Noon of a Wednesday, until the test moves it."""
    return ManualClock(NOON)


@pytest.fixture
def storage(open_storage: OpenStorage, clock: ManualClock) -> Storage:
    """The database of the engine."""
    return open_storage(clock)


@pytest.fixture
async def engine(storage: Storage, clock: ManualClock) -> AsyncIterator[Outreach]:
    """An engine that does not dispatch."""
    async with Outreach(storage, clock=clock) as engine:
        yield engine


async def started(engine: Outreach, **changes: Any) -> Campaign:
    """Start a campaign of three."""
    workspace = await given_workspace(engine)
    campaign = await given_campaign(engine, workspace, **changes)
    return await engine.campaigns.start(workspace.id, campaign.id)


async def beat(storage: Storage, at: datetime) -> None:
    """Have a process dispatch at a moment."""
    worker = WorkerLease(epoch=1, place=1, renewed_at=at, until=at + timedelta(seconds=15))
    await storage.write(lambda tx: (tx.leases.put(Lease(epoch=1, home=None, renewed_at=at)), tx.workers.put(worker)))


async def holds(engine: Outreach, campaign: Campaign) -> list[tuple[str, datetime | None]]:
    """Return what keeps a campaign from going on, and until when."""
    found = await engine.campaigns.blockers(campaign.workspace_id, campaign.id)
    assert all(hold.message.endswith(".") for hold in found)
    return [(hold.code, hold.until) for hold in found]


async def test_what_keeps_a_campaign_from_going_on_is_reported(engine: Outreach, storage: Storage) -> None:
    """What has to be done by somebody first; nothing of what would not go on anyway."""
    campaign = await started(engine)
    assert await holds(engine, campaign) == [("no_dispatcher", None)]
    await beat(storage, NOON - timedelta(seconds=10))
    assert await holds(engine, campaign) == []
    await beat(storage, NOON - timedelta(minutes=1))
    hold = make_provider_throttle(workspace_id=campaign.workspace_id, provider="twilio", until=NOON + HOUR)
    await storage.write(lambda tx: tx.provider_throttles.put(hold))
    suspended = WorkspaceUpdate(status=WorkspaceStatus.SUSPENDED)
    await engine.workspaces.update(campaign.workspace_id, suspended)
    assert await holds(engine, campaign) == [
        ("workspace_suspended", None),
        ("no_dispatcher", None),
        ("provider_throttle", NOON + HOUR),
    ]
    await engine.campaigns.pause(campaign.workspace_id, campaign.id)
    assert await holds(engine, campaign) == []


async def test_closed_hours_are_reported_with_the_next_opening(engine: Outreach, storage: Storage) -> None:
    """Business hours, and a holiday."""
    await beat(storage, NOON)
    mornings = await started(engine, business_hours=MORNINGS)
    assert await holds(engine, mornings) == [("business_hours", NOON + timedelta(days=7, hours=-3))]
    holiday = await started(engine, holidays=TODAY)
    assert await holds(engine, holiday) == [("holidays", NOON + timedelta(hours=12))]


async def test_who_waits_waits_until_a_moment(engine: Outreach, storage: Storage) -> None:
    """The first of each reason."""
    campaign = await started(engine)

    def wait(tx: Any) -> None:
        for position, hours in ((0, 3), (1, 2)):
            recipient = tx.recipients.get(campaign.workspace_id, campaign.id, position)
            later = attrs.evolve(
                recipient, status=RecipientStatus.WAITING, reason="contact_hours", due_at=NOON + hours * HOUR
            )
            tx.recipients.put(campaign.workspace_id, later)

    await storage.write(wait)
    waits = await engine.campaigns.next_due_times(campaign.workspace_id, campaign.id)
    assert dict(waits) == {("waiting", "contact_hours"): NOON + 2 * HOUR}


async def test_who_is_unknown_is_given_up_at_a_moment(engine: Outreach, storage: Storage) -> None:
    """An hour after the first request of each reason; other campaigns' do not count."""
    campaign, other = await started(engine), await started(engine)

    def lose(tx: Any) -> None:
        for one, position, minutes in ((other, 0, 9), (campaign, 0, 5), (campaign, 1, 7)):
            recipient = tx.recipients.get(one.workspace_id, one.id, position)
            lost = attrs.evolve(recipient, status=RecipientStatus.UNKNOWN, reason="worker_lost", dispatched=True)
            tx.recipients.put(one.workspace_id, lost)
            dispatch = make_dispatch(
                workspace_id=one.workspace_id,
                campaign_id=one.id,
                position=position,
                state=DispatchState.UNKNOWN,
                reason="worker_lost",
                created_at=NOON - timedelta(minutes=minutes),
            )
            tx.dispatches.insert(dispatch)

    await storage.write(lose)
    waits = await engine.campaigns.next_due_times(campaign.workspace_id, campaign.id)
    assert dict(waits) == {("unknown", "worker_lost"): NOON + timedelta(minutes=53)}
