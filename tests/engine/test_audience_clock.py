"""How many contacts can be reached in which hour."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest

from outreach import (
    BusinessHours,
    NewNumber,
    NewRecipient,
    NewSmsCampaign,
    NewWorkspace,
    NotFound,
    Outreach,
    WorkspaceUpdate,
)
from outreach.models import DAYS, AudienceClock, Holiday, HolidayCalendar, TimeWindow
from outreach.testing.clock import ManualClock

pytestmark = pytest.mark.anyio

SENDER = "+12025550100"
NEW_YORK, DENVER, UNKNOWN = "+12125550100", "+13035550100", "+18005550100"
NOON = datetime(2026, 6, 1, 12, 30, tzinfo=UTC)
"""A Monday: 08:30 in New York, 06:30 in Denver."""


async def clock_of(engine: Outreach, workspace_id: str, *phones: str, **changes: Any) -> AudienceClock:
    """Return the clock of a campaign."""
    new = NewSmsCampaign(name="Hours", body="Hi", carrier="twilio", from_number=SENDER, **changes)
    people = [NewRecipient(phone_number=one) for one in phones]
    campaign = (await engine.campaigns.create_sms(workspace_id, new, people)).campaign
    return await engine.campaigns.clock(workspace_id, campaign.id)


@pytest.fixture
async def place() -> Any:
    """An engine on a Monday noon, with a workspace that has contact hours."""
    async with Outreach.open("memory://", clock=ManualClock(NOON)) as engine:
        workspace = await engine.workspaces.create(NewWorkspace(name="Acme", contact_hours=True))
        await engine.numbers.create(workspace.id, NewNumber(phone=SENDER, carrier="twilio"))
        yield engine, workspace.id


def by_hour(found: AudienceClock) -> dict[int, int]:
    """Return the contacts by the hour in UTC, those without any left out."""
    return {one.at.hour: one.contacts for one in found.hours if one.contacts}


async def test_contacts_are_counted_by_their_own_time(place: Any) -> None:
    """From 8 to 21 in their zones, in the next 24 hours. Contacts that are left out are not counted."""
    engine, workspace = place
    found = await clock_of(engine, workspace, NEW_YORK, DENVER, "12")
    assert found.hours[0].at == NOON.replace(minute=0)
    assert [one.at - found.hours[0].at for one in found.hours] == [timedelta(hours=number) for number in range(24)]
    east, west = {12, *range(13, 24), 0}, {*range(14, 24), 0, 1, 2}
    assert by_hour(found) == {hour: (hour in east) + (hour in west) for hour in east | west}
    assert (found.contacts, found.timezone, found.sampled) == (2, "UTC", False)
    assert {one.closed_by for one in found.hours} == {None}


async def test_without_contact_hours_all_can_be_reached(place: Any) -> None:
    """Also those whose zone is not known."""
    engine, workspace = place
    await engine.workspaces.update(workspace, WorkspaceUpdate(contact_hours=False))
    found = await clock_of(engine, workspace, NEW_YORK, UNKNOWN)
    assert [one.contacts for one in found.hours] == [2] * 24


async def test_hours_holidays_and_expiry_close_for_all(place: Any) -> None:
    """Each hour names what closes it; a window that begins within an hour opens it."""
    engine, workspace = place
    window = TimeWindow.between(time(15, 30), time(17))
    hours = BusinessHours(timezone="UTC", schedule=dict.fromkeys(DAYS, (window,)))
    found = await clock_of(engine, workspace, NEW_YORK, DENVER, business_hours=hours)
    assert by_hour(found) == {15: 2, 16: 2}
    assert [one.closed_by for one in found.hours if not one.contacts] == ["business_hours"] * 22
    closed = HolidayCalendar(country=None, holidays=(Holiday(date=date(2026, 6, 2), name="", enabled=True),))
    found = await clock_of(engine, workspace, NEW_YORK, DENVER, holidays=closed)
    assert [one.closed_by for one in found.hours] == [None] * 12 + ["holidays"] * 12
    found = await clock_of(engine, workspace, NEW_YORK, scheduled_expires_at=NOON + timedelta(hours=1))
    assert [one.closed_by for one in found.hours] == [None] * 2 + ["expiry"] * 22
    assert [one.contacts for one in found.hours[:2]] == [1, 1]


async def test_it_begins_with_the_start(place: Any) -> None:
    """Of a campaign that has ended there are no hours; another workspace has no such campaign."""
    engine, workspace = place
    start = datetime(2026, 6, 3, 23, 10, tzinfo=UTC)
    new = {"schedule_type": "scheduled", "scheduled_start_at": start}
    found = await clock_of(engine, workspace, NEW_YORK, **new)
    assert found.hours[0].at == start.replace(minute=0)
    await engine.campaigns.cancel(workspace, found.campaign_id)
    ended = await engine.campaigns.clock(workspace, found.campaign_id)
    assert (ended.hours, ended.contacts) == ((), 0)
    other = await engine.workspaces.create(NewWorkspace(name="Others"))
    with pytest.raises(NotFound):
        await engine.campaigns.clock(other.id, found.campaign_id)
