from __future__ import annotations

import itertools
import random

import anyio
import attrs
import pytest

from outreach.errors import IllegalTransition
from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch
from outreach.models.states import DispatchState
from outreach.protocols import SystemClock
from outreach.storage.unit_of_work import Transaction
from outreach.testing.scripted import ScriptedCarrier, accept
from tests.engine.conftest import OpenStorage
from tests.engine.rig import QUICK, Rig, contacts, dispatching, given_campaign, given_workspace, reaches, until

pytestmark = pytest.mark.anyio

D = DispatchState

ROUNDS = 100
CONTACTS = 150
"""Enough for a hundred rounds on a machine that is not slow; else another campaign goes on with the rounds."""


async def ledger(rig: Rig, campaign: Campaign) -> dict[str, Dispatch]:
    """Return every request of a campaign, by its id."""

    def operation(tx: Transaction) -> dict[str, Dispatch]:
        return {
            dispatch.id: dispatch
            for one in tx.recipients.page(campaign.workspace_id, campaign.id)
            for dispatch in tx.dispatches.of_recipient(campaign.workspace_id, campaign.id, one.position)
        }

    return await rig.storage.read(operation)


async def at_rest(rig: Rig, campaign: Campaign) -> dict[str, Dispatch]:
    """Wait until nothing of a campaign is on its way, and return its ledger."""

    async def resting() -> bool:
        return not any(one.state is D.DISPATCHING for one in (await ledger(rig, campaign)).values())

    await until(resting)
    return await ledger(rig, campaign)


@pytest.mark.field(5)
@pytest.mark.turn(4, "a hundred rounds")
@pytest.mark.parametrize("seed", [20_70])
async def test_pause_wait_and_resume_a_hundred_times(open_storage: OpenStorage, seed: int) -> None:
    """Field, test 5 (listmonk #2070, #2313: copies; #2168, #2591: over too early): one for everybody, and no sooner.

    A hundred rounds, however slow the machine: where everybody is reached before, a further campaign takes the rest.
    """
    rng = random.Random(seed)
    carrier = ScriptedCarrier(lambda _: accept(seconds=rng.choice((0.0, 0.0, 0.005, 0.02))))
    # An intent that is withdrawn says so at its slot: near slots, short waits.
    config = attrs.evolve(QUICK, look_ahead_seconds=0.02)
    async with dispatching(open_storage(SystemClock()), carrier=carrier, config=config) as rig:
        workspace = await given_workspace(rig.engine)
        rounds = 0
        for first in itertools.count(step=CONTACTS):
            heard = len(carrier.requests)
            campaign = await given_campaign(rig.engine, workspace, contacts(CONTACTS, first=first))
            await rig.engine.campaigns.start(workspace.id, campaign.id)
            made = await pauses(rig, carrier, campaign, rng, ROUNDS - rounds)
            assert made > 0
            rounds += made
            done = await reaches(rig.engine, campaign, "completed")
            assert (done.counters.completed, done.counters.successful, done.counters.open) == (CONTACTS, CONTACTS, 0)
            asked = sorted(message.to for message in carrier.requests[heard:])
            assert asked == [f"+1415555{first + n:04d}" for n in range(CONTACTS)]
            accepted = [one for one in (await ledger(rig, campaign)).values() if one.state is D.ACCEPTED]
            assert sorted(one.position or 0 for one in accepted) == list(range(CONTACTS))
            if rounds == ROUNDS:
                break


async def pauses(rig: Rig, carrier: ScriptedCarrier, campaign: Campaign, rng: random.Random, rounds: int) -> int:
    """Pause and resume a campaign so many times, or until everybody is reached; return how often."""
    for number in range(rounds):
        told = f"round {number} of {rounds}"
        # The moment of the pause, not a wait for anything.
        await anyio.sleep(rng.choice((0.0, 0.005, 0.02, 0.06)))
        try:
            paused = await rig.engine.campaigns.pause(campaign.workspace_id, campaign.id)
        except IllegalTransition:
            return number
        assert paused.status == "paused", told
        before = await at_rest(rig, campaign)
        heard = len(carrier.requests)
        await anyio.sleep(rng.choice((0.0, 0.0, 0.01)))
        assert await ledger(rig, campaign) == before, told
        assert len(carrier.requests) == heard, told
        await rig.engine.campaigns.resume(campaign.workspace_id, campaign.id)
    return rounds
