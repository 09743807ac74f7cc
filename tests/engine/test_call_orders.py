from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import attrs
import pytest

from outreach.models import Counters
from outreach.models.reports import CallReport
from outreach.protocols import SystemClock
from outreach.protocols.adapter import VoiceAdapter
from outreach.protocols.voice import CallRequest
from outreach.testing.scripted import ScriptedVoice
from outreach.testing.virtual_time import clock_of_loop
from outreach.voice.elevenlabs import ADAPTER as ELEVENLABS
from outreach.voice.retell import ADAPTER as RETELL
from outreach.voice.vapi import ADAPTER as VAPI
from tests.engine.calling import CALLS, calls_of, given_calls
from tests.engine.conftest import OpenStorage
from tests.engine.rig import dispatching, given_workspace, people, reaches, until
from tests.voice.adapters import called_back, connection_of
from tests.voice.elevenlabs.test_callbacks import CREDENTIALS as ELEVENLABS_ACCOUNT
from tests.voice.elevenlabs.test_callbacks import signed as signed_by_elevenlabs
from tests.voice.retell.test_callbacks import CREDENTIALS as RETELL_ACCOUNT
from tests.voice.retell.test_callbacks import signed as signed_by_retell
from tests.voice.vapi.test_callbacks import PLAIN as VAPI_ACCOUNT
from tests.voice.vapi.test_callbacks import SECRET as VAPI_SECRET

pytestmark = pytest.mark.virtual_time

TALKED_SECONDS: Final = 60


def _vapi(dispatch_id: str, began: datetime, ended: datetime) -> list[Mapping[str, Any]]:
    call = {"id": f"call-{dispatch_id}", "name": dispatch_id}
    end = {"endedReason": "customer-ended-call", "endedAt": ended.isoformat(), "call": call}
    analysis = {"successEvaluation": "true", "summary": "Will come."}
    return [
        {"message": {"type": "status-update", "status": "ringing", "call": call}},
        {
            "message": {
                "type": "status-update",
                "status": "in-progress",
                "timestamp": began.timestamp() * 1000,
                "call": call,
            }
        },
        {"message": {"type": "status-update", "status": "ended", **end}},
        {"message": {"type": "end-of-call-report", "analysis": analysis, **end}},
    ]


def _retell(dispatch_id: str, began: datetime, ended: datetime) -> list[Mapping[str, Any]]:
    call = {
        "call_id": f"call-{dispatch_id}",
        "call_status": "ongoing",
        "metadata": {"outreach_dispatch_id": dispatch_id},
        "start_timestamp": round(began.timestamp() * 1000),
    }
    over = {**call, "call_status": "ended", "disconnection_reason": "agent_hangup"}
    over["end_timestamp"] = round(ended.timestamp() * 1000)
    analysis = {"call_successful": True, "in_voicemail": False, "call_summary": "Will come."}
    return [
        {"event": "call_started", "call": call},
        {"event": "call_ended", "call": over},
        {"event": "call_analyzed", "call": {**over, "call_analysis": analysis}},
        {"event": "call_ended", "call": over},
    ]


def _elevenlabs(dispatch_id: str, began: datetime, ended: datetime) -> list[Mapping[str, Any]]:
    data = {
        "conversation_id": f"conv-{dispatch_id}",
        "user_id": dispatch_id,
        "status": "done",
        "metadata": {
            "start_time_unix_secs": int(began.timestamp()),
            "accepted_time_unix_secs": int(began.timestamp()),
            "call_duration_secs": TALKED_SECONDS,
            "features_usage": {"voicemail_detection": {"enabled": True, "used": False}},
        },
        "analysis": {"call_successful": "success", "transcript_summary": "Will come."},
    }
    done = {"type": "post_call_transcription", "data": data}
    return [done, {"type": "post_call_audio", "data": {"conversation_id": f"conv-{dispatch_id}"}}, done]


def _headers(adapter: VoiceAdapter, body: bytes, at: datetime) -> Mapping[str, str]:
    if adapter is RETELL:
        return signed_by_retell(body, at=round(at.timestamp() * 1000))
    if adapter is ELEVENLABS:
        return signed_by_elevenlabs(body, at=int(at.timestamp()))
    return {"X-Vapi-Secret": VAPI_SECRET}


def _reports(adapter: VoiceAdapter, account: Mapping[str, str], events: Sequence[object], workspace_id: str) -> Any:
    connection = attrs.evolve(connection_of(account), workspace_id=workspace_id)
    for event in events:
        body = json.dumps(event).encode()
        # The adapter reads the system's clock, against which a signature must not be old.
        headers = _headers(adapter, body, SystemClock().now())
        for told in adapter.read(connection, called_back(body, headers)):
            if isinstance(told.content, CallReport):
                yield told.content


@pytest.mark.parametrize(
    ("adapter", "account", "events_of"),
    [(VAPI, VAPI_ACCOUNT, _vapi), (RETELL, RETELL_ACCOUNT, _retell), (ELEVENLABS, ELEVENLABS_ACCOUNT, _elevenlabs)],
    ids=["vapi", "retell", "elevenlabs"],
)
async def test_the_events_of_a_call_end_the_same_in_every_order(
    open_storage: OpenStorage,
    adapter: VoiceAdapter,
    account: Mapping[str, str],
    events_of: Any,
) -> None:
    """One contact for every order in which its call's events can come, and all end alike.

    docs/delivery-contract.md#rule-12.
    """
    ended = clock_of_loop().now().replace(microsecond=0)
    began = ended - timedelta(seconds=TALKED_SECONDS)
    orders = list(itertools.permutations(range(len(events_of("d", began, ended)))))
    voice = ScriptedVoice(look_up="none")
    async with dispatching(open_storage(clock_of_loop()), voice=voice, config=CALLS) as rig:
        workspace = await given_workspace(rig.engine)
        campaign = await given_calls(rig.engine, workspace, len(orders), batch_concurrency=40)
        await rig.engine.campaigns.start(workspace.id, campaign.id)
        await voice.wait_for_requests(len(orders))
        requests: list[CallRequest] = list(voice.requests)
        for request, order in zip(requests, orders, strict=True):
            told = events_of(request.dispatch_id, began, ended)
            for report in _reports(adapter, account, [told[index] for index in order], workspace.id):
                voice.report(report)

        async def told_of_all() -> bool:
            calls = [(await calls_of(rig, campaign, position))[0] for position in range(len(orders))]
            return all(call.summary is not None and call.answered_at is not None for call in calls)

        await until(told_of_all)
        done = await reaches(rig.engine, campaign, "completed")
        assert done.counters == Counters(total=len(orders), completed=len(orders), successful=len(orders))
        for position, person in enumerate(await people(rig.engine, campaign)):
            call = (await calls_of(rig, campaign, position))[0]
            assert (person.status, person.reason, person.successful) == ("completed", None, True)
            assert (call.status, call.outcome, call.answered_by, call.summary) == (
                "completed",
                "positive",
                "human",
                "Will come.",
            )
            assert call.duration_seconds == TALKED_SECONDS
