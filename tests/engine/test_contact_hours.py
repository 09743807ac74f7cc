from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from outreach import NewRecipient
from outreach.models.resources import FlowStep
from outreach.models.settings import DAYS, BusinessHours, Holiday, HolidayCalendar, TimeWindow
from outreach.models.states import RecipientStatus, WorkspaceMode
from outreach.protocols.storage import Storage
from outreach.storage.unit_of_work import Transaction
from outreach.testing.builders import make_campaign, make_prepared, make_workspace
from outreach.testing.clock import ManualClock, ShiftedClock
from outreach.testing.storage_tables.base_contract import pending, publish
from tests.engine.conftest import OpenStorage
from tests.engine.flow_course import Course
from tests.engine.given import recipient, reread
from tests.engine.rig import dispatching, given_campaign, given_workspace, people, reaches, start_campaign, until

pytestmark = pytest.mark.virtual_time

HELLO = FlowStep(kind="send", body="Hello")
INDIA = [NewRecipient(phone_number="+919876543210")]
NEW_YORK, HONOLULU, NOWHERE = "+12125552368", "+18089231811", "+999123456"
MORE = ("+12125552369", "+12125552370")
NOON_IN_NEW_YORK = datetime(2026, 7, 1, 16, tzinfo=UTC)


async def given_course(storage: Storage, clock: ManualClock, now: datetime, *phones: str, **changes: Any) -> Course:
    """Begin a campaign with these contacts in a workspace with contact hours."""
    clock.set(now)
    await storage.write(lambda tx: tx.workspaces.update(make_workspace(contact_hours=True)))
    course = await Course.begin(storage, clock, HELLO, count=0)

    campaign = make_campaign(
        status=course.campaign.status,
        started_at=now,
        message_source="flow",
        flow_id=course.campaign.flow_id,
        **changes,
    )
    contacts = [make_prepared(phone_number=phone, phone=phone) for phone in phones]

    def write(tx: Transaction) -> None:
        publish(tx, campaign, pending(*contacts))

    await storage.write(write)
    return Course(storage, clock, campaign)


@pytest.mark.field(9)
async def test_who_has_night_waits_for_the_morning(storage: Storage, clock: ManualClock) -> None:
    """Field, test 9 (Pinpoint, Dograh: sent to at any time): nowhere is never; nobody has failed.

    docs/rules.md#contact-hours: noon in New York is six in Hawaii.
    """
    course = await given_course(storage, clock, NOON_IN_NEW_YORK, NEW_YORK, HONOLULU, NOWHERE)
    (dispatch,) = await course.wave()
    assert dispatch.to == NEW_YORK
    held, skipped = await recipient(storage, course.campaign, 1), await recipient(storage, course.campaign, 2)
    assert (held.status, held.reason) == (RecipientStatus.WAITING, "contact_hours")
    assert held.due_at == datetime(2026, 7, 1, 18, tzinfo=UTC)
    assert (held.attempts, held.dispatched) == (0, False)
    assert (skipped.status, skipped.reason) == (RecipientStatus.SKIPPED, "timezone_unknown")
    clock.set(held.due_at - timedelta(microseconds=1))
    assert await course.wave() == ()
    clock.set(held.due_at)
    (morning,) = await course.wave()
    assert morning.to == HONOLULU
    await reread(storage, course.campaign)


def hours_in_new_york(friday_until: int) -> BusinessHours:
    """Return hours of 12 to 13, and on Fridays from 12 to this hour."""
    ends = {day: friday_until if day == "friday" else 13 for day in DAYS}
    windows = {day: (TimeWindow(start_minute=12 * 60, end_minute=end * 60),) for day, end in ends.items()}
    return BusinessHours(enabled=True, timezone="America/New_York", schedule=windows, batch_concurrency=1)


async def test_who_is_asleep_while_the_campaign_is_open_waits_once_for_a_day_that_has_both(
    storage: Storage, clock: ManualClock
) -> None:
    """docs/rules.md#contact-hours: put off until the one day of the week at which both are open, not day by day."""
    course = await given_course(
        storage, clock, NOON_IN_NEW_YORK, HONOLULU, business_hours=hours_in_new_york(friday_until=16)
    )
    assert await course.wave() == ()
    held = await recipient(storage, course.campaign, 0)
    friday = datetime(2026, 7, 3, 18, tzinfo=UTC)
    assert (held.status, held.reason, held.due_at) == (RecipientStatus.WAITING, "contact_hours", friday)
    clock.set(friday)
    assert len(await course.wave()) == 1


@pytest.mark.parametrize("closed", [True, False])
async def test_who_is_always_asleep_while_the_campaign_is_open_is_skipped(
    storage: Storage, clock: ManualClock, closed: bool
) -> None:
    """docs/rules.md#contact-hours: no common open time within 7 days: by the campaign's hours, or by its holidays."""
    holiday = Holiday(date=date(2026, 7, 3), name="Closed", enabled=closed)
    course = await given_course(
        storage,
        clock,
        NOON_IN_NEW_YORK,
        HONOLULU,
        business_hours=hours_in_new_york(friday_until=16 if closed else 13),
        holidays=HolidayCalendar(country=None, holidays=(holiday,)),
    )
    assert await course.wave() == ()
    skipped = await recipient(storage, course.campaign, 0)
    assert (skipped.status, skipped.reason) == (RecipientStatus.SKIPPED, "timezone_unknown")
    await reread(storage, course.campaign)


async def test_holidays_alone_put_off_too(storage: Storage, clock: ManualClock) -> None:
    """A campaign without hours of its own: the first morning that is no holiday by the calendar of UTC."""
    holiday = Holiday(date=date(2026, 7, 2), name="Closed", enabled=True)
    night = datetime(2026, 7, 1, 22, tzinfo=UTC)
    course = await given_course(
        storage, clock, night, INDIA[0].phone_number, holidays=HolidayCalendar(country=None, holidays=(holiday,))
    )
    assert await course.wave() == ()
    assert (await recipient(storage, course.campaign, 0)).due_at == datetime(2026, 7, 3, 2, 30, tzinfo=UTC)


async def test_no_intent_is_valid_after_the_evening(storage: Storage, clock: ManualClock) -> None:
    """Field, test 8: a slot a moment before closing does not let a request begin after it."""
    closing = datetime(2026, 7, 2, 1, tzinfo=UTC)
    course = await given_course(storage, clock, closing - timedelta(seconds=2), NEW_YORK)
    (dispatch,) = await course.wave()
    assert dispatch.valid_until == closing


async def test_who_has_no_slot_before_the_evening_waits_for_the_morning(storage: Storage, clock: ManualClock) -> None:
    """It is put off, not asked about again and again until its hours close."""
    closing = datetime(2026, 7, 2, 1, tzinfo=UTC)
    course = await given_course(storage, clock, closing - timedelta(microseconds=1500), NEW_YORK, *MORE)
    assert len(await course.wave()) == 2
    held = await recipient(storage, course.campaign, 2)
    assert (held.reason, held.due_at) == ("contact_hours", closing)
    clock.set(closing)
    assert await course.wave() == ()
    assert (await recipient(storage, course.campaign, 2)).due_at == closing + timedelta(hours=11)


async def test_a_whole_campaign_is_put_off_in_few_writes(open_storage: OpenStorage) -> None:
    """At night nothing is due: the runner rests, and another campaign goes on."""
    clock = ShiftedClock(datetime(2026, 7, 2, 6, tzinfo=UTC))
    async with dispatching(open_storage(clock), clock=clock) as rig:
        workspace = await given_workspace(rig.engine, contact_hours=True)
        contacts = [NewRecipient(phone_number=f"+1212555{n:04d}") for n in range(2000, 2600)]
        campaign = await given_campaign(rig.engine, workspace, contacts, body="Hi", rate_per_minute=60)
        before = rig.storage.writes
        await rig.engine.campaigns.start(workspace.id, campaign.id)

        async def all_wait() -> bool:
            return all(one.reason == "contact_hours" for one in await people(rig.engine, campaign))

        await until(all_wait)
        assert rig.storage.writes - before < 100
        awake = await start_campaign(rig.engine, workspace, INDIA, body="Hi")
        await reaches(rig.engine, awake, "completed")
        assert [message.to for message in rig.carrier.requests] == ["+919876543210"]


@pytest.mark.parametrize(("mode", "on"), [(WorkspaceMode.LIVE, True), (WorkspaceMode.SANDBOX, False)])
async def test_contact_hours_are_on_where_people_are_real(
    open_storage: OpenStorage, clock: ManualClock, mode: WorkspaceMode, on: bool
) -> None:
    """docs/rules.md#contact-hours: by default on for live workspaces, off in a sandbox."""
    async with dispatching(open_storage(clock), clock=clock) as rig:
        assert (await given_workspace(rig.engine, mode=mode)).contact_hours is on
