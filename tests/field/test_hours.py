from __future__ import annotations

from datetime import UTC, datetime, timedelta

import attrs
import pytest

from outreach import BusinessHours, InvalidRequest, NewRecipient, TimeWindow
from outreach.convert.business_hours import read_business_hours
from outreach.models.campaign import Campaign
from outreach.models.fields import check_value
from outreach.models.hours import DAYS
from outreach.models.states import RecipientStatus
from outreach.testing.clock import ShiftedClock
from tests.engine.calling import CALLS, POSITIVE, event, given_calls
from tests.engine.conftest import OpenStorage
from tests.engine.rig import Rig, dispatching, given_campaign, given_workspace, people, reaches, until

pytestmark = pytest.mark.anyio

R = RecipientStatus
CLOSING = datetime(2026, 3, 2, 17, 0, tzinfo=UTC)
HOURS = BusinessHours(
    enabled=True,
    timezone="UTC",
    schedule=dict.fromkeys(DAYS, (TimeWindow(start_minute=9 * 60, end_minute=17 * 60),)),
    batch_concurrency=1,
)


async def rests(rig: Rig, campaign: Campaign) -> None:
    """Wait until no slice works on anything: the campaign has been looked at, and put down again."""

    async def idle() -> bool:
        return rig.dispatcher.health().active_units == 0

    await until(idle)


@pytest.mark.field(8)
async def test_a_place_that_is_free_a_second_after_closing_is_not_taken(open_storage: OpenStorage) -> None:
    """Field, test 8 (Dograh checks the hours of a batch and dials up to 20 minutes later): not until the morning."""
    clock = ShiftedClock(CLOSING - timedelta(seconds=20))
    async with dispatching(open_storage(clock), clock=clock, config=CALLS) as rig:
        workspace = await given_workspace(rig.engine)
        campaign = await given_calls(rig.engine, workspace, 2, business_hours=HOURS, batch_concurrency=1)
        await rig.engine.campaigns.start(workspace.id, campaign.id)
        await rig.voice.wait_for_requests(1)
        clock.shift(CLOSING + timedelta(seconds=1) - clock.now())
        rig.voice.report(event(rig.voice.requests[0], **POSITIVE))

        async def ended() -> bool:
            return (await people(rig.engine, campaign))[0].status is R.COMPLETED

        await until(ended)
        await rests(rig, campaign)
        assert len(rig.voice.requests) == 1
        assert [one.status for one in await people(rig.engine, campaign)] == [R.COMPLETED, R.PENDING]
        assert (await rig.engine.campaigns.get(workspace.id, campaign.id)).status == "active"
        clock.shift(timedelta(hours=16))
        await rig.voice.wait_for_requests(2)


@pytest.mark.field(8)
@pytest.mark.soak("waits ten seconds for a slot")
async def test_a_slot_that_comes_a_second_after_closing_is_not_used(open_storage: OpenStorage) -> None:
    """Field, test 8 (Dograh waits for its rate after the check of the hours): the slot itself must lie within them."""
    clock = ShiftedClock(CLOSING - timedelta(seconds=9))
    config = attrs.evolve(CALLS, look_ahead_seconds=120.0)
    async with dispatching(open_storage(clock), clock=clock, config=config) as rig:
        workspace = await given_workspace(rig.engine)
        campaign = await given_campaign(rig.engine, workspace, 2, business_hours=HOURS, rate_per_minute=6)
        await rig.engine.campaigns.start(workspace.id, campaign.id)
        await rig.carrier.wait_for_requests(1)
        clock.shift(CLOSING + timedelta(seconds=1) - clock.now())
        # Wakes it up: it is to find out that it is too late.
        await rig.engine.campaigns.pause(workspace.id, campaign.id)
        await rig.engine.campaigns.resume(workspace.id, campaign.id)
        await rests(rig, campaign)
        assert len(rig.carrier.requests) == 1
        assert not await rig.engine.campaigns.list_dispatches(workspace.id, campaign.id, 1)
        clock.shift(timedelta(hours=16))
        await reaches(rig.engine, campaign, "completed")
        assert len(rig.carrier.requests) == 2


@pytest.mark.field(9)
@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "America/New York", "america/new_york", "../etc/passwd"])
async def test_hours_in_a_zone_that_is_not_there_are_refused_when_they_are_written(
    open_storage: OpenStorage, zone: str
) -> None:
    """Field, test 9 (Dograh takes an unknown zone as always open): refused, by the interface and by the library."""
    with pytest.raises(InvalidRequest):
        check_value(
            "business_hours_config",
            {"timezone": zone, "days": ["mon"], "start": "09:00", "end": "17:00"},
            read_business_hours,
        )
    clock = ShiftedClock()
    async with dispatching(open_storage(clock), clock=clock) as rig:
        workspace = await given_workspace(rig.engine)
        with pytest.raises(InvalidRequest):
            await given_campaign(rig.engine, workspace, 1, business_hours=attrs.evolve(HOURS, timezone=zone))
        assert (await rig.engine.campaigns.list(workspace.id)).total == 0
        assert rig.carrier.requests == []


@pytest.mark.field(9)
@pytest.mark.parametrize("channel", ["sms", "call"])
async def test_a_number_of_which_no_zone_is_known_is_skipped(open_storage: OpenStorage, channel: str) -> None:
    """Field, test 9 (Pinpoint, Dograh: sent to at any time): who cannot be placed is skipped, and left alone."""
    clock = ShiftedClock(datetime(2026, 3, 2, 20, 0, tzinfo=UTC))
    people_given = [NewRecipient(phone_number="+80012345678"), NewRecipient(phone_number="+14155550123")]
    async with dispatching(open_storage(clock), clock=clock, config=CALLS) as rig:
        workspace = await given_workspace(rig.engine, contact_hours=True)
        given = given_campaign if channel == "sms" else given_calls
        campaign = await given(rig.engine, workspace, people_given)
        await rig.engine.campaigns.start(workspace.id, campaign.id)
        if channel == "call":
            await rig.voice.wait_for_requests(1)
            rig.voice.report(event(rig.voice.requests[0], **POSITIVE))
        await reaches(rig.engine, campaign, "completed")
        assert [(one.status, one.reason) for one in await people(rig.engine, campaign)] == [
            (R.SKIPPED, "timezone_unknown"),
            (R.COMPLETED, None),
        ]
        reached = [one.to for one in rig.carrier.requests] + [one.to for one in rig.voice.requests]
        assert reached == ["+14155550123"]
