from __future__ import annotations

import anyio
import pytest

from outreach import Campaign, NewAgent, NewCall, NewCallCampaign, NewRecipient, NewSmsCampaign, Outreach, Workspace
from outreach.models.states import CallStatus, MessageStatus
from outreach.testing.scripted import (
    ScriptedCarrier,
    ScriptedVoice,
    Step,
    accept,
    drop,
)
from outreach.testing.waiting import call_ended, campaign_ended, until

pytestmark = pytest.mark.virtual_time

ADA = NewRecipient(phone_number="+14155550102", first_name="Ada")


async def _texted(engine: Outreach, workspace: Workspace) -> Campaign:
    new = NewSmsCampaign(name="Offer", body="Hi", carrier="twilio", from_number="+14155550199", rate_per_minute=60)
    created = await engine.campaigns.create_sms(workspace.id, new, [ADA])
    return await engine.campaigns.start(workspace.id, created.campaign.id)


async def _called(engine: Outreach, workspace: Workspace) -> Campaign:
    agent = await engine.agents.create(workspace.id, NewAgent(name="Ada"))
    created = await engine.campaigns.create_call(workspace.id, NewCallCampaign(name="Calls", agent_id=agent.id), [ADA])
    return await engine.campaigns.start(workspace.id, created.campaign.id)


async def test_a_receipt_comes_at_its_time(
    outreach_engine: Outreach, outreach_workspace: Workspace, outreach_carrier: ScriptedCarrier
) -> None:
    """An undelivered message fails with the scripted class, after the scripted time."""
    outreach_carrier.script([accept().undelivered("invalid_number", after_seconds=120)])
    campaign = await _texted(outreach_engine, outreach_workspace)
    await campaign_ended(outreach_engine, campaign)
    await outreach_carrier.wait_for_requests(1)
    reports = []
    for wait in (0, 119, 2):
        past = (outreach_engine.now() - outreach_carrier.requested_at[0]).total_seconds()
        await anyio.sleep(max(wait - past, 0) if wait == 119 else wait)
        [dispatch] = await outreach_engine.campaigns.list_dispatches(campaign.workspace_id, campaign.id, 0)
        reports.append((dispatch.report, dispatch.reason))
    assert reports == [(None, None), (None, None), (MessageStatus.FAILED, "invalid_number")]


async def test_a_reply_is_taken_in(
    outreach_engine: Outreach, outreach_workspace: Workspace, outreach_carrier: ScriptedCarrier
) -> None:
    """What a contact writes back comes from the contact's number, to ours."""
    outreach_carrier.script([accept().delivered().replied("When?", after_seconds=600)])
    await _texted(outreach_engine, outreach_workspace)
    await anyio.sleep(599)
    assert list(await outreach_engine.messages.list_inbound(outreach_workspace.id)) == []
    await anyio.sleep(2)
    [reply] = await outreach_engine.messages.list_inbound(outreach_workspace.id)
    assert (reply.from_number, reply.to, reply.body) == (ADA.phone_number, "+14155550199", "When?")


async def test_a_receipt_settles_a_request_whose_answer_was_lost(
    outreach_engine: Outreach, outreach_workspace: Workspace, outreach_carrier: ScriptedCarrier
) -> None:
    """The connection drops, the message goes out, and its receipt says so."""
    outreach_carrier.script([drop().delivered(after_seconds=30)])
    ended = await campaign_ended(outreach_engine, await _texted(outreach_engine, outreach_workspace))
    assert ended.counters.successful == 1


@pytest.mark.parametrize(
    ("step", "status", "seconds"),
    [
        (accept().answered(talk_seconds=90), CallStatus.COMPLETED, 90),
        (accept().voicemail(), CallStatus.COMPLETED, 10),
        (accept().no_answer(), CallStatus.NO_ANSWER, None),
        (accept().busy(), CallStatus.BUSY, None),
        (accept().call_failed("No route."), CallStatus.FAILED, None),
    ],
    ids=["answered", "voicemail", "no answer", "busy", "failed"],
)
async def test_a_call_takes_its_course(
    outreach_engine: Outreach,
    outreach_workspace: Workspace,
    outreach_voice: ScriptedVoice,
    step: Step,
    status: CallStatus,
    seconds: int | None,
) -> None:
    """Each course ends the call as it says."""
    outreach_voice.script([step])
    agent = await outreach_engine.agents.create(outreach_workspace.id, NewAgent(name="Ada"))
    call = await outreach_engine.calls.create(outreach_workspace.id, NewCall(agent_id=agent.id, to="+14155550102"))
    ended = await call_ended(outreach_engine, call)
    assert ended.status is status
    assert (ended.answered_at is not None) == (status is CallStatus.COMPLETED)
    assert ended.ended_at is not None
    assert ended.duration_seconds == seconds


async def test_a_call_that_rings_out_is_tried_again(
    outreach_engine: Outreach, outreach_workspace: Workspace, outreach_voice: ScriptedVoice
) -> None:
    """The steps of a script are those of the attempts; then its last word holds."""
    outreach_voice.script([accept().no_answer(), accept().busy()], then=accept().answered(do_not_call=True))
    ended = await campaign_ended(outreach_engine, await _called(outreach_engine, outreach_workspace))
    assert (len(outreach_voice.requests), ended.counters.successful) == (3, 1)
    assert await outreach_engine.unsubscribes.filter_unsubscribed(outreach_workspace.id, "call", ["+14155550102"])


async def test_steps_for_the_other_kind_of_provider_are_refused() -> None:
    """A receipt for a call, or a ringing message, is a mistake of the test."""
    with pytest.raises(TypeError, match="ScriptedCarrier cannot tell"):
        ScriptedCarrier([accept().no_answer()])
    with pytest.raises(TypeError, match="ScriptedVoice cannot tell"):
        ScriptedVoice(then=accept().delivered())


async def test_waiting_for_what_does_not_come_says_how_it_is(
    outreach_engine: Outreach, outreach_workspace: Workspace
) -> None:
    """A campaign that nobody starts does not end; the error tells its status."""
    new = NewSmsCampaign(name="Offer", body="Hi", carrier="twilio", from_number="+14155550199")
    created = await outreach_engine.campaigns.create_sms(outreach_workspace.id, new, [ADA])
    began = outreach_engine.now()
    with pytest.raises(TimeoutError, match="it is ready, with"):
        await campaign_ended(outreach_engine, created.campaign, timeout_seconds=90)
    assert 90 <= (outreach_engine.now() - began).total_seconds() < 91

    async def never() -> bool:
        return False

    with pytest.raises(TimeoutError, match="within 1:30:00"):
        await until(never, timeout_seconds=5400)
