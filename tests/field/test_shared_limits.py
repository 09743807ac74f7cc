from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from outreach import NewNumber, NewRecipient
from outreach.models.states import RecipientStatus
from outreach.testing.clock import ShiftedClock
from outreach.testing.scripted import ScriptedCarrier, Step, accept
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.conftest import OpenStorage
from tests.engine.rig import contacts, dispatching, given_campaign, given_workspace, people, reaches, until

pytestmark = pytest.mark.anyio

R = RecipientStatus
SENDER = "+14155550199"


@pytest.mark.field(12)
async def test_two_campaigns_contact_one_person_no_more_often_than_the_cap(open_storage: OpenStorage) -> None:
    """Field, test 12 (Spoke #265, contacted by another campaign today): the second one waits until a day has passed."""
    clock = ShiftedClock()
    async with dispatching(open_storage(clock), clock=clock) as rig:
        workspace = await given_workspace(rig.engine, frequency_cap=1)
        person = [NewRecipient(phone_number="(415) 555-0123")]
        same = [NewRecipient(phone_number="+1 415 555 0123")]
        first, second = [await given_campaign(rig.engine, workspace, one) for one in (person, same)]
        await rig.engine.campaigns.start(workspace.id, first.id)
        await reaches(rig.engine, first, "completed")
        await rig.engine.campaigns.start(workspace.id, second.id)

        async def waits() -> bool:
            (one,) = await people(rig.engine, second)
            return (one.status, one.reason) == (R.WAITING, "frequency_cap")

        await until(waits)
        clock.shift(timedelta(hours=23, minutes=59))
        assert len(rig.carrier.requests) == 1
        clock.shift(timedelta(minutes=2))
        await reaches(rig.engine, second, "completed")
        assert len(rig.carrier.requests) == 2


@pytest.mark.field(12)
@pytest.mark.virtual_time
@pytest.mark.parametrize("spellings", [(SENDER, SENDER), (SENDER, "(415) 555-0199")])
async def test_two_campaigns_with_one_sender_keep_its_rate(open_storage: OpenStorage, spellings: Sequence[str]) -> None:
    """Field, test 12 (jasmin #925, Spoke: each campaign is throttled for itself): the number's rate holds over both."""
    clock = clock_of_loop()
    starts: list[datetime] = []

    def note(_: object) -> Step:
        starts.append(clock.now())
        return accept()

    async with dispatching(open_storage(clock), carrier=ScriptedCarrier(note), clock=clock) as rig:
        workspace = await given_workspace(rig.engine)
        await rig.engine.numbers.create(workspace.id, NewNumber(phone=SENDER, carrier="twilio", rate_per_minute=200))
        campaigns = [
            await given_campaign(rig.engine, workspace, contacts(5, first=50 * n), from_number=spelling)
            for n, spelling in enumerate(spellings)
        ]
        for campaign in campaigns:
            await rig.engine.campaigns.start(workspace.id, campaign.id)
        for campaign in campaigns:
            await reaches(rig.engine, campaign, "completed")
    assert len(starts) == 10
    # Measured a moment after each turn was taken, and not always the same moment.
    assert min(later - earlier for earlier, later in pairwise(starts)) >= timedelta(seconds=0.25)
    assert starts[-1] - starts[0] >= 9 * timedelta(seconds=0.3) - timedelta(seconds=0.05)
