from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import attrs
import pytest

from outreach.dispatch.reconciler import Reconciler
from outreach.models.campaign import Campaign
from outreach.models.dispatch import Dispatch
from outreach.models.states import DispatchState, RecipientStatus
from outreach.protocols.storage import Storage
from outreach.testing.clock import ShiftedClock
from outreach.testing.scripted import ScriptedCarrier, ScriptedVoice, accept
from tests.engine.calling import CALLS, POSITIVE, event, given_calls
from tests.engine.conftest import OpenStorage
from tests.engine.provider_pool import provider_pool_of
from tests.engine.rig import Rig, dispatching, given_campaign, given_workspace, people, reaches, time_passes
from tests.field.crash import NO_GRACE, Mortal, has_intent

pytestmark = pytest.mark.anyio

D, R = DispatchState, RecipientStatus
channels = pytest.mark.parametrize("channel", ["sms", "call"])


@attrs.frozen(kw_only=True)
class Aftermath:
    """A campaign of one contact whose worker was killed, and a new worker on the same database."""

    rig: Rig
    clock: ShiftedClock
    campaign: Campaign
    before: Any
    after: Any
    reconciler: Reconciler

    async def later(self, **delta: float) -> None:
        """Let time pass, and look at what is unknown once."""
        await time_passes(self.rig, self.clock, **delta)
        await self.reconciler.round()

    async def ledger(self) -> list[Dispatch]:
        """Return the requests for the contact."""
        found = await self.rig.engine.campaigns.list_dispatches(self.campaign.workspace_id, self.campaign.id, 0)
        return list(found)

    async def contact(self) -> tuple[RecipientStatus, str | None, int]:
        """Return status, reason and attempts of the contact."""
        (one,) = await people(self.rig.engine, self.campaign)
        return one.status, one.reason, one.attempts


@asynccontextmanager
async def killed(
    open_storage: OpenStorage, channel: str, *, after_the_yes: bool, look_up: Any
) -> AsyncIterator[Aftermath]:
    """Kill a worker between its intent and its request, or between the provider's yes and its commit."""
    clock = ShiftedClock()
    storage: Storage = open_storage(clock)
    mortal = Mortal(storage)
    carriers = ScriptedCarrier([accept()]), ScriptedCarrier(look_up=look_up)
    voices = ScriptedVoice([accept()]), ScriptedVoice(look_up=look_up)
    before, after = carriers if channel == "sms" else voices
    async with dispatching(mortal, carrier=carriers[0], voice=voices[0], config=NO_GRACE, clock=clock) as rig:
        workspace = await given_workspace(rig.engine)
        given = given_campaign if channel == "sms" else given_calls
        campaign = await given(rig.engine, workspace, 1)
        if after_the_yes:
            mortal.dies_before = lambda: bool(before.reached)
        else:
            mortal.dies_after = has_intent
        await rig.engine.campaigns.start(workspace.id, campaign.id)
        with anyio.fail_after(30):
            while not mortal.dead:  # noqa: ASYNC110 - the dead announce nothing
                await anyio.sleep(0.01)
    assert len(before.requests) == int(after_the_yes)
    # It is the same provider: it knows what it has taken.
    after._known.update(before._known)
    async with dispatching(storage, carrier=carriers[1], voice=voices[1], config=CALLS, clock=clock) as rig:
        provider_pool = provider_pool_of(carriers[1], voices[1])
        reconciler = Reconciler(
            storage=rig.storage, clock=clock, config=CALLS, provider_pool=provider_pool, worker=rig.worker
        )
        yield Aftermath(rig=rig, clock=clock, campaign=campaign, before=before, after=after, reconciler=reconciler)


@pytest.mark.field(1)
@channels
async def test_a_kill_between_claim_and_request_leaves_one_request(open_storage: OpenStorage, channel: str) -> None:
    """Field, test 1 (Dograh leaves it `processing` for ever, courier has popped it and lost it): it goes out, once."""
    async with killed(open_storage, channel, after_the_yes=False, look_up="authoritative") as aftermath:
        assert await aftermath.contact() == (R.UNKNOWN, "worker_lost", 1)
        await aftermath.later(minutes=2)
        await aftermath.after.wait_for_requests(1)
        if channel == "call":
            aftermath.rig.voice.report(event(aftermath.after.requests[0], **POSITIVE))
        await reaches(aftermath.rig.engine, aftermath.campaign, "completed")
        assert [(one.state, one.attempt) for one in await aftermath.ledger()] == [(D.NOT_SENT, 1), (D.ACCEPTED, 1)]
        assert len(aftermath.before.requests) + len(aftermath.after.requests) == 1


@pytest.mark.field(1)
@channels
async def test_a_claim_of_the_dead_is_not_taken_back_on_a_guess(open_storage: OpenStorage, channel: str) -> None:
    """Field, test 1 (courier, Dograh): where nobody can tell a claim from a request, that is said, not guessed."""
    async with killed(open_storage, channel, after_the_yes=False, look_up="none") as aftermath:
        await aftermath.later(minutes=2)
        assert (await aftermath.contact())[0] is R.UNKNOWN
        await aftermath.later(hours=1)
        await reaches(aftermath.rig.engine, aftermath.campaign, "completed")
        assert (await aftermath.contact())[0] is R.UNCONFIRMED
        assert aftermath.after.requests == []


@pytest.mark.field(2)
@channels
async def test_a_kill_between_yes_and_commit_is_reconciled_by_our_key(open_storage: OpenStorage, channel: str) -> None:
    """Field, test 2 (PraisonAI #2328, courier: sent again after a crash): the look-up finds it, and it stays one."""
    async with killed(open_storage, channel, after_the_yes=True, look_up="evidence") as aftermath:
        assert await aftermath.contact() == (R.UNKNOWN, "worker_lost", 1)
        await aftermath.later(minutes=2)
        if channel == "call":
            aftermath.rig.voice.report(event(aftermath.before.requests[0], **POSITIVE))
        done = await reaches(aftermath.rig.engine, aftermath.campaign, "completed")
        assert (done.counters.completed, done.counters.successful) == (1, 1)
        (only,) = await aftermath.ledger()
        assert (only.state, only.id) == (D.ACCEPTED, aftermath.before.requests[0].dispatch_id)
        assert aftermath.after.requests == []


@pytest.mark.field(2)
@channels
async def test_a_yes_that_nobody_can_look_up_is_never_repeated(open_storage: OpenStorage, channel: str) -> None:
    """Field, test 2 (courier notes what was sent after the yes, and may send again): it ends as unconfirmed."""
    async with killed(open_storage, channel, after_the_yes=True, look_up="none") as aftermath:
        await aftermath.later(minutes=2)
        await aftermath.later(hours=2)
        await reaches(aftermath.rig.engine, aftermath.campaign, "completed")
        assert await aftermath.contact() == (R.UNCONFIRMED, "no_evidence", 1)
        assert aftermath.after.requests == []
