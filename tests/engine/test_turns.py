from __future__ import annotations

from collections import Counter

import pytest

from outreach import NewNumber
from outreach.dispatch.sender_rotation import SenderRotation
from outreach.testing.scripted import ScriptedCarrier
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.conftest import OpenStorage
from tests.engine.rig import contacts, dispatching, given_campaign, given_workspace

NUMBER = "workspace/+14155550199"


def _order(turns: SenderRotation, *campaigns: str, now: float = 0.0) -> list[str]:
    """Return in which order campaigns that wait for one number may go."""
    for one in campaigns:
        turns.request_turn(NUMBER, one, now=now, back_in=1.0)
    return sorted(campaigns, key=lambda one: turns.request_turn(NUMBER, one, now=now, back_in=1.0))


def test_the_campaign_served_least_recently_goes_first() -> None:
    """Campaigns take turns, and a new one goes before those that have had a slot."""
    turns = SenderRotation()
    assert _order(turns, "a", "b") == ["a", "b"]
    turns.record_turn(NUMBER, "a")
    assert _order(turns, "a", "b") == ["b", "a"]
    turns.record_turn(NUMBER, "b")
    assert _order(turns, "a", "b", "c") == ["c", "a", "b"]


def test_an_absent_campaign_is_not_waited_for() -> None:
    """A campaign has left, is over, or has not come back when it should have."""
    turns = SenderRotation()
    _order(turns, "a", "b", "c")
    assert turns.request_turn(NUMBER, "c", now=0.0, back_in=1.0) == 2
    turns.leave(NUMBER, "a")
    assert turns.request_turn(NUMBER, "c", now=0.0, back_in=9.0) == 1
    assert turns.request_turn(NUMBER, "c", now=3.1, back_in=1.0) == 0
    turns.record_turn(NUMBER, "c")
    turns.forget(NUMBER, "c")
    assert _order(turns, "c", "d", now=9.0) == ["c", "d"]


def test_numbers_have_nothing_to_do_with_each_other() -> None:
    """A campaign waits for its own number alone."""
    turns = SenderRotation()
    turns.request_turn("workspace/+14155550100", "a", now=0.0, back_in=1.0)
    assert turns.request_turn(NUMBER, "b", now=0.0, back_in=1.0) == 0
    turns.leave("nobody's", "b")
    turns.forget("nobody's", "b")


@pytest.mark.virtual_time
async def test_a_fast_campaign_does_not_take_every_slot_of_a_number_from_a_slow_one(open_storage: OpenStorage) -> None:
    """Field, test 12: a number's rate is kept over all campaigns, and each of them goes on."""
    carrier = ScriptedCarrier()
    async with dispatching(open_storage(clock_of_loop()), carrier=carrier) as rig:
        workspace = await given_workspace(rig.engine)
        await rig.engine.numbers.create(
            workspace.id, NewNumber(phone="+14155550199", carrier="twilio", rate_per_minute=300)
        )
        campaigns = [
            await given_campaign(rig.engine, workspace, contacts(100, first=1000 * index), rate_per_minute=rate)
            for index, rate in enumerate((600, 200))
        ]
        for campaign in campaigns:
            await rig.engine.campaigns.start(workspace.id, campaign.id)
        # From now on both want the number.
        before = len(carrier.requests)
        await carrier.wait_for_requests(before + 24)
        counts = Counter(int(message.to[-4:]) // 1000 for message in carrier.requests[before : before + 24])
        await rig.engine.campaigns.pause_all()
    assert min(counts[0], counts[1]) >= 6
