"""A worker is killed between two requests for one contact: the second one goes out once, after the restart."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import attrs
import pytest

from outreach import FlowStep, NewFlow, Outreach, SmsSettingsUpdate, Workspace
from outreach.models.campaign import Campaign
from outreach.models.states import RecipientStatus
from outreach.protocols.storage import Storage
from outreach.testing.clock import ShiftedClock
from outreach.testing.scripted import ScriptedCarrier, ScriptedVoice, accept
from tests.engine.calling import CALLS, POSITIVE, event, given_calls
from tests.engine.conftest import OpenStorage
from tests.engine.rig import dispatching, given_campaign, given_workspace, people, reaches, time_passes
from tests.field.crash import NO_GRACE, Mortal

pytestmark = pytest.mark.anyio


async def _retried(engine: Outreach, workspace: Workspace) -> Campaign:
    await engine.sms_settings.update(workspace.id, SmsSettingsUpdate(retry_enabled=True))
    return await given_campaign(engine, workspace, 1)


async def _in_a_flow(engine: Outreach, workspace: Workspace) -> Campaign:
    steps = [
        FlowStep(kind="send", body="Hello"),
        FlowStep(kind="wait", wait_minutes=30),
        FlowStep(kind="send", body="Are you there?"),
    ]
    flow = await engine.flows.create(workspace.id, NewFlow(name="Reminder", steps=steps))
    return await given_campaign(engine, workspace, 1, body=None, message_source="flow", flow_id=flow.id)


async def _called_twice(engine: Outreach, workspace: Workspace) -> Campaign:
    return await given_calls(engine, workspace, 1, double_dial=True)


@attrs.frozen(kw_only=True)
class Case:
    """What a contact waits for between two requests.

    Attributes:
        make: Creates the campaign.
        reason: Why the contact waits.
        minutes: How long at the most.
    """

    make: Callable[[Outreach, Workspace], Awaitable[Campaign]]
    reason: str
    minutes: float


CASES = {
    "a retry after a failed receipt": Case(make=_retried, reason="retry", minutes=20),
    "a step of a flow": Case(make=_in_a_flow, reason="flow_wait", minutes=31),
    "the second call of a double dial": Case(make=_called_twice, reason="double_dial", minutes=0.0),
}


def _requests(carrier: ScriptedCarrier, voice: ScriptedVoice) -> list[str]:
    return [one.dispatch_id for one in carrier.requests] + [one.dispatch_id for one in voice.requests]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_the_second_request_goes_out_once_over_a_restart(open_storage: OpenStorage, case: Case) -> None:
    """The process dies with the commit that has the contact wait; nothing of the first request is done again."""
    clock = ShiftedClock()
    storage: Storage = open_storage(clock)
    mortal = Mortal(storage)
    carriers = ScriptedCarrier([accept().undelivered("temporary")]), ScriptedCarrier(then=accept().delivered())
    if case.reason != "retry":
        carriers[0].script([accept().delivered()])
    voices = ScriptedVoice([accept().no_answer(after_seconds=0.0)]), ScriptedVoice()
    async with dispatching(mortal, carrier=carriers[0], voice=voices[0], config=NO_GRACE, clock=clock) as rig:
        workspace = await given_workspace(rig.engine)
        campaign = await case.make(rig.engine, workspace)

        async def waits(storage: Storage) -> bool:
            contact = await storage.read(lambda tx: tx.recipients.get(workspace.id, campaign.id, 0))
            assert contact is not None
            return (contact.status, contact.reason) == (RecipientStatus.WAITING, case.reason)

        mortal.dies_after = waits
        await rig.engine.campaigns.start(workspace.id, campaign.id)
        with anyio.fail_after(30):
            while not mortal.dead:  # noqa: ASYNC110 - the dead announce nothing
                await anyio.sleep(0.01)
    first = _requests(carriers[0], voices[0])
    assert len(first) == 1
    async with dispatching(storage, carrier=carriers[1], voice=voices[1], config=CALLS, clock=clock) as rig:
        if case.minutes:
            await time_passes(rig, clock, minutes=case.minutes)
        after = voices[1] if case.reason == "double_dial" else carriers[1]
        await after.wait_for_requests(1)
        if case.reason == "double_dial":
            voices[1].report(event(voices[1].requests[0], **POSITIVE))
        await reaches(rig.engine, campaign, "completed")
        await time_passes(rig, clock, minutes=60)
        second = _requests(carriers[1], voices[1])
        assert len(second) == 1
        assert second != first
        (contact,) = await people(rig.engine, campaign)
        assert (contact.status, contact.attempts) == (RecipientStatus.COMPLETED, 2 if case.reason == "retry" else 1)
