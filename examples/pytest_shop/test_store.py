from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import anyio
import pytest
from store import Shop

from outreach import Clock, NewAgent, NewRecipient, Outreach, Workspace, WorkspaceUpdate
from outreach.testing.scripted import ScriptedCarrier, ScriptedVoice, accept, refuse
from outreach.testing.waiting import campaign_ended

pytestmark = pytest.mark.virtual_time

CUSTOMERS = [NewRecipient(phone_number=f"+1212555{number:04d}") for number in range(100, 300)]
NEW_YORK = ZoneInfo("America/New_York")


@pytest.mark.virtual_time(start=datetime(2026, 3, 5, 20, 0, tzinfo=NEW_YORK))
async def test_a_campaign_goes_on_in_the_morning(
    shop: Shop, outreach_engine: Outreach, outreach_carrier: ScriptedCarrier
) -> None:
    """Two hundred texts, one a minute, from eight in the evening on; nobody is written to after nine."""
    await outreach_engine.workspaces.update(shop.workspace_id, WorkspaceUpdate(contact_hours=True))
    campaign = await shop.announce("We move!", CUSTOMERS, per_minute=1)
    await campaign_ended(outreach_engine, campaign)
    times = [moment.astimezone(NEW_YORK) for moment in outreach_carrier.requested_at]
    assert Counter(moment.date().day for moment in times) == {5: 60, 6: 140}
    assert all(8 <= moment.hour < 21 for moment in times)
    assert all(later - earlier >= timedelta(seconds=60) for earlier, later in pairwise(times))


async def test_a_contact_who_answers_stop_gets_nothing_more(shop: Shop, outreach_carrier: ScriptedCarrier) -> None:
    """The second customer opts out an hour after the first text."""
    outreach_carrier.script([accept(), accept().delivered().replied("STOP", after_seconds=3600)])
    await campaign_ended(shop.engine, await shop.announce("We move!", CUSTOMERS[:3]))
    await anyio.sleep(2 * 3600)
    await campaign_ended(shop.engine, await shop.announce("We have moved!", CUSTOMERS[:3]))
    again = [message.to for message in outreach_carrier.requests if message.body.startswith("We have moved!")]
    assert again == [CUSTOMERS[0].phone_number, CUSTOMERS[2].phone_number]


async def test_a_refused_number_fails_and_the_others_go_on(shop: Shop, outreach_carrier: ScriptedCarrier) -> None:
    """A script may choose by the message."""
    bad = CUSTOMERS[1].phone_number
    outreach_carrier.script(lambda message: refuse("invalid_number") if message.to == bad else accept().delivered())
    ended = await campaign_ended(shop.engine, await shop.announce("We move!", CUSTOMERS[:3]))
    assert (ended.counters.successful, ended.counters.failed) == (2, 1)


async def test_a_contact_who_does_not_answer_is_called_again(
    shop: Shop, outreach_engine: Outreach, outreach_workspace: Workspace, outreach_voice: ScriptedVoice
) -> None:
    """The first call rings out, the second one is answered half an hour later."""
    agent = await outreach_engine.agents.create(outreach_workspace.id, NewAgent(name="Ada"))
    outreach_voice.script([accept().no_answer(), accept().answered(outcome="positive")])
    ended = await campaign_ended(outreach_engine, await shop.call(agent.id, CUSTOMERS[:1]))
    first, second = outreach_voice.requested_at
    assert second - first >= timedelta(minutes=30)
    assert ended.counters.successful == 1


@pytest.mark.virtual_time(start=datetime(2026, 12, 31, 23, 59, tzinfo=UTC))
async def test_the_clock_of_the_engine_is_the_one_of_the_test(outreach_engine: Outreach, outreach_clock: Clock) -> None:
    """A minute later it is another year."""
    await anyio.sleep(60)
    assert datetime(2027, 1, 1, tzinfo=UTC) <= outreach_engine.now() < outreach_clock.now()
