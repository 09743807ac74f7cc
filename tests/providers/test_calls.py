from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Final

import pytest

from outreach import NewAgent, NewCallCampaign, NewRecipient
from outreach.models.settings import CallSettings
from tests.process.place import Place
from tests.providers.parts import Taken
from tests.providers.stage import Stage, staged
from tests.providers.voices import ANSWERED_BY_PERSON, SUMMARY, VOICES, VoicePart

pytestmark = pytest.mark.anyio

BUSY_ONCE: Final = "+14155550101"
ALWAYS_BUSY: Final = "+14155550102"
NO_MORE: Final = "+14155550103"
PEOPLE: Final = ["+14155550100", BUSY_ONCE, ALWAYS_BUSY, NO_MORE, "+14155550104"]

AT_ONCE: Final = CallSettings(retry_max_attempts=2, retry_delay_minutes=0)
"""Tries again at once: the bounds of the wait are the service's, not the rules'."""


@pytest.mark.field(11)
@pytest.mark.sample(3)
@pytest.mark.parametrize("part_of", VOICES)
async def test_a_calling_campaign_records_how_its_calls_end(place: Place, part_of: type[VoicePart]) -> None:
    """Server, database and voice provider: events come before the answer, backwards and twice, and each call ends once.

    Chatwoot let an event that came late take a status back.
    """

    def take(stage: Stage[VoicePart], taken: Taken) -> None:
        # Times of providers are no finer than this, and an end must lie after its beginning.
        ended = datetime.now(UTC).replace(microsecond=0)
        asked = sum(one.to == taken.to for one in stage.taken)
        if taken.to == NO_MORE:
            events = stage.part.do_not_call(taken, ended)
        elif taken.to == ALWAYS_BUSY or (taken.to == BUSY_ONCE and asked == 1):
            events = stage.part.busy(taken, ended)
        else:
            events = stage.part.talk(taken, ended)
        stage.tell([*reversed(events), *events] if len(stage.taken) % 2 else [*events, *reversed(events)])

    async with staged(place, part_of(), take) as stage:
        engine, workspace_id = stage.engine, stage.workspace_id
        await engine._storage.write(lambda tx: tx.call_settings.put(workspace_id, AT_ONCE))
        agent = await engine.agents.create(
            workspace_id,
            NewAgent(name="Ada", provider=part_of.name, provider_agent_id="agent-1", from_number="+14155550199"),
        )
        new = NewCallCampaign(name="Calls", agent_id=agent.id, batch_concurrency=2)
        contacts = [NewRecipient(phone_number=phone) for phone in PEOPLE]
        campaign = (await engine.campaigns.create_call(workspace_id, new, contacts)).campaign
        await engine.campaigns.start(workspace_id, campaign.id)
        await stage.reaches(campaign.id, "completed")
        await stage.told()

        twice = [BUSY_ONCE, ALWAYS_BUSY]
        assert Counter(taken.to for taken in stage.taken) == Counter([*PEOPLE, *twice])
        assert len({taken.dispatch_id for taken in stage.taken}) == len(stage.taken)
        found = [one async for one in engine.campaigns.iter_recipients(workspace_id, campaign.id)]
        assert {one.phone: one.status for one in found} == {
            **dict.fromkeys(PEOPLE, "completed"),
            ALWAYS_BUSY: "failed",
        }
        done = await engine.campaigns.get(workspace_id, campaign.id)
        assert done.counters == await engine.campaigns.recount(workspace_id, campaign.id)

        for position, phone in enumerate(PEOPLE):
            dispatches = await engine.campaigns.list_dispatches(workspace_id, campaign.id, position)
            calls = [await engine.calls.get(workspace_id, one.call_id or "") for one in dispatches]
            ends = [(call.status, call.outcome) for call in calls]
            if phone == NO_MORE:
                assert ends == [("completed", "negative")]
            elif phone == ALWAYS_BUSY:
                assert ends == [("busy", "busy")] * 2
            else:
                assert ends[:-1] == [("busy", "busy")] * (phone == BUSY_ONCE)
                assert ends[-1] == ("completed", "positive")
                assert (calls[-1].summary, calls[-1].duration_seconds) == (SUMMARY, ANSWERED_BY_PERSON.total_seconds())

        register = [(entry.phone, entry.source) async for entry in engine.unsubscribes.iter_all(workspace_id)]
        assert register == [(NO_MORE, "call")]
