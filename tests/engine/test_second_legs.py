from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import attrs
import pytest

from outreach.dispatch.outbox import CallChannel
from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch
from outreach.models.plans import Advance, Postponement
from outreach.models.states import CallStatus, DispatchState, RecipientStatus
from outreach.protocols.storage import Storage
from outreach.rules.deciding import LocalRules
from outreach.rules.settlement import DOUBLE_DIAL
from outreach.testing.builders import NOW, make_workspace, new_id
from outreach.testing.clock import ShiftedClock
from outreach.testing.scripted import (
    ScriptedCarrier,
    ScriptedVoice,
    accept,
    drop,
)
from outreach.testing.storage_tables.base_contract import THIS_WORKSPACE
from tests.engine.calling import (
    NO_ANSWER,
    POSITIVE,
    calling,
    dispatches_of,
    event,
)
from tests.engine.conftest import OpenStorage
from tests.engine.given import given_active, plan_wave, recipient
from tests.engine.provider_pool import provider_pool_of
from tests.engine.rig import Rig, people, reaches, time_passes, until

pytestmark = pytest.mark.virtual_time

D, R = DispatchState, RecipientStatus


@asynccontextmanager
async def given_up(
    open_storage: OpenStorage, *, attempts: int, minutes: int = 0
) -> AsyncIterator[tuple[Rig, Campaign, Dispatch]]:
    """Lose the answer to the second call of a double dial, and have an operator say `retry` later."""
    clock = ShiftedClock()
    voice = ScriptedVoice([accept(), drop()])
    async with calling(
        open_storage(clock), 1, voice=voice, clock=clock, attempts=attempts, minutes=minutes, double_dial=True
    ) as (rig, campaign):
        await voice.wait_for_requests(1)
        voice.report(event(voice.requests[0], **NO_ANSWER))

        async def unknown() -> list[Dispatch]:
            return [one for one in await dispatches_of(rig, campaign) if one.state is D.UNKNOWN]

        (second,) = await until(unknown)
        await time_passes(rig, clock, minutes=2)
        await rig.engine.dispatches.resolve(campaign.workspace_id, second.id, "retry")
        yield rig, campaign, second


async def test_a_second_call_that_nobody_knows_of_is_not_made_up_for(open_storage: OpenStorage) -> None:
    """docs/rules.md#double-dial: within 10 s, else dropped: a retry of it ends the attempt as a no answer."""
    async with given_up(open_storage, attempts=1) as (rig, campaign, _):
        await reaches(rig.engine, campaign, "completed")
        assert [(one.status, one.reason, one.attempts) for one in await people(rig.engine, campaign)] == [
            (R.FAILED, "no_answer", 1)
        ]
        assert len(rig.voice.requests) == 2


async def test_a_no_answer_that_is_heard_of_late_has_no_second_call(open_storage: OpenStorage) -> None:
    """docs/rules.md#double-dial: the provider's time of the end counts, not when its report comes."""
    clock, voice = ShiftedClock(), ScriptedVoice()
    async with calling(open_storage(clock), 1, voice=voice, clock=clock, attempts=1, double_dial=True) as (
        rig,
        campaign,
    ):
        await voice.wait_for_requests(1)
        await time_passes(rig, clock, minutes=3)
        voice.report(event(voice.requests[0], at=clock.now() - timedelta(minutes=2), **NO_ANSWER))
        await reaches(rig.engine, campaign, "completed")
        assert [(one.status, one.reason) for one in await people(rig.engine, campaign)] == [(R.FAILED, "no_answer")]
        assert len(voice.requests) == 1


async def test_the_next_attempt_follows_by_the_settings(open_storage: OpenStorage) -> None:
    """What the budget leaves is called again, from the first leg on."""
    async with given_up(open_storage, attempts=2) as (rig, campaign, _):
        await rig.voice.wait_for_requests(3)
        rig.voice.report(event(rig.voice.requests[2], **POSITIVE))
        await reaches(rig.engine, campaign, "completed")
        made = [(one.attempt, one.leg, one.state) for one in await dispatches_of(rig, campaign)]
        assert made == [(1, 1, D.ACCEPTED), (1, 2, D.GIVEN_UP), (2, 1, D.ACCEPTED)]


async def test_evidence_of_it_makes_it_the_second_leg_again(open_storage: OpenStorage) -> None:
    """A call that was placed after all is followed, and no third call comes of its no answer."""
    async with given_up(open_storage, attempts=2, minutes=30) as (rig, campaign, second):
        rig.voice.report(event(rig.voice.requests[1], CallStatus.RINGING))

        async def under_way() -> bool:
            (one,) = await people(rig.engine, campaign)
            return (one.status, one.leg, one.attempts) == (R.IN_PROGRESS, 2, 1)

        await until(under_way)
        rig.voice.report(event(rig.voice.requests[1], **NO_ANSWER))

        async def waits() -> bool:
            (one,) = await people(rig.engine, campaign)
            return (one.status, one.reason, one.leg) == (R.WAITING, "retry_no_answer", 1)

        await until(waits)
        made = {one.id: one.state for one in await dispatches_of(rig, campaign)}
        assert (len(made), made[second.id]) == (2, D.ACCEPTED)


@pytest.mark.parametrize("leg", [1, 2])
async def test_a_channel_puts_off_first_calls_only(storage: Storage, leg: int) -> None:
    """What the frequency cap stops waits at the first leg, and is dropped at the second."""
    await storage.write(lambda tx: tx.workspaces.update(make_workspace(frequency_cap=1)))
    campaign = await given_active(storage)
    one = attrs.evolve(await recipient(storage, campaign), leg=leg, attempts=leg - 1)
    plan = await storage.read(lambda tx: plan_wave(tx, THIS_WORKSPACE, campaign.id, now=NOW, limit=1))
    assert plan is not None
    plan = attrs.evolve(plan, capped_until={one.position: NOW + timedelta(hours=9)})
    channel = CallChannel(ids=new_id, provider_pool=provider_pool_of(ScriptedCarrier(), ScriptedVoice()))
    second = attrs.evolve(one, status=R.WAITING, reason=DOUBLE_DIAL, due_at=NOW)
    decision = channel.decide(plan, LocalRules(plan.workspace), second, NOW)
    assert isinstance(decision, Postponement if leg == 1 else Advance)
