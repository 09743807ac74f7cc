from __future__ import annotations

from collections import Counter
from typing import Any

import attrs
import pytest

from outreach.models.states import DispatchState, RecipientStatus
from outreach.testing.scripted import (
    ScriptedCarrier,
    ScriptedVoice,
    Step,
    accept,
    defer,
    not_sent,
)
from outreach.testing.virtual_time import clock_of_loop
from tests.engine.calling import CALLS, POSITIVE, ends, given_calls
from tests.engine.conftest import OpenStorage
from tests.engine.rig import contacts, dispatching, given_campaign, given_workspace, people, reaches

pytestmark = pytest.mark.anyio

D, R = DispatchState, RecipientStatus
channels = pytest.mark.parametrize("channel", ["sms", "call"])


def starving(times: int) -> Any:
    """Return a plan that turns each number away so often before it says yes."""
    asked: Counter[str] = Counter()

    def choose(request: Any) -> Step:
        asked[request.to] += 1
        if asked[request.to] > times:
            return accept()
        return defer(0.01) if asked[request.to] % 2 else not_sent()

    return choose


@pytest.mark.field(7)
@pytest.mark.virtual_time
@channels
async def test_a_provider_that_has_no_place_fails_nobody(open_storage: OpenStorage, channel: str) -> None:
    """Field, test 7 (Dograh marks as failed who waited a second for the rate): put off, no attempt spent."""
    carrier, voice = ScriptedCarrier(starving(5)), ScriptedVoice(starving(5))
    config = attrs.evolve(CALLS, backoff_initial_seconds=0.01, backoff_max_seconds=0.02)
    clock = clock_of_loop()
    async with dispatching(open_storage(clock), carrier=carrier, voice=voice, config=config, clock=clock) as rig:
        ends(voice, lambda request, count: POSITIVE)
        workspace = await given_workspace(rig.engine)
        given = given_campaign if channel == "sms" else given_calls
        campaign = await given(rig.engine, workspace, 3)
        await rig.engine.campaigns.start(workspace.id, campaign.id)
        done = await reaches(rig.engine, campaign, "completed")
        assert (done.counters.failed, done.counters.successful) == (0, 3)
        assert [(one.status, one.attempts) for one in await people(rig.engine, campaign)] == [(R.COMPLETED, 1)] * 3
        for position in range(3):
            tried = await rig.engine.campaigns.list_dispatches(workspace.id, campaign.id, position)
            assert [one.try_number for one in tried] == list(range(1, len(tried) + 1))
            # What another contact's "come again" has kept back was not asked at all.
            asked = [one for one in tried if one.state is not D.WITHDRAWN]
            assert len(asked) == 6
            assert {one.state for one in asked[:-1]} == {D.DEFERRED, D.NOT_SENT}
            assert asked[-1].state is D.ACCEPTED


@pytest.mark.field(7)
@pytest.mark.virtual_time
@channels
async def test_campaigns_that_wait_for_one_place_fail_nobody(open_storage: OpenStorage, channel: str) -> None:
    """Field, test 7 (Dograh lets two campaigns of one owner starve each other into failures): each gets its turn."""
    config = attrs.evolve(CALLS, max_queued_intents=1, max_requests_in_flight=1)
    carrier = ScriptedCarrier(lambda _: accept(seconds=0.02))
    voice = ScriptedVoice(lambda _: accept(seconds=0.02))
    clock = clock_of_loop()
    async with dispatching(open_storage(clock), carrier=carrier, voice=voice, config=config, clock=clock) as rig:
        ends(voice, lambda request, count: POSITIVE)
        workspace = await given_workspace(rig.engine)
        given = given_campaign if channel == "sms" else given_calls
        campaigns = [await given(rig.engine, workspace, contacts(4, first=100 * n)) for n in range(3)]
        for campaign in campaigns:
            await rig.engine.campaigns.start(workspace.id, campaign.id)
        for campaign in campaigns:
            done = await reaches(rig.engine, campaign, "completed")
            assert (done.counters.failed, done.counters.successful) == (0, 4)
        provider: Any = carrier if channel == "sms" else voice
        assert len(provider.requests) == 12
