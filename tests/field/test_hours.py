from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from outreach import BusinessHours, TimeWindow
from outreach.models.campaign import Campaign
from outreach.models.settings import DAYS
from outreach.models.states import RecipientStatus
from outreach.testing.clock import ShiftedClock
from tests.engine.calling import CALLS, POSITIVE, event, given_calls
from tests.engine.conftest import OpenStorage
from tests.engine.rig import Rig, dispatching, given_workspace, people, until

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
